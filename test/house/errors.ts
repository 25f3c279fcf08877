/**
 * The convention of packages/proto/src/wire/coded-error.ts and invariant.ts: one form for error
 * classes, one assertion.
 */
import { codeOnly } from "./scan.ts";
import { type Finding, isCode, lineAt, type SourceFile } from "./tree.ts";

/** Classes that extend Error itself, or its form without a stack, with the reason. */
const outside: ReadonlyMap<string, string> = new Map([
  ["CodedError", "the base class"],
  ["StacklessError", "the base of EtcdError and StatusError"],
  ["EtcdError", "its code names an entry of etcd's catalogue"],
  ["ClientError", "its code names an entry of etcd's catalogue, or a gRPC status"],
  ["StatusError", "its code is gRPC's number"],
  ["LinkError", "its code is gRPC's number"],
  ["Exit", "its code is the exit code of the process"],
  ["DiskError", "packages/host imports nothing; the class has the same form"],
]);

/** Error classes that have not been brought to the convention yet. The list only shrinks. */
const pending: ReadonlySet<string> = new Set(["Crash", "Violation"]);

function isShipped(path: string): boolean {
  return /^packages\/[\w-]+\/(?:index\.ts|src\/|node\/)/.test(path);
}

/** A class of the shipped code that extends Error and has no reason to. */
export function checkErrorClasses(files: readonly SourceFile[]): Finding[] {
  return files
    .filter((file) => isCode(file) && isShipped(file.path))
    .flatMap((file) =>
      [...codeOnly(file.text).matchAll(/\bclass (\w+)(?:<[^{]*>)? extends (?:Stackless)?Error\b/g)]
        .filter(([, name]) => !outside.has(name) && !pending.has(name))
        .map((match) => ({
          where: `${file.path}:${lineAt(file.text, match.index)}`,
          what: `${match[1]} extends Error: extend CodedError of @quorate/proto`,
        })),
    );
}

/** An invariant that is enforced in no file of its package, or in more than one. */
export function checkInvariants(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((list) => {
    const sources = /^(packages\/[\w-]+\/src\/)invariants\.ts$/.exec(list.path)?.[1];
    if (sources === undefined) return [];
    const others = files.filter((file) => file.path.startsWith(sources) && file !== list);
    return [...list.text.matchAll(/^ {2}"([A-Z]+-\d+)":/gm)].flatMap(([, number]) => {
      const enforcing = others
        .filter((file) => file.text.includes(`"${number}"`))
        .map((file) => file.path);
      return enforcing.length === 1
        ? []
        : [
            {
              where: list.path,
              what: `${number} is enforced in ${enforcing.join(", ") || "no file"}`,
            },
          ];
    });
  });
}
