/** Lines that are written as bytes: the same bytes as the text's, for every call that is plain. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, PutRequest, RangeRequest, toUtf8 } from "@quorate/proto";
import fc from "fast-check";
import { KeyPlaces } from "../src/audit/key-places.ts";
import { auditLine, MAX_SHOWN_BYTES } from "../src/audit/line.ts";
import {
  callerOfLine,
  LineWriter,
  MAX_KNOWN_CALLERS,
  type PlainCall,
} from "../src/audit/line-bytes.ts";
import type { LineSpace } from "../src/audit/settings.ts";

const METHODS = [
  { path: "/etcdserverpb.KV/Put", op: "put" },
  { path: "/etcdserverpb.KV/Range", op: "get" },
] as const;

/** Takes one line, in space of just the size that was asked for, behind some other bytes. */
class OneLine {
  readonly #before: number;
  line: string | undefined;
  #space: LineSpace | undefined;
  hasSpace = true;

  constructor(before = 0) {
    this.#before = before;
  }

  space(mostBytes: number): LineSpace | undefined {
    if (!this.hasSpace) return undefined;
    this.#space = { bytes: new Uint8Array(this.#before + mostBytes), at: this.#before };
    return this.#space;
  }

  wrote(end: number): void {
    const { bytes, at } = this.#space!;
    assert.ok(end <= bytes.length);
    assert.ok(bytes.subarray(0, at).every((byte) => byte === 0));
    this.line = toUtf8(bytes.subarray(at, end));
  }
}

interface Case {
  readonly wallMs: number;
  readonly tookMs: number;
  readonly identity: PlainCall["identity"];
  readonly address: string;
  readonly certificate: string | undefined;
  readonly subject: string | undefined;
  readonly method: (typeof METHODS)[number];
  readonly key: Uint8Array;
  readonly end: Uint8Array;
  readonly revision: number;
}

function keysOf({ method, key, end }: Case): KeyPlaces {
  const keys = new KeyPlaces();
  const isPut = method.op === "put";
  const request = isPut
    ? PutRequest.encode({ key, value: fromUtf8("v") })
    : RangeRequest.encode({ key, rangeEnd: end, limit: 7 });
  // A key without bytes is not sent.
  if (key.length > 0) assert.ok(keys.read(request.slice(), !isPut));
  return keys;
}

/** @returns the line as bytes; undefined where the call is not plain */
function written(writer: LineWriter, one: Case, sink = new OneLine()): string | undefined {
  const { tookMs, identity, address, certificate, subject, method, revision } = one;
  const caller = { identity, address, certificate, subject };
  const call: PlainCall = { endMs: 0, tookMs, ...caller, keys: keysOf(one), revision };
  const isPlain = writer.of(method.path, method.op).write(call, sink);
  assert.equal(isPlain, sink.line !== undefined);
  return sink.line;
}

function textOf(one: Case): string {
  const { wallMs, tookMs, method, key, revision } = one;
  const end = method.op === "put" ? new Uint8Array(0) : one.end;
  const subject = { accesses: [{ op: method.op, key, end }], fields: [] };
  const ended = { verdict: "ok", code: "OK", revision, wallMs, tookMs } as const;
  const caller = callerOfLine(one);
  return `${auditLine({ ...ended, caller, path: method.path, subject }, undefined)}\n`;
}

const text = fc.oneof(fc.string(), fc.string({ unit: "grapheme" }), fc.constant("ann"));
const key = fc
  .oneof(text, fc.constant("\0"), fc.constant("k".repeat(MAX_SHOWN_BYTES + 1)), fc.constant(""))
  .map(fromUtf8);
const call: fc.Arbitrary<Case> = fc.record({
  wallMs: fc.double({ min: 0, max: 4e12, noNaN: true }),
  tookMs: fc.oneof(
    fc.double({ min: 0, max: 2000, noNaN: true }),
    fc.double({ min: -1, max: 1e12, noNaN: true }),
    fc.integer({ min: 0, max: 20_000 }).map((n) => n / 1000),
  ),
  identity: fc.option(
    fc.record({
      user: text,
      provedBy: fc.constantFrom("token", "certificate"),
      roles: fc.option(fc.array(text, { maxLength: 20 }), { nil: undefined }),
    }),
    { nil: undefined },
  ),
  address: fc.constantFrom("10.0.0.7:41234", "[::1]:9", '"'),
  certificate: fc.option(text, { nil: undefined }),
  subject: fc.option(fc.constantFrom("O=shop,CN=ann", "CN=ann", 'O="'), { nil: undefined }),
  method: fc.constantFrom(...METHODS),
  key: key.filter(({ length }) => length > 0),
  end: key,
  revision: fc.oneof(fc.maxSafeNat(), fc.constantFrom(0, 9, 10, 999, 1000)),
});

