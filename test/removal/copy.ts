/**
 * A copy of this repository without packages/kube-apiserver: without the folder, and without one
 * line of the program.
 */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ROOT } from "../../scripts/dev/commands.ts";

const FOLDER = "packages/kube-apiserver/";
const PROGRAM = "packages/quorate/node/main.ts";
const NAMES_IT = /@quorate\/kube-apiserver/;

/** The lines of a program without the one that names the package. Throws unless there is one. */
export function withoutLine(text: string): string {
  const lines = text.split("\n");
  const rest = lines.filter((line) => !NAMES_IT.test(line));
  if (rest.length !== lines.length - 1)
    throw new Error(`${lines.length - rest.length} lines of ${PROGRAM} name the package`);
  return rest.join("\n");
}

/** Makes the copy, a repository with all files added. Its directory is the caller's to remove. */
export function copyWithout(): string {
  const copy = mkdtempSync(join(tmpdir(), "quorate-removal-"));
  try {
    const git = (directory: string, ...args: string[]): string =>
      execFileSync("git", args, { cwd: directory, encoding: "utf8", maxBuffer: 1 << 26 });
    const files = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
      .split("\0")
      .filter((path) => path !== "" && !path.startsWith(FOLDER) && existsSync(join(ROOT, path)));
    for (const directory of new Set(files.map(dirname)))
      mkdirSync(join(copy, directory), { recursive: true });
    for (const path of files) copyFileSync(join(ROOT, path), join(copy, path));
    writeFileSync(join(copy, PROGRAM), withoutLine(readFileSync(join(copy, PROGRAM), "utf8")));
    linkModules(copy);
    git(copy, "init", "-q");
    git(copy, "add", "-A");
  } catch (error) {
    rmSync(copy, { recursive: true });
    throw error;
  }
  return copy;
}

/** Links what npm installed, but our packages to those of the copy. */
function linkModules(copy: string): void {
  const [from, to] = [join(ROOT, "node_modules"), join(copy, "node_modules")];
  mkdirSync(join(to, "@quorate"), { recursive: true });
  for (const name of readdirSync(from))
    if (name !== "@quorate" && name !== ".cache") symlinkSync(join(from, name), join(to, name));
  for (const name of readdirSync(join(copy, "packages")))
    symlinkSync(`../../packages/${name}`, join(to, "@quorate", name));
  // Else a package of that name would be looked for in the directories above.
  const nothing = join(to, "@quorate/kube-apiserver");
  mkdirSync(nothing);
  writeFileSync(join(nothing, "package.json"), '{ "exports": {} }');
}
