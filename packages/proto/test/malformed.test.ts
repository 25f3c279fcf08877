/**
 * Malformed input: decoders return a message or throw WireError, and never read beyond their input.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  MAX_NESTING_DEPTH,
  PutRequest,
  Reader,
  RequestOp,
  raftpb,
  TxnRequest,
  WireError,
} from "../index.ts";
import { integerOfNumber } from "../src/json/integers.ts";
import { type AnyType, message, ours, SEED, theirs } from "./reflect.ts";

type Outcome = { value: unknown } | { error: string };

function outcome(type: AnyType, bytes: Uint8Array): Outcome {
  try {
    return { value: type.decode(bytes) };
  } catch (e) {
    assert.ok(e instanceof WireError, `${type.typeName} threw ${e}`);
    assert.ok(ours.has(e.typeName), `no place: ${e.message}`);
    assert.ok(e.offset >= 0 && e.offset <= bytes.length, e.message);
    return { error: e.message };
  }
}

// As outcome(), but bytes lie in the middle of a longer input whose other bytes are fields, too.
function outcomeInside(type: AnyType, bytes: Uint8Array): Outcome {
  const input = new Uint8Array(bytes.length + 32).fill(0x08);
  input.set(bytes, 16);
  const r = new Reader(input);
  r.pos = 16;
  r.end = 16 + bytes.length;
  try {
    const value = type.decodeFrom(r);
    assert.equal(r.pos, r.end, "stopped elsewhere");
    return { value };
  } catch (e) {
    assert.ok(e instanceof WireError);
    return { error: e.message.replace(/\d+$/, String(e.offset - 16)) };
  }
}

function check(type: AnyType, bytes: Uint8Array): void {
  assert.deepEqual(outcomeInside(type, bytes), outcome(type, bytes));
}

interface Mutation {
  kind: "cut" | "set" | "insert" | "remove";
  at: number;
  byte: number;
}

const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom("cut", "set", "insert", "remove"),
  at: fc.nat(),
  byte: fc.oneof(fc.constantFrom(0x00, 0x7f, 0x80, 0xff), fc.nat(255)),
});

function mutate(bytes: Uint8Array, { kind, at, byte }: Mutation): Uint8Array {
  const i = at % (bytes.length + 1);
  switch (kind) {
    case "cut":
      return bytes.slice(0, i);
    case "set":
      return bytes.length === 0 ? bytes : bytes.with(at % bytes.length, byte);
    case "insert":
      return Uint8Array.from([...bytes.slice(0, i), byte, ...bytes.slice(i)]);
    case "remove":
      return Uint8Array.from([...bytes.slice(0, i), ...bytes.slice(i + 1)]);
  }
}

for (const [name, mine] of ours) {
  test(`${name}: random and mutated bytes`, { timeout: 300_000 }, () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 48 }), (bytes) => check(mine, bytes)),
      { seed: SEED, numRuns: 200 },
    );
    fc.assert(
      fc.property(
        message(theirs.get(name)!, 2),
        fc.array(mutation, { minLength: 1, maxLength: 3 }),
        (pair, mutations) => check(mine, mutations.reduce(mutate, mine.encode(pair.ours))),
      ),
      { seed: SEED, numRuns: 200 },
    );
  });
}

function refused(
  type: AnyType,
  bytes: number[],
  reason: RegExp,
  place: { typeName: string; field: string; offset: number },
): void {
  assert.throws(
    () => type.decode(Uint8Array.from(bytes)),
    (e) => {
      assert.ok(e instanceof WireError);
      assert.match(e.message, reason);
      assert.deepEqual({ typeName: e.typeName, field: e.field, offset: e.offset }, place);
      return true;
    },
  );
}

test("each kind of damage is reported with its offset", () => {
  const put = "etcdserverpb.PutRequest";
  refused(PutRequest, [0x0a], /truncated varint/, { typeName: put, field: "key", offset: 1 });
  refused(PutRequest, [0x0a, 5, 1, 2], /length past the end/, {
    typeName: put,
    field: "key",
    offset: 1,
  });
  refused(PutRequest, [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], /length past the end/, {
    typeName: put,
    field: "key",
    offset: 1,
  });
  refused(PutRequest, [0x18, 0x80], /truncated varint/, {
    typeName: put,
    field: "lease",
    offset: 1,
  });
  refused(PutRequest, [0x18, ...Array(10).fill(0xff), 1], /varint over 64 bits/, {
    typeName: put,
    field: "lease",
    offset: 1,
  });
  refused(PutRequest, [0x18, ...Array(9).fill(0x80), 2], /varint over 64 bits/, {
    typeName: put,
    field: "lease",
    offset: 1,
  });
  refused(PutRequest, [0x20, 1, 0x08, 1], /wrong wire type 0/, {
    typeName: put,
    field: "key",
    offset: 3,
  });
  refused(PutRequest, [0x00], /bad field number/, { typeName: put, field: "", offset: 0 });
  refused(PutRequest, [0x80, 0x80, 0x80, 0x80, 0x10, 0], /bad field number/, {
    typeName: put,
    field: "",
    offset: 0,
  });
  refused(PutRequest, [0x80], /truncated varint/, { typeName: put, field: "", offset: 0 });
  for (const wireType of [3, 4, 6, 7]) {
    refused(
      PutRequest,
      [(15 << 3) | wireType, 0],
      new RegExp(`unsupported wire type ${wireType}`),
      {
        typeName: put,
        field: "",
        offset: 1,
      },
    );
  }
  refused(PutRequest, [(15 << 3) | 1, 1, 2, 3], /truncated/, {
    typeName: put,
    field: "",
    offset: 1,
  });
  refused(PutRequest, [(15 << 3) | 5, 1, 2, 3], /truncated/, {
    typeName: put,
    field: "",
    offset: 1,
  });
  // The inner message ends before its field does, though the input goes on.
  refused(RequestOp, [0x12, 2, 0x0a, 3, 1, 2, 3], /length past the end/, {
    typeName: put,
    field: "key",
    offset: 3,
  });
  refused(RequestOp, [0x12, 1, 0x18, 1], /truncated varint/, {
    typeName: put,
    field: "lease",
    offset: 3,
  });
  refused(RequestOp, [0x12, 2, (15 << 3) | 5, 1, 2, 3, 4], /truncated/, {
    typeName: put,
    field: "",
    offset: 3,
  });
});

test("text must be UTF-8", () => {
  const place = { typeName: "membershippb.Attributes", field: "name", offset: 2 };
  const attributes = ours.get("membershippb.Attributes")!;
  for (const text of [
    [0xff],
    [0xc3],
    [0xed, 0xa0, 0x80],
    [0xef, 0xbf, 0xbd, 0x80],
    [0xc0, 0x80, 0x80],
  ]) {
    refused(attributes, [0x0a, text.length, ...text], /invalid UTF-8/, place);
  }
  assert.equal(attributes.decode(Uint8Array.of(0x0a, 4, 0xef, 0xbf, 0xbd, 0x41)).name, "\ufffdA");
  assert.equal(attributes.decode(Uint8Array.of(0x0a, 3, 0xef, 0xbb, 0xbf)).name, "\ufeff");
});

test("nesting is bounded", () => {
  const nested = (levels: number): Uint8Array => {
    let txn = TxnRequest.create();
    for (let i = 0; i < levels; i++)
      txn = TxnRequest.create({ success: [{ request: { case: "requestTxn", value: txn } }] });
    return TxnRequest.encode(txn);
  };
  // A level is two messages: the operation and the transaction in it.
  const most = MAX_NESTING_DEPTH / 2;
  assert.equal(TxnRequest.decode(nested(most)).success.length, 1);
  assert.throws(() => TxnRequest.decode(nested(most + 1)), /messages nested too deep/);

  // Many beside one another are not deep.
  const flat = TxnRequest.create({ success: nestedOps(3 * MAX_NESTING_DEPTH) });
  assert.equal(TxnRequest.decode(TxnRequest.encode(flat)).success.length, 3 * MAX_NESTING_DEPTH);

  let deep: Uint8Array = new Uint8Array(0);
  for (let i = 0; i < 2000; i++) deep = wrap(deep);
  assert.throws(() => raftpb.Message.decode(deep), /messages nested too deep/);
});

function nestedOps(count: number): RequestOp[] {
  return Array.from({ length: count }, () => ({
    request: { case: "requestTxn", value: TxnRequest.create() },
  }));
}

// An encoded raftpb.Message whose only field is a response that holds `inner`.
function wrap(inner: Uint8Array): Uint8Array {
  const length =
    inner.length < 128 ? [inner.length] : [(inner.length & 0x7f) | 0x80, inner.length >>> 7];
  return Uint8Array.from([(14 << 3) | 2, ...length, ...inner]);
}

test("an integer of more digits than a uint64 is refused before it is converted", () => {
  const digits = `1${"0".repeat(20)}`;
  assert.equal(integerOfNumber(`${digits}e-1`), 10n ** 19n);
  assert.equal(integerOfNumber(`${digits}0e-1`), undefined);
  assert.equal(integerOfNumber(`1${"0".repeat(1_000_000)}e-1`), undefined);
  assert.equal(integerOfNumber("1e"), undefined);
  assert.equal(integerOfNumber("1e,"), 1n);
});
