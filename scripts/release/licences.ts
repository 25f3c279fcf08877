/**
 * The licences of what is in an archive: Node's (which holds those of all that Node contains), and
 * those of the bundled packages.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./programs.ts";

/** One licence text: whose it is and under which file name it is kept. */
export interface Licence {
  readonly file: string;
  /** A line of NOTICE. */
  readonly what: string;
  readonly text: Uint8Array;
}

const inClassicLevel = "node_modules/classic-level/deps";

/** Licences of parts that are compiled into others. */
const compiledIn = [
  {
    name: "leveldb",
    path: `${inClassicLevel}/leveldb/leveldb-1.20/LICENSE`,
    what: "LevelDB, in classic-level.node (BSD-3-Clause)",
  },
  {
    name: "snappy",
    path: `${inClassicLevel}/snappy/snappy/COPYING`,
    what: "Snappy, in classic-level.node (BSD-3-Clause)",
  },
];

/**
 * The licences for an archive with these npm packages and the Node of `nodeDirectory`. Throws for a
 * package that brings no licence text.
 */
export function collectLicences(
  packages: readonly string[],
  nodeDirectory: string,
  nodeVersion: string,
  nodeLicence: Uint8Array = readFileSync(join(nodeDirectory, "LICENSE")),
): Licence[] {
  const found: Licence[] = [
    {
      file: `node-${nodeVersion}.txt`,
      what: `Node.js ${nodeVersion} and all that it contains`,
      text: nodeLicence,
    },
  ];
  for (const name of packages) {
    const directory = join(root, "node_modules", name);
    const { version, license } = JSON.parse(
      readFileSync(join(directory, "package.json"), "utf8"),
    ) as {
      version: string;
      license?: string;
    };
    const file = readdirSync(directory).find((entry) =>
      /^(?:licen[cs]e|copying)(?:\.\w+)?$/i.test(entry),
    );
    if (file === undefined)
      throw new Error(
        `${name} ${version} brings no licence text; it cannot be passed on without one`,
      );
    found.push({
      file: `${name.replace("/", "__")}-${version}.txt`,
      what: `${name} ${version} (${license ?? "see its text"})`,
      text: readFileSync(join(directory, file)),
    });
  }
  for (const { name, path, what } of packages.includes("classic-level") ? compiledIn : []) {
    if (!existsSync(join(root, path)))
      throw new Error(`${path} is not there any more; where is the licence of ${name}?`);
    found.push({ file: `${name}.txt`, what, text: readFileSync(join(root, path)) });
  }
  return found;
}

/** The text of NOTICE. */
export function noticeText(licences: readonly Licence[], hasLibatomic: boolean): string {
  const lines = licences.map(({ file, what }) => `  ${what}: licences/${file}`);
  if (hasLibatomic) {
    lines.push(
      "  libatomic.so.1 of GCC (GPL-3.0-or-later with the GCC Runtime Library Exception 3.1), unchanged, as a shared library;",
      "  its source is that of the package gcc of the Debian release that it comes from",
    );
  }
  const head = "Quorate, a clustered key-value store with etcd's API. Apache License 2.0: LICENSE.";
  return [head, "", "This archive contains:", "", ...lines, ""].join("\n");
}
