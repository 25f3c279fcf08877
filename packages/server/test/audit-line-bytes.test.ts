/** Lines that are written as bytes: the same bytes as the text's, for every call that is plain. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import fc from "fast-check";
import { auditLine, MAX_SHOWN_BYTES } from "../src/audit/line.ts";
import {
  isPlainCall,
  LineWriter,
  MAX_KNOWN_CALLERS,
  type PlainCall,
} from "../src/audit/line-bytes.ts";

const text = fc.oneof(fc.string(), fc.string({ unit: "grapheme" }), fc.constant("ann"));
const key = fc
  .oneof(text, fc.constant("\0"), fc.constant("k".repeat(MAX_SHOWN_BYTES + 1)), fc.constant(""))
  .map(fromUtf8);
const caller = fc.record({
  user: text,
  proof: fc.constantFrom("token", "certificate", ""),
  roles: fc.option(fc.array(text, { maxLength: 20 }), { nil: undefined }),
  address: fc.constantFrom("10.0.0.7:41234", "[::1]:9", '"'),
  certificate: fc.option(text, { nil: undefined }),
});
const call: fc.Arbitrary<PlainCall> = fc.record({
  wallMs: fc.double({ min: 0, max: 4e12, noNaN: true }),
  tookMs: fc.oneof(
    fc.double({ min: 0, max: 2000, noNaN: true }),
    fc.double({ min: -1, max: 1e12, noNaN: true }),
    fc.integer({ min: 0, max: 20_000 }).map((n) => n / 1000),
  ),
  caller,
  path: fc.constantFrom("/etcdserverpb.KV/Put", "/etcdserverpb.KV/Range"),
  access: fc.record({ op: fc.constantFrom("get", "put", "delete"), key, end: key }),
  revision: fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, 9, 10, 999, 1000)),
});

function textOf(plain: PlainCall): string {
  const { access, ...rest } = plain;
  const verdict = { verdict: "ok", code: "OK" } as const;
  return auditLine({ ...rest, ...verdict, subject: { accesses: [access], fields: [] } }, undefined);
}

test("a plain call's line is that of the text, byte for byte, within the space that was asked for", () => {
  const writer = new LineWriter();
  let plain = 0;
  fc.assert(
    fc.property(call, fc.nat({ max: 9 }), (one, at) => {
      if (!isPlainCall(one.access, one.revision, one.tookMs)) return;
      plain++;
      const most = writer.mostBytes(one);
      const bytes = new Uint8Array(at + most);
      const end = writer.write({ bytes, at }, one);
      assert.ok(end <= at + most);
      assert.equal(toUtf8(bytes.subarray(at, end)), `${textOf(one)}\n`);
      assert.ok(bytes.subarray(0, at).every((byte) => byte === 0));
    }),
    { numRuns: 3000, seed: 14 },
  );
  assert.ok(plain > 200, `${plain} plain calls`);
});

test("a call with other bytes in its key, or numbers beyond the bounds, is not plain", () => {
  const access = (name: string, end = "") =>
    ({ op: "put", key: fromUtf8(name), end: fromUtf8(end) }) as const;
  assert.ok(isPlainCall(access("app/1", "app/2"), 7, 0.5));
  for (const name of ['"', "\\", "\0", "\n", "\x7f", "é", "k".repeat(MAX_SHOWN_BYTES + 1)]) {
    assert.ok(!isPlainCall(access(name), 7, 0.5), JSON.stringify(name));
    assert.ok(!isPlainCall(access("a", name), 7, 0.5), JSON.stringify(name));
  }
  assert.ok(!isPlainCall(access("a"), Number.MAX_SAFE_INTEGER, 0.5));
  assert.ok(!isPlainCall(access("a"), 7, -1));
  assert.ok(!isPlainCall(access("a"), 7, 1e10));
});

test("beginnings are remembered by client and method, up to a bound, and never those of another user", () => {
  const writer = new LineWriter();
  const one: PlainCall = {
    wallMs: 0,
    tookMs: 1,
    caller: { user: "ann", proof: "token", address: "a:1", certificate: undefined },
    path: "/etcdserverpb.KV/Put",
    access: { op: "put", key: fromUtf8("k"), end: fromUtf8("") },
    revision: 1,
  };
  const written = (plain: PlainCall): string => {
    const bytes = new Uint8Array(writer.mostBytes(plain));
    return toUtf8(bytes.subarray(0, writer.write({ bytes, at: 0 }, plain)));
  };
  for (const user of ["ann", "bob", "ann"]) {
    const plain = { ...one, caller: { ...one.caller, user } };
    assert.equal(written(plain), `${textOf(plain)}\n`);
  }
  assert.equal(writer.knownCount, 1);
  for (let i = 0; i < MAX_KNOWN_CALLERS + 10; i++) {
    const plain = { ...one, caller: { ...one.caller, address: `b:${i}` } };
    assert.equal(written(plain), `${textOf(plain)}\n`);
  }
  assert.ok(writer.knownCount <= MAX_KNOWN_CALLERS);
});
