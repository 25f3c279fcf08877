/**
 * A bug that the fuzzer must find: loaded before a member (NODE_OPTIONS=--import), it makes the
 * member propose unchecked, and end on what it cannot decode, as version 0.1 did.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { changeSource } from "@quorate/host/testing";

const CHANGES: readonly (readonly [file: string, before: string, after: string])[] = [
  [
    "packages/member/src/entry-points.ts",
    `message = decoded ?? decodeRequest(kind, request, this.#deps.limits);
      const refusal = this.spaceRefusal(kind, message);
      if (refusal !== undefined) return refusal;`,
    "message = decoded as RequestOf<K>;",
  ],
  ["packages/member/src/entry-points.ts", "checkMessage(kind, message, limits);", ""],
  [
    "packages/store/src/apply.ts",
    "error instanceof WireError ? malformation(data) : undefined",
    "undefined as undefined | InvalidRequestError",
  ],
];

const pathOf = (file: string) => fileURLToPath(new URL(`../../${file}`, import.meta.url));

/** Why the bug cannot be planted any more; undefined if it can. */
export function misplaced(): string | undefined {
  for (const [file, before] of CHANGES) {
    const count = readFileSync(pathOf(file), "utf8").split(before).length - 1;
    if (count !== 1) return `${file} has ${count} places that read: ${before}`;
  }
  return undefined;
}

if (process.env["QUORATE_FUZZ_PLANT"] === "1") {
  for (const [file, before, after] of CHANGES)
    changeSource(pathOf(file), (source) => source.replace(before, () => after));
}
