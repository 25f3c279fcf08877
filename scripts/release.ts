/**
 * Makes the release: for each platform one archive that needs nothing on the machine, for Linux a
 * Debian package too, the packages for npm, and SHA256SUMS.
 *
 *   ./dev release [--platform linux-x64,linux-arm64] [--out dist]
 *
 * The same commit results in the same bytes: files are sorted, and every time stamp is the commit's
 * (or SOURCE_DATE_EPOCH).
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { defined } from "@quorate/proto";
import { readArguments, switchOption, valueOption } from "./dev/command-line.ts";
import { type Bundle, bundlePrograms, NATIVE_MODULE } from "./release/bundle.ts";
import { archiveContents, debianContents, type Parts } from "./release/contents.ts";
import { debianPackage } from "./release/debian.ts";
import { envtestArchive, envtestIndex, envtestName } from "./release/envtest.ts";
import { givenNode } from "./release/given-node.ts";
import { archiveName, libraries, libraryArchive } from "./release/library.ts";
import { collectLicences } from "./release/licences.ts";
import {
  libatomic,
  nativeModule,
  nodeDirectory,
  ownPlatform,
  type Platform,
  platforms,
} from "./release/platform.ts";
import { releasePrograms, root } from "./release/programs.ts";
import { type Entry, tar, withDirectories } from "./release/tar.ts";

const usage = `./dev release [OPTIONS]

Builds quorate-VERSION-PLATFORM.tar.gz for each platform, quorate_VERSION_ARCH.deb for Linux,
quorate-VERSION.tgz and quorate-client-VERSION.tgz for npm (docs/guide/nodejs.md,
docs/guide/client.md), and SHA256SUMS. With --envtest-url also envtest-vKUBERNETES-SYSTEM-ARCH.tar.gz
and their index for setup-envtest (docs/guide/kubernetes-go.md).

Without --node, Node comes from a third party's packages in the npm registry, whose checksums are in
package-lock.json. Packages for other platforms, and libatomic from Debian for other processors, are
cached in node_modules/.cache. See docs/operate/security/identity.md. SOURCE_DATE_EPOCH (seconds)
replaces the time of the commit.`;

/** A mistake on the command line. */
class UsageError extends Error {}

const startedMs = performance.now();
const say = (line: string): void =>
  console.log(`[${((performance.now() - startedMs) / 1000).toFixed(1).padStart(5)} s] ${line}`);
const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;

interface Options {
  readonly wanted: readonly Platform[];
  readonly out: string;
  readonly deb: boolean;
  readonly library: boolean;
  readonly level: number;
  /** Where setup-envtest's archives will be; undefined: there are none. */
  readonly envtestUrl: string | undefined;
  readonly node: string | undefined;
  readonly nodeSums: string | undefined;
}