test("a plain call's line is that of the text, byte for byte, within the space that was asked for", () => {
  let plain = 0;
  let wallMs = 0;
  const writer = new LineWriter(() => wallMs);
  fc.assert(
    fc.property(call, fc.nat({ max: 9 }), (one, before) => {
      // The time is taken again a millisecond later alone, so each case has a writer's first one.
      wallMs = one.wallMs;
      const fresh = new LineWriter(() => wallMs);
      const line = written(fresh, one, new OneLine(before));
      if (line === undefined) return;
      plain++;
      assert.equal(line, textOf(one));
      // One that has seen other callers at this address writes the same, but for the time.
      const again = written(writer, one);
      assert.equal(again!.slice(again!.indexOf(",")), line.slice(line.indexOf(",")));
    }),
    { numRuns: 3000, seed: 14 },
  );
  assert.ok(plain > 200, `${plain} plain calls`);
});

const PUT: Case = {
  wallMs: 0,
  tookMs: 1,
  identity: { user: "ann", provedBy: "token" },
  address: "a:1",
  certificate: undefined,
  subject: undefined,
  method: METHODS[0],
  key: fromUtf8("k"),
  end: fromUtf8(""),
  revision: 1,
};

test("a call with other bytes in its key, or numbers beyond the bounds, is not plain", () => {
  const writer = new LineWriter(() => 0);
  const range = { ...PUT, method: METHODS[1], end: fromUtf8("app/2") };
  assert.equal(written(writer, range), textOf(range));
  for (const name of ['"', "\\", "\0", "\n", "\x7f", "é", "k".repeat(MAX_SHOWN_BYTES + 1)]) {
    assert.equal(written(writer, { ...PUT, key: fromUtf8(name) }), undefined);
    assert.equal(written(writer, { ...range, end: fromUtf8(name) }), undefined);
  }
  for (const numbers of [{ revision: Number.MAX_SAFE_INTEGER }, { tookMs: -1 }, { tookMs: 1e10 }])
    assert.equal(written(writer, { ...PUT, ...numbers }), undefined);
});

test("a line without space for it is dropped, not written otherwise", () => {
  const sink = new OneLine();
  sink.hasSpace = false;
  const { path, op } = PUT.method;
  const plain: PlainCall = { ...PUT, endMs: 0, keys: keysOf(PUT) };
  assert.equal(new LineWriter(() => 0).of(path, op).write(plain, sink), true);
  assert.equal(sink.line, undefined);
});

test("the wall clock is asked once a millisecond", () => {
  let asked = 0;
  const writer = new LineWriter(() => ++asked * 1000);
  const { path, op } = PUT.method;
  const times = [0, 0.5, 0.999, 1, 1.5, 7].map((endMs) => {
    const sink = new OneLine();
    assert.ok(writer.of(path, op).write({ ...PUT, endMs, keys: keysOf(PUT) }, sink));
    return JSON.parse(sink.line!).time.slice(17, 19);
  });
  assert.deepEqual(times, ["01", "01", "01", "02", "02", "03"]);
});

test("beginnings are remembered by client and method, up to a bound, and never those of another user", () => {
  const writer = new LineWriter(() => 0);
  for (const user of ["ann", "bob", "ann"]) {
    const one = { ...PUT, identity: { user, provedBy: "token" } };
    assert.equal(written(writer, one), textOf(one));
  }
  for (const other of [{ identity: undefined }, { certificate: "cn" }, { subject: "O=x" }, {}])
    assert.equal(written(writer, { ...PUT, ...other }), textOf({ ...PUT, ...other }));
  assert.equal(writer.knownCount, 1);
  for (let i = 0; i < MAX_KNOWN_CALLERS + 10; i++) {
    const one = { ...PUT, address: `b:${i}`, method: METHODS[i % 2] };
    assert.equal(written(writer, one), textOf(one));
  }
  assert.ok(writer.knownCount <= MAX_KNOWN_CALLERS);
});
