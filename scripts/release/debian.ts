/**
 * A Debian package, written without Debian's tools: an ar archive of debian-binary ("2.0"),
 * control.tar.gz and data.tar.gz. The scripts that dpkg runs are in deploy/package/debian.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./programs.ts";
import { ar, type Entry, tar, withDirectories } from "./tar.ts";

/** What the control file says besides constants. */
export interface DebianOptions {
  readonly version: string;
  /** Debian's name of the processor. */
  readonly architecture: string;
  readonly mtimeSeconds: number;
  readonly compress: (content: Uint8Array) => Uint8Array;
}

/** What Node needs of the system; the versions are those of its own symbols (readelf -V). */
const DEPENDS = "libc6 (>= 2.28), libstdc++6 (>= 8), libgcc-s1, libatomic1, passwd";

/** Who answers for the package. */
export const MAINTAINER = "The Quorate authors <quorate@localhost>";

const SCRIPTS = ["postinst", "prerm", "postrm"];

/** The package with these files (paths without the first slash). */
export function debianPackage(files: readonly Entry[], options: DebianOptions): Buffer {
  const inPackage = withDirectories(files.map((entry) => ({ ...entry, path: `./${entry.path}` })));
  const size = inPackage.reduce(
    (total, entry) => total + Math.ceil((entry.content?.length ?? 1) / 1024),
    0,
  );
  const control = [
    "Package: quorate",
    `Version: ${options.version}`,
    `Architecture: ${options.architecture}`,
    `Maintainer: ${MAINTAINER}`,
    `Installed-Size: ${size}`,
    `Depends: ${DEPENDS}`,
    "Recommends: systemd",
    "Section: database",
    "Priority: optional",
    "Description: clustered key-value store with etcd's API",
    " Quorate keeps small, important data consistent on several machines: it speaks",
    " the v3 protocol of etcd, so that every program made for etcd works with it.",
    " .",
    " The package brings the member (quorate), its command lines (quoratectl,",
    " quorateutl), a local cluster to try (quorate-cluster), and units for systemd,",
    " which are not started before /etc/quorate/quorate.env has been filled in.",
    "",
  ].join("\n");
  const sums = files
    .filter((entry) => entry.content !== undefined)
    .map((entry) => `${createHash("md5").update(entry.content!).digest("hex")}  ${entry.path}\n`)
    .sort((a, b) => (a.slice(34) < b.slice(34) ? -1 : 1));
  const settings = files
    .filter((entry) => entry.path.startsWith("etc/"))
    .map((entry) => `/${entry.path}\n`);
  const text = (path: string, content: string | Buffer, mode = 0o644): Entry => ({
    path: `./${path}`,
    mode,
    content: Buffer.from(content),
  });
  const controlFiles = withDirectories([
    text("control", control),
    text("md5sums", sums.join("")),
    text("conffiles", settings.sort().join("")),
    ...SCRIPTS.map((name) =>
      text(name, readFileSync(join(root, "deploy/package/debian", name)), 0o755),
    ),
  ]);
  const packed = (entries: readonly Entry[]): Uint8Array =>
    options.compress(tar(entries, options.mtimeSeconds));
  return ar(
    [
      { name: "debian-binary", content: Buffer.from("2.0\n") },
      { name: "control.tar.gz", content: packed(controlFiles) },
      { name: "data.tar.gz", content: packed(inPackage) },
    ],
    options.mtimeSeconds,
  );
}
