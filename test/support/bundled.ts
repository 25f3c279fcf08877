/** Where the bundles of programs for tests lie, and the commands that start them. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { releasePrograms, root } from "../../scripts/release/programs.ts";

const directory = join(root, "node_modules/.cache/quorate-test-bundle");

/**
 * Writes the bundle's files and removes all others. A file that is as it should be stays: another
 * run of the tests may start members from it at this moment.
 */
export function replaceFiles(files: ReadonlyMap<string, Uint8Array>): void {
  mkdirSync(directory, { recursive: true });
  for (const name of readdirSync(directory)) {
    if (!files.has(name)) rmSync(join(directory, name), { recursive: true });
  }
  for (const [name, content] of files) {
    const path = join(directory, name);
    if (existsSync(path) && readFileSync(path).equals(content)) continue;
    const unfinished = `${path}.${process.pid}`;
    writeFileSync(unfinished, content);
    renameSync(unfinished, path);
  }
}

/** The programs that are bundled. */
export const BUNDLED_PROGRAMS = ["quorate", "quoratectl"] as const;

/**
 * The command that starts a bundled program with the flags and variables of its file in bin/;
 * undefined outside of `./dev test` and where there is no bundle.
 */
export function bundledProgram(
  wanted: (typeof BUNDLED_PROGRAMS)[number],
): readonly string[] | undefined {
  const program = join(directory, `${wanted}.mjs`);
  if (process.env["QUORATE_TEST_BUNDLE"] !== "1" || !existsSync(program)) return undefined;
  const { flags, variables } = releasePrograms().find(({ name }) => name === wanted)!;
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  return ["/usr/bin/env", ...settings, process.execPath, "--disable-sigusr1", ...flags, program];
}

/** Makes `file` a program that runs the command with its own arguments. */
export function writeProgram(file: string, command: readonly string[]): void {
  writeFileSync(file, `#!/bin/sh\nexec ${command.join(" ")} "$@"\n`, { mode: 0o755 });
}
