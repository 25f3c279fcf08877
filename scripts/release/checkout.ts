/**
 * The programs of bin/, bundled in the checkout: a start of the bundle takes less than half the
 * processor time of a start of the sources, and a fifth less memory. bin/launch.js starts it while
 * all sources are as they were; scripts/install.sh and ./dev test make it.
 *
 *     node_modules/.cache/quorate-bundle/quorate.json   the program's file, and the sources in it
 *     node_modules/.cache/quorate-bundle/HASH/          the files of one bundle
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { freshBundle } from "../../bin/launch.js";
import { bundlePrograms, NATIVE_MODULE, sourcesOf } from "./bundle.ts";
import { nativeModule, ownPlatform } from "./platform.ts";
import { releasePrograms, root } from "./programs.ts";

const DIRECTORY = join(root, "node_modules/.cache/quorate-bundle");
/** Programs that run for long import parts of their bundle when they need them. */
const MAX_KEPT = 8;

/** What bin/launch.js reads of a program. */
interface Manifest {
  /** From the root. */
  readonly program: string;
  /** Path from the root, size in bytes, time of the last change in ms. */
  readonly sources: readonly (readonly [path: string, size: number, mtimeMs: number])[];
}

const manifestPath = (name: string): string => join(DIRECTORY, `${name}.json`);

function readManifest(name: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(manifestPath(name), "utf8"));
  } catch {
    return undefined;
  }
}

/** The bundle of a program, whether or not its sources have changed since. */
export function bundledFile(name: string): string | undefined {
  const manifest = readManifest(name);
  const file = manifest && join(root, manifest.program);
  return file !== undefined && existsSync(file) ? file : undefined;
}

/** A file that others may read at this moment has its old content or the new one. */
function replaceFile(path: string, content: Uint8Array | string): void {
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, content);
  renameSync(unfinished, path);
}

/**
 * Bundles the programs of bin/ where a source has changed since the last time. False where there is
 * no native module for this platform. Rejects with esbuild's errors.
 */
export async function bundleCheckout(): Promise<boolean> {
  if (ownPlatform === undefined) return false;
  const programs = releasePrograms().filter(({ keepsCode }) => keepsCode);
  if (programs.every(({ name }) => freshBundle(name) !== undefined)) return true;
  const bundle = await bundlePrograms(programs);
  const files = new Map([...bundle.files, [NATIVE_MODULE, nativeModule(ownPlatform)] as const]);
  const hash = createHash("sha256");
  for (const [name, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(name).update(content);
  const id = hash.digest("hex").slice(0, 16);
  mkdirSync(join(DIRECTORY, id), { recursive: true });
  for (const [name, content] of files) replaceFile(join(DIRECTORY, id, name), content);
  for (const { name } of programs) {
    const manifest: Manifest = {
      program: relative(root, join(DIRECTORY, id, `${name}.mjs`)),
      sources: sourcesOf(bundle, name)
        .filter((path) => existsSync(join(root, path)))
        .map((path) => {
          const { size, mtimeMs } = statSync(join(root, path));
          return [path, size, mtimeMs];
        }),
    };
    replaceFile(manifestPath(name), JSON.stringify(manifest));
  }
  removeOld();
  return true;
}

/** Keeps the newest bundles. */
function removeOld(): void {
  const bundles = readdirSync(DIRECTORY, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({
      path: join(DIRECTORY, name),
      at: statSync(join(DIRECTORY, name)).mtimeMs,
    }))
    .sort((a, b) => b.at - a.at);
  for (const { path } of bundles.slice(MAX_KEPT)) rmSync(path, { recursive: true, force: true });
}
