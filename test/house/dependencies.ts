/**
 * Dependencies: pinned to one version, locked, justified by a row of
 * docs/internals/dependencies.md, imported only from the places that the row names, and never
 * imported undeclared. A row reads
 *
 *   | `undici` | scripts, test, ctl | HTTP calls with client certificates |
 *
 * where the second cell lists the packages and top directories that may import it, or "tool"
 * for one that is run, not imported.
 */
import { isRemoved } from "../../scripts/contributed.ts";
import { importsOf, npmPackageOf, packageOf } from "./imports.ts";
import type { Finding, SourceFile } from "./tree.ts";

const documentPath = "docs/internals/dependencies.md";
const sections = [
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
] as const;

interface Declared {
  readonly name: string;
  readonly version: string;
  readonly manifest: string;
}

interface Row {
  readonly places: readonly string[];
  readonly reason: string;
}

/** All of the rule's findings. */
export function checkDependencies(files: readonly SourceFile[]): Finding[] {
  const declared = declaredIn(files);
  const rows = rowsOf(files.find((file) => file.path === documentPath)?.text ?? "");
  return [
    ...checkPins(declared),
    ...checkLock(files),
    ...checkRows(declared, rows),
    ...checkUse(files, declared, rows),
  ];
}

function declaredIn(files: readonly SourceFile[]): Declared[] {
  return files
    .filter((file) => /^(?:packages\/[\w-]+\/)?package\.json$/.test(file.path))
    .flatMap((file) => {
      const manifest = JSON.parse(file.text) as Record<string, Record<string, string> | undefined>;
      return sections.flatMap((section) =>
        Object.entries(manifest[section] ?? {})
          .filter(([name]) => !name.startsWith("@quorate/"))
          .map(([name, version]) => ({ name, version, manifest: file.path })),
      );
    });
}

function rowsOf(text: string): Map<string, Row> {
  const rows = new Map<string, Row>();
  for (const match of text.matchAll(/^\| `([^`]+)` +\| ([^|]+) \| ([^|]+) \|$/gm)) {
    rows.set(match[1], {
      places: match[2].split(",").map((place) => place.trim()),
      reason: match[3].trim(),
    });
  }
  return rows;
}

function checkPins(declared: readonly Declared[]): Finding[] {
  return declared
    .filter((one) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(one.version))
    .map((one) => ({ where: one.manifest, what: `${one.name} is not pinned: "${one.version}"` }));
}

/**
 * `npm ci` refuses a lock file that does not hold every package of ours with just what it declares.
 */
function checkLock(files: readonly SourceFile[]): Finding[] {
  const text = files.find((file) => file.path === "package-lock.json")?.text;
  if (text === undefined) return [{ where: "package-lock.json", what: "is missing" }];
  type Manifest = Readonly<Record<string, Record<string, string> | undefined>>;
  const { packages } = JSON.parse(text) as { packages: Record<string, Manifest | undefined> };
  return files
    .filter((file) => /^(?:packages\/[\w-]+\/)?package\.json$/.test(file.path))
    .flatMap((file) => {
      const manifest = JSON.parse(file.text) as Manifest;
      const locked = packages[file.path.replace(/\/?package\.json$/, "")];
      const listOf = (one: Manifest | undefined): string =>
        JSON.stringify(
          sections.map((section) =>
            Object.entries(one?.[section] ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)),
          ),
        );
      if (locked !== undefined && listOf(locked) === listOf(manifest)) return [];
      return [
        {
          where: "package-lock.json",
          what: `is older than ${file.path}: run npm install --package-lock-only`,
        },
      ];
    });
}

function checkRows(declared: readonly Declared[], rows: ReadonlyMap<string, Row>): Finding[] {
  const names = new Set(declared.map((one) => one.name));
  const missing = [...names].filter((name) => (rows.get(name)?.reason.length ?? 0) < 10);
  const stale = [...rows.keys()].filter((name) => !names.has(name));
  return [
    ...missing.map((name) => ({ where: documentPath, what: `no row says why ${name} is there` })),
    ...stale.map((name) => ({
      where: documentPath,
      what: `${name} has a row but no package.json declares it`,
    })),
  ];
}

function checkUse(
  files: readonly SourceFile[],
  declared: readonly Declared[],
  rows: ReadonlyMap<string, Row>,
): Finding[] {
  const findings: Finding[] = [];
  const used = new Set<string>();
  for (const one of importsOf(files)) {
    const name = npmPackageOf(one.specifier);
    if (name === undefined) continue;
    used.add(name);
    const where = `${one.from.path}:${one.line}`;
    const importer = packageOf(one.from.path);
    const manifests = ["package.json", `packages/${importer}/package.json`];
    if (!declared.some((other) => other.name === name && manifests.includes(other.manifest))) {
      findings.push({ where, what: `imports ${name}, which no package.json declares` });
    } else if (!/^packages\/[\w-]+\/test\//.test(one.from.path)) {
      const place = importer ?? one.from.path.split("/")[0];
      const row = rows.get(name);
      if (row !== undefined && !row.places.includes(place))
        findings.push({ where, what: `${documentPath} does not let ${place} import ${name}` });
    }
  }
  for (const [name, row] of rows) {
    const isNeeded = row.places.every((place) => !isRemoved(`packages/${place}`));
    if (!used.has(name) && !row.places.includes("tool") && isNeeded)
      findings.push({ where: documentPath, what: `${name} is declared but nothing imports it` });
  }
  return findings;
}