function readOptions(args: readonly string[]): Options {
  const { values } = readArguments(
    usage,
    {
      platform: {
        type: "string",
        array: true,
        requiresArg: true,
        describe: "comma-separated: linux-x64, linux-arm64, darwin-arm64 (default: all)",
      },
      out: valueOption("output directory", "dist"),
      "no-deb": switchOption("no Debian packages"),
      "no-library": switchOption("no npm packages"),
      "no-archives": switchOption("npm packages alone, without SHA256SUMS, as ./dev pack"),
      "envtest-url": valueOption(
        "URL of the directory in which setup-envtest will find its archives: make them",
      ),
      compression: valueOption("1 (fast) to 9 (small)", "9"),
      node: valueOption(
        "Node for the one platform: an archive of nodejs.org (.tar.gz, .tar.xz) or its executable bin/node, which you have verified",
      ),
      "node-sums": valueOption("SHASUMS256.txt of that Node release, to verify the archive"),
    },
    "",
    args,
  );
  const everywhere = values["no-archives"] ? [] : platforms.map((one) => one.name);
  const names = values.platform?.flatMap((list) => list.split(",")) ?? everywhere;
  if (values["no-archives"] && names.length > 0)
    throw new UsageError("--no-archives makes no archive for --platform: give one of them");
  const wanted = names.map((name) => {
    const platform = platforms.find((one) => one.name === name);
    if (platform === undefined)
      throw new UsageError(
        `there is no platform ${name}; there are ${platforms.map((one) => one.name).join(", ")}`,
      );
    return platform;
  });
  const level = Number(values.compression);
  if (!(Number.isInteger(level) && level >= 1 && level <= 9))
    throw new UsageError(`--compression is ${values.compression}; it goes from 1 to 9`);
  const { node, "node-sums": nodeSums } = values;
  if (node !== undefined && wanted.length !== 1)
    throw new UsageError("--node is for one platform: name it with --platform");
  if (nodeSums !== undefined && !/\.tar\.(?:gz|xz)$/.test(node ?? "")) {
    throw new UsageError(
      "--node-sums compares an archive of nodejs.org: give that with --node (SHASUMS256.txt has no line for bin/node)",
    );
  }
  const envtestUrl = values["envtest-url"];
  if (envtestUrl !== undefined && !/^https?:\/\//.test(URL.canParse(envtestUrl) ? envtestUrl : ""))
    throw new UsageError(`--envtest-url is ${envtestUrl}; it should be http:// or https://`);
  if (envtestUrl !== undefined && wanted.length === 0)
    throw new UsageError("--envtest-url is for archives: leave out --no-archives");
  const outputs = { envtestUrl, deb: !values["no-deb"], library: !values["no-library"] };
  return { wanted, out: resolve(values.out), ...outputs, level, node, nodeSums };
}

/** The time that all files get. */
function releaseTime(): number {
  const given = process.env["SOURCE_DATE_EPOCH"];
  const text =
    given ??
    execFileSync("git", ["log", "-1", "--format=%ct"], { cwd: root, encoding: "utf8" }).trim();
  if (!/^\d{1,11}$/.test(text))
    throw new UsageError(
      `SOURCE_DATE_EPOCH is ${JSON.stringify(text)}; it should be seconds since 1970`,
    );
  return Number(text);
}

/** The version of the API server. Throws where that package was taken out. */
function kubernetesVersion(): string {
  const program = join(root, "bin/quorate.js");
  const args = [program, "apiserver", "--version"];
  const printed = execFileSync(process.execPath, args, { encoding: "utf8" });
  return defined(
    /v(\d{1,3}\.\d{1,3}\.\d{1,3})/.exec(printed)?.[1],
    "the version of the API server",
  );
}

/** Man pages from the declarations of the programs. */
function makeManPages(dir: string): Map<string, Uint8Array> {
  const script = join(root, "scripts/gen-man.ts");
  execFileSync(process.execPath, [script, "--out", dir], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const names = readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.[1-8]$/.test(name),
  );
  return new Map(
    names.sort().map((name) => [name.split("/").at(-1)!, readFileSync(join(dir, name))]),
  );
}

/** Completions, by the bundled programs themselves, which also shows that the bundle runs. */
function makeCompletions(
  dir: string,
  bundle: Bundle,
  platform: Platform | undefined,
): Map<string, Uint8Array> {
  if (platform === undefined)
    throw new Error(
      `there is no release for this machine's platform, ${process.platform}-${process.arch}`,
    );
  for (const [name, content] of bundle.files) writeFileSync(join(dir, name), content);
  writeFileSync(join(dir, NATIVE_MODULE), nativeModule(platform));
  const made = new Map<string, Uint8Array>();
  for (const program of ["quoratectl", "quorateutl"]) {
    const places = [
      ["bash", `bash-completion/completions/${program}`],
      ["zsh", `zsh/vendor-completions/_${program}`],
      ["fish", `fish/vendor_completions.d/${program}.fish`],
    ] as const;
    for (const [shell, path] of places) {
      const args = [join(dir, `${program}.mjs`), "completion", shell];
      made.set(
        path,
        execFileSync(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] }),
      );
    }
  }
  return made;
}

