import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, writeU64BE } from "@quorate/proto";
import { StoreDamageError } from "../src/backend/errors.ts";
import { readStorageVersion, STORAGE_VERSION, StorageVersionError } from "../src/backend/meta.ts";

function versionOf(record: Uint8Array | undefined): number {
  const name = "quorate_storage_version";
  const isName = (key: Uint8Array) => Buffer.compare(key, fromUtf8(name)) === 0;
  return readStorageVersion((key) => (isName(key) ? record : undefined), "/data/store");
}

function u64(version: number): Uint8Array {
  const bytes = new Uint8Array(8);
  writeU64BE(bytes, version);
  return bytes;
}

test("no record is version 0; up to this release's the number; a later one is refused", () => {
  assert.equal(versionOf(undefined), 0);
  assert.equal(versionOf(u64(STORAGE_VERSION)), STORAGE_VERSION);
  assert.throws(() => versionOf(u64(STORAGE_VERSION + 1)), StorageVersionError);
  assert.throws(
    () => versionOf(u64(Number.MAX_SAFE_INTEGER)),
    /\/data\/store: .*quoratectl member/,
  );
});

test("a record that is no version is damage, with its place", () => {
  for (const bytes of [new Uint8Array(0), new Uint8Array(7), new Uint8Array(8).fill(0xff)]) {
    assert.throws(() => versionOf(bytes), StoreDamageError);
    assert.throws(() => versionOf(bytes), /bucket meta, key quorate_storage_version/);
  }
});
