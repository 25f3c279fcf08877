/** Rules for metadata; the texts are kube-apiserver's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { semanticEqual } from "../../src/meta/equality.ts";
import { nameIsDnsSubdomain } from "../../src/meta/names.ts";
import type { ObjectMeta } from "../../src/meta/object.ts";
import {
  validateObjectMeta,
  validateObjectMetaUpdate,
} from "../../src/meta/object-meta-validation.ts";
import type { FieldError } from "../../src/meta/status.ts";
import { metaTime, microTime, parseTime } from "../../src/meta/time.ts";

const shown = (errors: readonly FieldError[]): string[] =>
  errors.map(({ field, message }) => `${field}: ${message}`);

function problems(meta: ObjectMeta, namespaced = true): string[] {
  const whole = { name: "a", namespace: "default", ...meta };
  return shown(validateObjectMeta(whole, namespaced, nameIsDnsSubdomain));
}

test("Namespaces and generation", () => {
  assert.deepEqual(problems({}), []);
  assert.deepEqual(problems({ namespace: "" }), ["metadata.namespace: Required value"]);
  assert.match(problems({ namespace: "A" })[0], /^metadata.namespace: Invalid value: "A": a low/);
  assert.deepEqual(problems({}, false), [
    "metadata.namespace: Forbidden: not allowed on this type",
  ]);
  assert.deepEqual(problems({ generation: -1 }), [
    "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
  ]);
});

test("Labels, annotations and finalizers", () => {
  assert.match(
    problems({ labels: { "a b": "c d" } })[1],
    /^metadata.labels: Invalid value: "c d":/,
  );
  assert.deepEqual(problems({ annotations: { "Example.ORG/A": "any text" } }), []);
  assert.deepEqual(problems({ annotations: { "/x": "y" } }), [
    'metadata.annotations: Invalid value: "/x": prefix part must be non-empty',
  ]);
  const fits = { big: "x".repeat(256 * 1024 - 3) };
  assert.deepEqual(problems({ annotations: fits }), []);
  assert.deepEqual(problems({ annotations: { ...fits, b: "" } }), [
    "metadata.annotations: Too long: may not be more than 262144 bytes",
  ]);
  assert.deepEqual(problems({ finalizers: ["example.org/a", "orphan", "foregroundDeletion"] }), [
    'metadata.finalizers: Invalid value: ["example.org/a","orphan","foregroundDeletion"]: ' +
      "finalizer orphan and foregroundDeletion cannot be both set",
  ]);
  assert.equal(problems({ finalizers: ["a b"] }).length, 1);
});

test("Owner references", () => {
  const owner = { apiVersion: "v1", kind: "Pod", name: "p", uid: "u" };
  assert.deepEqual(problems({ ownerReferences: [owner] }), []);
  const empty = { apiVersion: "", kind: "", name: "", uid: "" };
  assert.deepEqual(problems({ ownerReferences: [empty] }), [
    'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
    'metadata.ownerReferences.kind: Invalid value: "": must not be empty',
    'metadata.ownerReferences.name: Invalid value: "": must not be empty',
    'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
  ]);
  assert.match(
    problems({ ownerReferences: [{ ...owner, kind: "Event" }] })[0],
    /: \/v1, Kind=Event is disallowed from being an owner$/,
  );
  const controllers = [
    { ...owner, controller: true },
    { ...owner, name: "q", controller: true },
  ];
  assert.match(
    problems({ ownerReferences: controllers })[0],
    /: Only one reference can have Controller set to true. Found "true" in references for Pod\/p and Pod\/q$/,
  );
});

test("managedFields", () => {
  const entry = { operation: "Apply", fieldsType: "FieldsV1", manager: "m" };
  assert.deepEqual(problems({ managedFields: [entry, { operation: "Update" }] }), []);
  const bad = {
    operation: "Foo",
    fieldsType: "V2",
    manager: `a\n${"b".repeat(128)}`,
    subresource: "s".repeat(257),
  };
  assert.deepEqual(
    problems({ managedFields: [bad] }).map((text) => text.replace(/"a\\nb+"/, "M")),
    [
      'metadata.managedFields[0].operation: Invalid value: "Foo": must be `Apply` or `Update`',
      'metadata.managedFields[0].fieldsType: Invalid value: "V2": must be `FieldsV1`',
      "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
      "metadata.managedFields[0].manager: Invalid value: M: invalid character U+000A (at position 1)",
      "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
    ],
  );
});

test("Changes of metadata", () => {
  const old: ObjectMeta = {
    name: "a",
    namespace: "n",
    uid: "u",
    resourceVersion: "1",
    generation: 2,
    creationTimestamp: "2026-01-01T00:00:00Z",
  };
  assert.deepEqual(validateObjectMetaUpdate(old, old), []);
  const changed = {
    name: "b",
    namespace: "m",
    uid: "v",
    generation: 1,
    deletionGracePeriodSeconds: 3,
  };
  assert.deepEqual(shown(validateObjectMetaUpdate(changed, old)), [
    'metadata.resourceVersion: Invalid value: "": must be specified for an update',
    "metadata.generation: Invalid value: 1: must not be decremented",
    'metadata.name: Invalid value: "b": field is immutable',
    'metadata.namespace: Invalid value: "m": field is immutable',
    'metadata.uid: Invalid value: "v": field is immutable',
    "metadata.creationTimestamp: Invalid value: null: field is immutable",
    "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
  ]);
});

test("Times", () => {
  const ms = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  assert.equal(metaTime(ms), "2026-01-02T03:04:05Z");
  assert.equal(microTime(ms + 0.25), "2026-01-02T03:04:05.678250Z");
  assert.equal(parseTime("2026-01-02T03:04:05.678Z"), ms);
  assert.equal(parseTime("2026-01-02T05:04:05.678+02:00"), ms);
  for (const bad of ["", "2026-01-02", "2026-13-02T03:04:05Z", 5, undefined]) {
    assert.equal(parseTime(bad), undefined, String(bad));
  }
});

test("Absent, null and empty values are equal, others are not", () => {
  assert.equal(semanticEqual({ a: {}, b: null, c: [] }, {}), true);
  assert.equal(semanticEqual({ a: { b: [1, { c: "d" }] } }, { a: { b: [1, { c: "d" }] } }), true);
  for (const [a, b] of [
    [{ a: 1 }, { a: 2 }],
    [{ a: 0 }, {}],
    [{ a: "" }, {}],
    [
      [1, 2],
      [2, 1],
    ],
    [[1], { 0: 1 }],
    [{ a: 1 }, { a: 1, b: 2 }],
  ]) {
    assert.equal(semanticEqual(a, b), false, JSON.stringify([a, b]));
    assert.equal(semanticEqual(b, a), false, JSON.stringify([b, a]));
  }
});
