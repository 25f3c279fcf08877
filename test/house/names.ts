/**
 * Distinct names and short parameter lists: a package exports a class or type under one name once,
 * and a constructor takes at most five parameters. What needs more takes (options, deps).
 */
import { codeOnly } from "./scan.ts";
import { type Finding, isCode, lineAt, type SourceFile } from "./tree.ts";

/** Parameters that a constructor may have. */
const maxParameters = 5;

/** Classes of which one object is made for each call: an options object would be a second one. */
const perCall: ReadonlySet<string> = new Set(["StreamingCall", "UnaryCall"]);

/** The shipped code of a package without generated code, which is named by etcd's proto files. */
function packageOf(path: string): string | undefined {
  if (path.startsWith("packages/proto/src/gen/")) return undefined;
  return /^packages\/([\w-]+)\/(?:src|node)\//.exec(path)?.[1];
}

/** A class or type that two files of a package export under one name. */
export function checkExportedNames(files: readonly SourceFile[]): Finding[] {
  const first = new Map<string, string>();
  return files.filter(isCode).flatMap((file) => {
    const owner = packageOf(file.path);
    if (owner === undefined) return [];
    return declarations(file).flatMap(({ name, line }) => {
      const key = `${owner} ${name}`;
      const other = first.get(key) ?? file.path;
      first.set(key, other);
      if (other === file.path) return [];
      const what = `${name} is also exported by ${other}: choose a name that says which one it is`;
      return [{ where: `${file.path}:${line}`, what }];
    });
  });
}

function declarations(file: SourceFile): { name: string; line: number }[] {
  const declared = /^export (?:abstract )?(?:class|interface|type) (\w+)/gm;
  return [...codeOnly(file.text).matchAll(declared)].map((match) => ({
    name: match[1],
    line: lineAt(file.text, match.index),
  }));
}

/** A constructor with more than five parameters. */
export function checkConstructors(files: readonly SourceFile[]): Finding[] {
  return files.filter(isCode).flatMap((file) => {
    if (packageOf(file.path) === undefined) return [];
    const code = codeOnly(file.text);
    return [...code.matchAll(/\bconstructor\(/g)].flatMap((match) => {
      const owner = [...code.slice(0, match.index).matchAll(/\bclass (\w+)/g)].at(-1)?.[1] ?? "";
      const count = parametersAt(code, match.index + match[0].length);
      if (count <= maxParameters || perCall.has(owner)) return [];
      const what = `${owner} takes ${count} parameters: use (options, deps)`;
      return [{ where: `${file.path}:${lineAt(file.text, match.index)}`, what }];
    });
  });
}

/** The number of parameters of a list whose first character is at `start`. */
function parametersAt(code: string, start: number): number {
  let depth = 1;
  let isEmpty = true;
  let count = 0;
  for (let i = start; i < code.length && depth > 0; i++) {
    const character = code[i];
    if ("([{<".includes(character)) depth++;
    // The ">" of an arrow closes nothing.
    else if (")]}".includes(character) || (character === ">" && code[i - 1] !== "=")) depth--;
    else if (depth === 1 && character === ",") {
      if (!isEmpty) count++;
      isEmpty = true;
      continue;
    }
    if (depth > 0 && character.trim() !== "") isEmpty = false;
  }
  return isEmpty ? count : count + 1;
}
