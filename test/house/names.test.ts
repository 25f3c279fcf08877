/** The rules of names.ts find a violation planted for each, and leave clean code alone. */
import { describe, test } from "node:test";
import { checkConstructors, checkExportedNames } from "./names.ts";
import { clean, finds } from "./planted.ts";

describe("names", () => {
  const at = "packages/wal/src/a.ts";
  test("a name that two files of a package export", () => {
    const texts = {
      [at]: "export class Part {}",
      "packages/wal/src/b.ts": "export type Part = 1;",
    };
    finds(checkExportedNames, texts, "packages/wal/src/b.ts:1", /Part is also exported by .*a\.ts/);
    clean(checkExportedNames, {
      [at]: "export class Part {}",
      "packages/raft/src/b.ts": "export class Part {}",
    });
  });

  test("a constructor of six parameters", () => {
    const six =
      "class Wide {\n  constructor(a: () => void, b: Map<A, B>, c: D, d: E, e: F, f: G) {}\n}";
    finds(checkConstructors, { [at]: six }, `${at}:2`, /Wide takes 6 parameters/);
    clean(checkConstructors, {
      [at]: "class Fit {\n  constructor(a: (b: C, d: E) => F, g: H<I, J>, k: L, m: N, o: P) {}\n}",
    });
  });
});
