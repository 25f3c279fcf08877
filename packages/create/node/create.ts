/** Copies an example, a program with its test, into a new directory. */
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

/** The one that others are made from. */
const DEFAULT = "template";

/** Where lines go. */
export interface Output {
  out(line: string): void;
  error(line: string): void;
}

/**
 * Runs `create-quorate DIRECTORY [EXAMPLE]`. Nothing is written over.
 * @param examples the directory of the examples
 * @returns the exit code: 0; 2 for wrong arguments; 1 where the directory holds something
 */
export function createProgram(args: readonly string[], examples: string, output: Output): number {
  const names = readdirSync(examples).filter((name) =>
    existsSync(join(examples, name, "package.json")),
  );
  const [directory, example = DEFAULT] = args;
  if (directory === undefined || directory.startsWith("-") || args.length > 2) {
    output.error("usage: npm create quorate DIRECTORY [EXAMPLE]");
    output.error(`examples: ${names.join(", ")}`);
    return 2;
  }
  if (!names.includes(example)) {
    output.error(`there is no example ${example}; there are ${names.join(", ")}`);
    return 2;
  }
  const target = resolve(directory);
  if (existsSync(target) && readdirSync(target).length > 0) {
    output.error(`${directory} is not empty`);
    return 1;
  }
  cpSync(join(examples, example), target, { recursive: true });
  const manifest = join(target, "package.json");
  const content = JSON.parse(readFileSync(manifest, "utf8")) as object;
  // npm's names have small letters, digits, and some signs.
  const name = basename(target)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-");
  writeFileSync(manifest, `${JSON.stringify({ ...content, name }, null, 2)}\n`);
  output.out(`wrote ${directory} from ${example}; then: cd ${directory}, npm install, npm test`);
  return 0;
}
