/**
 * The error catalogue against the facts of etcd 3.7: fixtures/errors.tsv has gRPC code, our name,
 * Go's server-side name, text.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ERRORS, type ErrorName, EtcdError, errorNameOf, errorOf } from "../src/errors.ts";
import { GrpcCode } from "../src/grpc-code.ts";

const facts = readFileSync(join(import.meta.dirname, "fixtures/errors.tsv"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => line.split("\t"))
  .map(([grpcCode, name, goName, text]) => ({
    grpcCode: Number(grpcCode),
    name: name as ErrorName,
    goName,
    text,
  }));

test("the catalogue holds every error of etcd 3.7 with its status and text, and nothing else", () => {
  const wanted = facts.map(({ name, grpcCode, text }) => [name, { grpcCode, text }]);
  assert.deepEqual(ERRORS, Object.fromEntries(wanted));
  assert.equal(facts.length, 63);
});

test("an error is found by its text alone", () => {
  for (const { name, text } of facts) assert.equal(errorNameOf(text), name);
  assert.equal(errorNameOf("etcdserver: no such text"), undefined);
  assert.equal(errorNameOf(""), undefined);
});

test("errorOf makes an error with name, status and text", () => {
  for (const { name, grpcCode, text } of facts) {
    const error = errorOf(name);
    assert.ok(error instanceof EtcdError && error instanceof Error);
    assert.deepEqual(
      [error.name, error.code, error.grpcCode, error.message],
      ["EtcdError", name, grpcCode, text],
    );
  }
  const cause = new Error("disk");
  const error = new EtcdError("NoSpace", "etcdserver: quota", { cause });
  assert.deepEqual(
    [error.message, error.cause, error.grpcCode],
    ["etcdserver: quota", cause, GrpcCode.ResourceExhausted],
  );
});
