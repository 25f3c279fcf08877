/**
 * What lies where in an archive, and the same files where Debian's rules want them.
 *
 *   bin/         the programs: small shell scripts that become Node
 *   lib/         Node, the bundle, LevelDB's native module; lib/shared has libatomic for systems
 *                without it
 *   systemd/     units and the example environment files
 *   share/       man pages and shell completions
 *   licences/    of everything inside; NOTICE lists them
 *   README.md, docs/, deploy/  of the repository: pages, and alerts, dashboard, manifests and chart
 *   install.sh   installs (and uninstalls) all of it
 *   SHA256SUMS   of all other files
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Bundle, NATIVE_MODULE } from "./bundle.ts";
import { MAINTAINER } from "./debian.ts";
import { documents } from "./documents.ts";
import { launcherText } from "./launcher.ts";
import { type Licence, noticeText } from "./licences.ts";
import type { Platform } from "./platform.ts";
import { type ReleaseProgram, root } from "./programs.ts";
import type { Entry } from "./tar.ts";

/** The parts of a release for one platform. */
export interface Parts {
  readonly version: string;
  /** The commit's. */
  readonly time: Date;
  readonly platform: Platform;
  readonly programs: readonly ReleaseProgram[];
  readonly bundle: Bundle;
  readonly node: Uint8Array;
  readonly native: Uint8Array;
  readonly libatomic: Uint8Array | undefined;
  readonly licences: readonly Licence[];
  /** Man pages by file name, such as quoratectl.1. */
  readonly manPages: ReadonlyMap<string, Uint8Array>;
  /** Completions by path below share/. */
  readonly completions: ReadonlyMap<string, Uint8Array>;
}

/** The directory that the units name, and into which install.sh installs by default. */
export const PREFIX = "/opt/quorate";

const file = (path: string, content: Uint8Array | string, mode = 0o644): Entry => ({
  path,
  mode,
  content: Buffer.from(content),
});

/** A file of the repository. */
function ours(path: string): Buffer {
  return readFileSync(join(root, path));
}

/** bin/ and lib/. */
function programFiles(parts: Parts, bringsLibatomic: boolean): Entry[] {
  const shared = bringsLibatomic && parts.libatomic !== undefined ? "lib/shared" : undefined;
  return [
    ...parts.programs.map((program) =>
      file(`bin/${program.name}`, launcherText(program, parts.platform, shared), 0o755),
    ),
    ...[...parts.bundle.files].map(([name, content]) => file(`lib/${name}`, content)),
    { path: "lib/node", mode: 0o755, content: parts.node },
    file(`lib/${NATIVE_MODULE}`, parts.native),
    ...(shared === undefined ? [] : [file(`${shared}/libatomic.so.1`, parts.libatomic!)]),
  ];
}

function unitFiles(): { readonly name: string; readonly content: Buffer }[] {
  const directory = "deploy/systemd";
  return readdirSync(join(root, directory))
    .sort()
    .map((name) => ({ name, content: ours(`${directory}/${name}`) }));
}

/** Everything in an archive, without the directory around it. */
export function archiveContents(parts: Parts): Entry[] {
  const isLinux = parts.platform.debian !== undefined;
  const entries = [
    ...programFiles(parts, true),
    ...(isLinux ? unitFiles().map(({ name, content }) => file(`systemd/${name}`, content)) : []),
    ...[...parts.manPages].map(([name, content]) => file(`share/${manPath(name)}`, content)),
    ...[...parts.completions].map(([path, content]) => file(`share/${path}`, content)),
    ...parts.licences.map((licence) => file(`licences/${licence.file}`, licence.text)),
    ...documents(),
    file("LICENSE", ours("LICENSE")),
    file("NOTICE", noticeText(parts.licences, parts.libatomic !== undefined)),
    file("install.sh", ours("deploy/package/install.sh"), 0o755),
    file("VERSION", `${parts.version} ${parts.platform.name}\n`),
  ].sort((a, b) => (a.path < b.path ? -1 : 1));
  const sums = entries.map(
    (entry) => `${createHash("sha256").update(entry.content!).digest("hex")}  ${entry.path}\n`,
  );
  return [...entries, file("SHA256SUMS", sums.join(""))];
}

/** Where a manual page lies: quorate.8 in man8. */
function manPath(name: string): string {
  return `man/man${name.at(-1)}/${name}`;
}

/** Debian wants one entry for the version; what has changed is in the repository's history. */
function changelog({ version, time }: Parts): string {
  const date = time.toUTCString().replace("GMT", "+0000");
  return `quorate (${version}) unstable; urgency=medium\n\n  * This release.\n\n -- ${MAINTAINER}  ${date}\n`;
}

/**
 * The same for Debian: programs in /usr/lib/quorate, and no libatomic, which the package depends
 * on. Paths are without the first slash.
 */
export function debianContents(
  parts: Parts,
  compress: (content: Uint8Array) => Uint8Array,
): Entry[] {
  const home = "usr/lib/quorate";
  const docs = "usr/share/doc/quorate";
  const settings = unitFiles().filter(({ name }) => name.endsWith(".env"));
  const units = unitFiles().filter(({ name }) => !name.endsWith(".env"));
  const licences = parts.licences.map(
    ({ what, text }) =>
      `${"=".repeat(140)}\n${what}\n\n${Buffer.from(text).toString("utf8").trimEnd()}\n`,
  );
  const copyright = `Quorate is under the Apache License 2.0, which is in /usr/share/common-licenses/Apache-2.0.\n\n${licences.join("\n")}`;
  return [
    ...programFiles(parts, false).map((entry) => ({ ...entry, path: `${home}/${entry.path}` })),
    ...parts.programs.map(
      ({ name }): Entry => ({
        path: `usr/bin/${name}`,
        mode: 0o777,
        link: `../lib/quorate/bin/${name}`,
      }),
    ),
    ...units.map(({ name, content }) =>
      file(
        `usr/lib/systemd/system/${name}`,
        content
          .toString("utf8")
          .replaceAll(`file://${PREFIX}/README.md`, "file:///usr/share/doc/quorate/README.md")
          .replaceAll(PREFIX, `/${home}`),
      ),
    ),
    // Variables may hold passwords; systemd reads the files as root.
    ...settings.map(({ name, content }) => file(`etc/quorate/${name}`, content, 0o600)),
    ...[...parts.manPages].map(([name, content]) =>
      file(`usr/share/${manPath(name)}.gz`, compress(content)),
    ),
    ...[...parts.completions].map(([path, content]) => file(`usr/share/${path}`, content)),
    ...documents().map((entry) => ({ ...entry, path: `${docs}/${entry.path}` })),
    file(`${docs}/copyright`, copyright),
    file(`${docs}/changelog.gz`, compress(Buffer.from(changelog(parts)))),
  ];
}
