/**
 * A Node that the operator has verified, in the place of the one from the npm registry: the
 * packages there are a third party's, made from the Node project's archives, and neither signed by
 * that project nor with provenance.
 *
 *   --node node-v26.10.0-linux-x64.tar.xz --node-sums SHASUMS256.txt   an archive of nodejs.org,
 *   compared with the project's own list
 *   --node path/to/bin/node                                            a binary, as it is
 *
 * SHASUMS256.txt is what its signature says it is: `gpg --verify SHASUMS256.txt.sig SHASUMS256.txt`
 * with the release keys of nodejs/node comes before, and is the operator's.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { ownPlatform, type Platform } from "./platform.ts";

/** Node's program, and its licence where an archive brought it. */
export interface GivenNode {
  readonly binary: Uint8Array;
  readonly licence: Uint8Array | undefined;
}

const sha256 = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex");

/**
 * What an executable's first bytes say of the system and the processor that it is for, by platform.
 */
const MACHINES: Readonly<Record<string, (bytes: Buffer) => boolean>> = {
  "linux-x64": (bytes) =>
    bytes.toString("latin1", 0, 4) === "\x7fELF" && bytes.readUInt16LE(18) === 62,
  "linux-arm64": (bytes) =>
    bytes.toString("latin1", 0, 4) === "\x7fELF" && bytes.readUInt16LE(18) === 183,
  "darwin-arm64": (bytes) =>
    bytes.readUInt32LE(0) === 0xfeedfacf && bytes.readUInt32LE(4) === 0x0100000c,
};

/**
 * Takes the file, and says what was compared and what was not.
 * @param version the Node that the release is for, such as "26.10.0"
 * @param sums the path of SHASUMS256.txt; an archive is compared with it
 * @throws Error that says which of it does not fit
 */
export function givenNode(
  file: string,
  sums: string | undefined,
  platform: Platform,
  version: string,
  say: (line: string) => void,
): GivenNode {
  const content = readFileSync(file);
  const isArchive = /\.tar\.(?:gz|xz)$/.test(file);
  if (sums !== undefined) compare(file, content, readFileSync(sums, "utf8"), sums, version);
  const given = isArchive ? unpack(file) : { binary: content, licence: undefined };
  const { binary } = given;
  if (binary.length < 64 || MACHINES[platform.name]?.(Buffer.from(binary)) !== true) {
    throw new Error(
      `${file} holds no program for ${platform.name}: --node takes bin/node, or nodejs.org's archive, for that platform`,
    );
  }
  checkVersion(file, binary, platform, version);
  const how =
    sums === undefined
      ? "compared with nothing here: --node-sums compares an archive"
      : `its archive is what ${sums} says`;
  say(`Node for ${platform.name} from ${file}, SHA-256 of the program ${sha256(binary)}; ${how}`);
  return given;
}

/**
 * Throws an Error unless the list of the Node project's sums has the file's, under the name of the
 * wanted version.
 */
function compare(
  file: string,
  content: Uint8Array,
  list: string,
  sums: string,
  version: string,
): void {
  const name = basename(file);
  const line = list
    .split("\n")
    .find((one) => /^[0-9a-f]{64} [ *](.+)$/.exec(one)?.[1]?.replace(/^\.\//, "") === name);
  if (line === undefined)
    throw new Error(
      `${sums} has no line for ${name}; keep the archive's own name, and take the list of the same release`,
    );
  if (!name.startsWith(`node-v${version}-`))
    throw new Error(`${name} is not Node ${version}, which the release is for`);
  const found = sha256(content);
  if (!line.startsWith(`${found} `))
    throw new Error(
      `${file} is not what ${sums} says: its SHA-256 is ${found}, the list has ${line.slice(0, 64)}`,
    );
}

function unpack(file: string): GivenNode {
  const dir = mkdtempSync(join(tmpdir(), "quorate-node-"));
  try {
    // Everything in it lies in a directory of its own name.
    const top = basename(file).replace(/\.tar\.(?:gz|xz)$/, "");
    execFileSync("tar", ["-xf", file, "-C", dir, `${top}/bin/node`, `${top}/LICENSE`], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    return {
      binary: readFileSync(join(dir, top, "bin/node")),
      licence: readFileSync(join(dir, top, "LICENSE")),
    };
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: Buffer };
    throw new Error(
      `${file}: cannot take bin/node and LICENSE out of it: ${stderr?.toString().trim() || message}`,
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * A program for this machine says its version; of another the version is looked for among its
 * texts.
 */
function checkVersion(file: string, binary: Uint8Array, platform: Platform, version: string): void {
  if (platform === ownPlatform && !/\.tar\.(?:gz|xz)$/.test(file)) {
    const said = execFileSync(file, ["--version"], { encoding: "utf8" }).trim();
    if (said !== `v${version}`)
      throw new Error(`${file} is Node ${said}, and the release is for v${version}`);
  } else if (
    !Buffer.from(binary).includes(`node-v${version}`) &&
    !Buffer.from(binary).includes(`v${version}`)
  ) {
    throw new Error(`${file} does not seem to be Node ${version}, which the release is for`);
  }
}