function inScratch<T>(task: (dir: string) => T): T {
  const dir = mkdtempSync(join(tmpdir(), "quorate-release-"));
  try {
    return task(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Writes a file under its name only when it is whole; returns its line of SHA256SUMS. */
function write(out: string, name: string, content: Uint8Array): string {
  writeFileSync(join(out, `${name}.new`), content);
  renameSync(join(out, `${name}.new`), join(out, name));
  say(`${name}: ${mib(content.length)}`);
  return `${createHash("sha256").update(content).digest("hex")}  ${name}\n`;
}

type Compress = (content: Uint8Array) => Uint8Array;

/** The archives and Debian packages; returns their lines of SHA256SUMS. */
async function archives(
  { wanted, out, deb, node, nodeSums, envtestUrl }: Options,
  version: string,
  mtimeSeconds: number,
  compress: Compress,
): Promise<string[]> {
  const programs = releasePrograms();
  const bundle = await bundlePrograms(programs);
  const bundleBytes = [...bundle.files.values()].reduce((total, file) => total + file.length, 0);
  say(`bundled ${programs.map((program) => program.name).join(", ")}: ${mib(bundleBytes)}`);
  const manPages = inScratch(makeManPages);
  const completions = inScratch((dir) => makeCompletions(dir, bundle, ownPlatform));
  say(`${manPages.size} man pages, ${completions.size} completions`);
  const sums: string[] = [];
  const kubernetes = envtestUrl === undefined ? "" : kubernetesVersion();
  const forEnvtest = new Map<string, Uint8Array>();
  for (const platform of wanted) {
    const directory = nodeDirectory(platform, say);
    const nodeVersion = (
      JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as { version: string }
    ).version;
    const given =
      node === undefined ? undefined : givenNode(node, nodeSums, platform, nodeVersion, say);
    if (given === undefined)
      say(
        `Node ${nodeVersion} from the npm package ${platform.nodePackage}, a third party's: --node takes another`,
      );
    const parts: Parts = {
      version,
      time: new Date(mtimeSeconds * 1000),
      platform,
      programs,
      bundle,
      node: given?.binary ?? readFileSync(join(directory, "bin/node")),
      native: nativeModule(platform),
      libatomic: libatomic(platform, say),
      licences: collectLicences(bundle.packages, directory, nodeVersion, given?.licence),
      manPages,
      completions,
    };
    const name = `quorate-${version}-${platform.name}`;
    const contents: Entry[] = archiveContents(parts).map((entry) => ({
      ...entry,
      path: `${name}/${entry.path}`,
    }));
    const archive = compress(tar(withDirectories(contents), mtimeSeconds));
    sums.push(write(out, `${name}.tar.gz`, archive));
    if (envtestUrl !== undefined) {
      const packed = gzipSync(envtestArchive(archive, mtimeSeconds), { level: 1 });
      forEnvtest.set(envtestName(platform, kubernetes), packed);
    }
    if (!deb || platform.debian === undefined) continue;
    const files = debianContents(parts, (content) => gzipSync(content, { level: 9 }));
    const content = debianPackage(files, {
      version,
      architecture: platform.debian,
      mtimeSeconds,
      compress,
    });
    sums.push(write(out, `quorate_${version}_${platform.debian}.deb`, content));
  }
  for (const [name, content] of forEnvtest) sums.push(write(out, name, content));
  if (envtestUrl !== undefined) {
    const index = Buffer.from(envtestIndex(kubernetes, forEnvtest, envtestUrl));
    sums.push(write(out, "envtest-releases.yaml", index));
  }
  return sums;
}

async function release(options: Options): Promise<void> {
  const { wanted, out, library, level } = options;
  const mtimeSeconds = releaseTime();
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    version: string;
  };
  mkdirSync(out, { recursive: true });
  const compress: Compress = (content) => gzipSync(content, { level });
  const sums = wanted.length === 0 ? [] : await archives(options, version, mtimeSeconds, compress);
  for (const one of library ? libraries : []) {
    const content = await libraryArchive(one, version, mtimeSeconds);
    sums.push(write(out, archiveName(one, version), compress(content)));
  }
  if (wanted.length > 0) writeFileSync(join(out, "SHA256SUMS"), sums.join(""));
  say(`done: ${out}`);
}

try {
  await release(readOptions(process.argv.slice(2)));
} catch (error) {
  const { message } = error as Error;
  const isUsage = error instanceof UsageError;
  console.error(
    isUsage
      ? `${message}\n"./dev release --help" prints the usage.`
      : `the release failed: ${message}`,
  );
  process.exitCode = isUsage ? 2 : 1;
}
