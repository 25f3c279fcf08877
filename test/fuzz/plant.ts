/**
 * A bug that the fuzzer must find: loaded before a member (NODE_OPTIONS=--import), it makes the
 * member propose unchecked, and end on what it cannot decode, as version 0.1 did.
 */
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";

const CHANGES: readonly (readonly [file: string, before: string, after: string])[] = [
  [
    "packages/server/src/member/entry-points.ts",
    `const message = decoded ?? decodeRequest(kind, request, limits);
      const refusal = this.spaceRefusal(kind, message);
      if (refusal !== undefined) return refusal;
      checkMessage(kind, message, limits);`,
    "",
  ],
  [
    "packages/store/src/apply.ts",
    "error instanceof WireError ? malformation(data) : undefined",
    "undefined as undefined | InvalidRequestError",
  ],
];

/** Why the bug cannot be planted any more; undefined if it can. */
export function misplaced(): string | undefined {
  for (const [file, before] of CHANGES) {
    const count =
      readFileSync(new URL(`../../${file}`, import.meta.url), "utf8").split(before).length - 1;
    if (count !== 1) return `${file} has ${count} places that read: ${before}`;
  }
  return undefined;
}

if (process.env["QUORATE_FUZZ_PLANT"] === "1") {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      const change = url.startsWith("file:")
        ? CHANGES.find(([file]) => fileURLToPath(url).endsWith(file))
        : undefined;
      if (change === undefined) return loaded;
      const source =
        typeof loaded.source === "string"
          ? loaded.source
          : new TextDecoder().decode(loaded.source as Uint8Array);
      return { ...loaded, source: source.replace(change[1], () => change[2]) };
    },
  });
}
