/**
 * The lists of docs/internals/architecture.md are the files that run because of a request today.
 * @slow
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ROOT } from "../../scripts/dev/commands.ts";
import { listedFiles, sectionOf, withSection } from "../../scripts/dev/path/docs.ts";
import { KINDS } from "../../scripts/dev/path/kinds.ts";
import { measurePath } from "../../scripts/dev/path/measure.ts";

const page = readFileSync(join(ROOT, "docs/internals/architecture.md"), "utf8");

/** A busy machine makes some files run that an idle one does not need, such as those of pauses. */
const MAX_DIFFERENT_FILES = 8;
const ATTEMPTS = 3;

for (const kind of Object.keys(KINDS)) {
  test(`${kind}: the files that the page lists are there`, () => {
    const listed = listedFiles(page, kind);
    assert.ok(listed.size > 5);
    for (const path of listed) assert.ok(existsSync(join(ROOT, path)), path);
  });
}

/** What every put runs through, in order: it is checked before it is proposed. */
const PARTS_OF_A_PUT = [
  "/grpc/calls.ts",
  "/services/src/v3/kv.ts",
  "/requests/put.ts",
  "/member/src/loop/proposals.ts",
  "/wal/src/encoder.ts",
  "/store/src/apply.ts",
];

/** Whether the parts of a put ran in their order; a tick of the member may come before one. */
function inOrder(kind: string, files: readonly { readonly path: string }[]): boolean {
  if (kind !== "put") return true;
  const places = PARTS_OF_A_PUT.map((end) => files.findIndex(({ path }) => path.endsWith(end)));
  return !places.includes(-1) && places.every((place, i) => i === 0 || place > places[i - 1]!);
}

describe("measured", () => {
  for (const kind of ["put", "keep-alive"] as const) {
    test(`${kind}: the files that run are those that the page lists`, async () => {
      const listed = listedFiles(page, kind);
      let different: string[] = [];
      let ran = new Set<string>();
      let files: Awaited<ReturnType<typeof measurePath>> = [];
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        files = await measurePath(kind);
        ran = new Set(files.map(({ path }) => path));
        const all = [...new Set([...ran, ...listed])];
        different = all.filter((path) => !ran.has(path) || !listed.has(path));
        if (different.length <= MAX_DIFFERENT_FILES && inOrder(kind, files)) break;
      }
      assert.ok(
        different.length <= MAX_DIFFERENT_FILES,
        `run ./dev path ${kind} --write; these differ:\n${different.join("\n")}`,
      );
      assert.ok(inOrder(kind, files), files.map(({ path }) => path).join("\n"));
      // The list of a page can be read again.
      assert.deepEqual(listedFiles(withSection(page, kind, sectionOf(kind, files)), kind), ran);
    });
  }
});
