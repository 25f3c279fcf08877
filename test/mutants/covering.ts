/**
 * Which test files run a place of the source, by V8's coverage. A file is run once for it and
 * noted in node_modules/.cache, by the texts of the test and of the files in question.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const ROOT = join(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/quorate-mutants");
/** A test file that takes longer is left out. */
const MAX_RUN_MS = 180_000;

/** What one test file runs. */
export interface Covered {
  readonly test: string;
  /** Of its run without a bug, with coverage. */
  readonly ms: number;
  /** Whether it passes; one that fails by itself says nothing of a bug. */
  readonly passes: boolean;
  /** By the file's path below packages: offsets from and to which code ran. */
  readonly ranges: Readonly<Record<string, readonly (readonly [number, number])[]>>;
}

/** Whether the test file runs the place. */
export const runs = ({ ranges }: Covered, file: string, offset: number): boolean =>
  (ranges[file] ?? []).some(([from, to]) => from <= offset && offset < to);

/**
 * What each of the test files runs of `files` (below packages). `report` is told of each one that
 * had to run.
 */
export async function coverageOf(
  tests: readonly string[],
  files: readonly string[],
  report: (covered: Covered) => void,
): Promise<Covered[]> {
  mkdirSync(CACHE, { recursive: true });
  const texts = files.map((file) => readFileSync(join(ROOT, "packages", file), "utf8"));
  const found: Covered[] = [];
  for (const test of tests) {
    const hash = createHash("sha256");
    for (const text of [readFileSync(join(ROOT, test), "utf8"), ...files, ...texts])
      hash.update(text).update("\0");
    const path = join(CACHE, `${hash.digest("hex").slice(0, 32)}.json`);
    if (!existsSync(path)) {
      const covered = await measure(test, files);
      writeFileSync(`${path}.new`, JSON.stringify(covered));
      renameSync(`${path}.new`, path);
      report(covered);
    }
    found.push(JSON.parse(readFileSync(path, "utf8")) as Covered);
  }
  return found;
}

async function measure(test: string, files: readonly string[]): Promise<Covered> {
  const directory = mkdtempSync(join(tmpdir(), "quorate-coverage-"));
  try {
    const startMs = performance.now();
    const passes = await passesWith(test, directory);
    const ms = Math.round(performance.now() - startMs);
    return { test, ms, passes, ranges: rangesOf(directory, files) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function passesWith(test: string, directory: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, NODE_V8_COVERAGE: directory, NODE_TEST_CONTEXT: undefined };
    const args = ["--expose-gc", test];
    const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: "ignore" });
    const timer = setTimeout(() => child.kill("SIGKILL"), MAX_RUN_MS);
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve(code === 0);
    });
  });
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly Range[] }[];
  }[];
}

function rangesOf(directory: string, files: readonly string[]): Covered["ranges"] {
  const byUrl = new Map(
    files.map((file) => [pathToFileURL(join(ROOT, "packages", file)).href, file]),
  );
  const ran = new Map<string, Uint8Array>();
  for (const name of readdirSync(directory)) {
    const { result } = JSON.parse(readFileSync(join(directory, name), "utf8")) as Coverage;
    for (const { url, functions } of result) {
      const file = byUrl.get(url.split("?")[0]!);
      if (file === undefined) continue;
      const length = readFileSync(join(ROOT, "packages", file), "utf8").length;
      const all = ran.get(file) ?? new Uint8Array(length);
      ran.set(file, all);
      const here = new Uint8Array(length);
      const ranges = functions.flatMap((one) => one.ranges);
      const size = ({ startOffset, endOffset }: Range) => endOffset - startOffset;
      // An inner range is shorter than what it stands in, and counts for its part.
      for (const { startOffset, endOffset, count } of ranges.sort((a, b) => size(b) - size(a)))
        here.fill(count > 0 ? 1 : 0, startOffset, endOffset);
      for (const [at, is] of here.entries()) if (is === 1) all[at] = 1;
    }
  }
  return Object.fromEntries([...ran].map(([file, all]) => [file, stretches(all)]));
}

/** From where to where the ones go. */
function stretches(all: Uint8Array): [number, number][] {
  const found: [number, number][] = [];
  for (let from = all.indexOf(1); from >= 0; ) {
    const end = all.indexOf(0, from);
    const to = end < 0 ? all.length : end;
    found.push([from, to]);
    from = end < 0 ? -1 : all.indexOf(1, end);
  }
  return found;
}
