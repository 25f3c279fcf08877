/** Patches: limits, errors, and that they change nothing but their result. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type KubeObject, MAX_JSON_DEPTH } from "@quorate/kube-storage";
import { applyPatch } from "../../src/apply/apply-patch.ts";
import { caseOf } from "./support/cases.ts";
import type { PatchCase } from "./support/evaluate.ts";
import { STRATEGIC } from "./support/thing.ts";

const JSON_PATCH = "application/json-patch+json";
const MERGE = "application/merge-patch+json";
const STRATEGIC_MERGE = "application/strategic-merge-patch+json";

const OBJECT: KubeObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a" },
  data: { text: "x".repeat(1000) },
};

function refuses(code: number, message: RegExp, run: () => unknown): void {
  assert.throws(run, (error: unknown) => {
    assert.ok(error instanceof ApiError);
    assert.match(error.message, message);
    assert.equal(error.httpStatus, code);
    return true;
  });
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = { a: value };
  return value;
}

test("a JSON patch has at most 10,000 operations", () => {
  const add = { op: "add", path: "/data/a", value: "1" };
  const most = Array.from({ length: 10_000 }, () => add);
  const result = applyPatch(JSON_PATCH, OBJECT, most, undefined) as { data: { a: string } };
  assert.equal(result.data.a, "1");
  refuses(413, /^Request entity too large: The allowed maximum .* is 10000, got 10001$/, () =>
    applyPatch(JSON_PATCH, OBJECT, [...most, add], undefined),
  );
});

test("the copies of a JSON patch add at most 3 MiB", () => {
  // Each copy doubles the data.
  const copies = Array.from({ length: 12 }, (_, at) => ({
    op: "copy",
    from: "/data",
    path: `/data/more${at}`,
  }));
  assert.ok(applyPatch(JSON_PATCH, OBJECT, copies.slice(0, 11), undefined));
  refuses(422, /due to an error in our request/, () =>
    applyPatch(JSON_PATCH, OBJECT, copies, undefined),
  );
});

test("patches and their results are nested at most 1,000 levels", () => {
  const fits = nested(MAX_JSON_DEPTH - 1);
  assert.ok(applyPatch(MERGE, OBJECT, { data: fits }, undefined));
  refuses(400, /nested deeper than 1000 levels/, () =>
    applyPatch(MERGE, OBJECT, { data: nested(MAX_JSON_DEPTH) }, undefined),
  );
  refuses(400, /nested deeper/, () =>
    applyPatch(STRATEGIC_MERGE, OBJECT, { data: nested(100_000) }, STRATEGIC),
  );
  const deep = { op: "add", path: "/data/a", value: nested(900) };
  const below = { op: "add", path: `/data${"/a".repeat(900)}`, value: nested(200) };
  refuses(400, /nested deeper/, () => applyPatch(JSON_PATCH, OBJECT, [deep, below], undefined));
});

test("no patch reaches a prototype", () => {
  const hostile = JSON.parse(
    '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}',
  );
  const merged = applyPatch(MERGE, OBJECT, hostile, undefined) as object;
  assert.deepEqual(Object.getOwnPropertyDescriptor(merged, "__proto__")?.value, { polluted: 1 });
  const data = applyPatch(STRATEGIC_MERGE, OBJECT, { data: hostile }, STRATEGIC) as KubeObject;
  assert.ok(Object.hasOwn(data["data"] as object, "__proto__"));
  for (const path of ["/__proto__/polluted", "/constructor/prototype/polluted"]) {
    refuses(422, /./, () =>
      applyPatch(JSON_PATCH, OBJECT, [{ op: "add", path, value: 1 }], undefined),
    );
  }
  const added = [{ op: "add", path: "/__proto__", value: { polluted: 1 } }];
  assert.ok(Object.hasOwn(applyPatch(JSON_PATCH, OBJECT, added, undefined) as object, "__proto__"));
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
  assert.equal(Object.getPrototypeOf(merged), Object.prototype);
});

/** Freezes all of a value: changing it throws. */
function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null)
    Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}

test("patches change neither the object nor the patch", () => {
  const types = ["json-patch", "merge-patch", "strategic-merge"] as const;
  for (const type of types) {
    for (let seed = 0; seed < 200; seed++) {
      const { document, patch } = frozen(caseOf(type, seed)) as PatchCase;
      const media = type === "strategic-merge" ? STRATEGIC_MERGE : `application/${type}+json`;
      try {
        applyPatch(media as typeof MERGE, document as KubeObject, patch, STRATEGIC);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
      }
    }
  }
});

test("malformed patches are refused with Kubernetes' texts", () => {
  refuses(400, /^Invalid JSON Patch$/, () => applyPatch(MERGE, OBJECT, 1, undefined));
  refuses(
    400,
    /^error decoding patch: json: cannot unmarshal object into Go value of type \[\]handlers/,
    () => applyPatch(JSON_PATCH, OBJECT, {}, undefined),
  );
  refuses(400, /cannot unmarshal string into Go value of type handlers.jsonPatchOp$/, () =>
    applyPatch(JSON_PATCH, OBJECT, ["a"], undefined),
  );
  refuses(400, /into Go value of type map\[string\]interface \{\}$/, () =>
    applyPatch(STRATEGIC_MERGE, OBJECT, [], STRATEGIC),
  );
  refuses(400, /^strategic merge patch format is not supported$/, () =>
    applyPatch(STRATEGIC_MERGE, OBJECT, {}, undefined),
  );
  const texts: readonly [unknown, RegExp][] = [
    [
      { items: [{ value: "a" }] },
      /^map: map\[value:a\] does not contain declared merge key: name$/,
    ],
    [
      { items: [{ name: "a", $patch: "x" }] },
      /^unknown patch type: x in map: map\[\$patch:x name:a\]$/,
    ],
    [{ more: { a: 1 } }, /^unable to find api field in struct thing for the json field "more"$/],
    [{ $patch: "x" }, /^unknown patch type: x in map: map\[\$patch:x\]$/],
  ];
  const document = { ...OBJECT, items: [{ name: "b" }], more: { b: 1 } };
  for (const [patch, text] of texts) {
    refuses(500, text, () => applyPatch(STRATEGIC_MERGE, document, patch, STRATEGIC));
  }
});

test("long merged lists take linear time", () => {
  const items = Array.from({ length: 20_000 }, (_, at) => ({ name: `n${at}`, value: "a" }));
  const patch = {
    items: items.toReversed().map(({ name }) => ({ name, value: "b" })),
    "$setElementOrder/items": items.toReversed().map(({ name }) => ({ name })),
  };
  const result = applyPatch(STRATEGIC_MERGE, { ...OBJECT, items }, patch, STRATEGIC) as KubeObject;
  const list = result["items"] as { name: string; value: string }[];
  assert.equal(list.length, 20_000);
  assert.deepEqual(list[0], { name: "n19999", value: "b" });
});
