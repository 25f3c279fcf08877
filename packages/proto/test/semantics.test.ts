/** Guarantees of the codecs beyond agreement with protobufjs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { raftpb, walpb } from "../index.ts";
import { KeyValue } from "../src/gen/kv.ts";
import { InternalRaftRequest } from "../src/gen/raft_internal.ts";
import {
  CompactionRequest,
  Compare,
  HashKVResponse,
  LeaseGrantRequest,
  LeaseGrantResponse,
  PutRequest,
  RangeRequest,
  RangeResponse,
  RequestOp,
  ResponseHeader,
  StatusResponse,
  WatchCancelRequest,
  WatchCreateRequest,
  WatchResponse,
} from "../src/gen/rpc.ts";
import { services } from "../src/gen/services.ts";
import { concat, fromUtf8, toHex } from "../src/wire/bytes.ts";
import { WireError } from "../src/wire/error.ts";
import type { MessageType } from "../src/wire/message.ts";
import { WRITER_INITIAL_BYTES, WRITER_MAX_KEPT_BYTES, Writer } from "../src/wire/writer.ts";
import { isBigint, isRaw, nameOf, root, theirs } from "./reflect.ts";

// 2^53, the first integer that is not safe, as a varint; and the int64 extremes.
const TWO_53 = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10];
const INT64_MAX = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
const INT64_MIN = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
const SAFE_MAX = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f];
// -(2^53-1)
const SAFE_MIN = [0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0xf0, 0xff, 0x01];

const bytes = (...parts: (number | number[])[]): Uint8Array => Uint8Array.from(parts.flat());

test("ids are bigint and all other 64-bit integers numbers", () => {
  const id =
    /^(id|lease|leader|to|from|vote|voters|votersOutgoing|learners|learnersNext)$|ID$|Id$/i;
  const unixNanos = ["etcdserverpb.Request.Expiration", "etcdserverpb.Request.Time"];
  let bigints = 0;
  for (const field of [...theirs.values()].flatMap((type) => type.fieldsArray)) {
    if (field.type !== "int64" && field.type !== "uint64") continue;
    const expected =
      (id.test(field.name) && field.name !== "watchId") || unixNanos.includes(nameOf(field));
    assert.equal(isBigint(field), expected, nameOf(field));
    if (expected) bigints++;
  }
  assert.equal(bigints, 46);
});

test("these embedded messages stay encoded", () => {
  const raw = [...theirs.values()].flatMap((type) => type.fieldsArray).filter(isRaw);
  const inProposal = raw.filter(
    (field) => nameOf(field.parent!) === "etcdserverpb.InternalRaftRequest",
  );
  assert.equal(inProposal.length, 33);
  assert.deepEqual(
    raw
      .filter((field) => !inProposal.includes(field))
      .map(nameOf)
      .sort(),
    [
      "etcdserverpb.DeleteRangeResponse.prevKvs",
      "etcdserverpb.PutResponse.prevKv",
      "etcdserverpb.RangeResponse.kvs",
      "etcdserverpb.WatchResponse.events",
      "mvccpb.Event.kv",
      "mvccpb.Event.prevKv",
    ],
  );
});

test("the id of a watch is a number, or a bigint beyond the safe integers", () => {
  for (const [varint, id] of [
    [[5], 5],
    [SAFE_MAX, Number.MAX_SAFE_INTEGER],
    [SAFE_MIN, Number.MIN_SAFE_INTEGER],
    [TWO_53, 2n ** 53n],
    [INT64_MAX, 2n ** 63n - 1n],
    [INT64_MIN, -(2n ** 63n)],
  ] as const) {
    const encoded = bytes(8, [...varint]);
    assert.equal(WatchCancelRequest.decode(encoded).watchId, id);
    assert.deepEqual(WatchCancelRequest.encode({ watchId: id }), encoded);
  }
  assert.throws(() => WatchCancelRequest.encode({ watchId: 2n ** 63n }), RangeError);
});

test("numbers beyond the safe integers are refused with their offset", () => {
  const revision = 0x18;
  assert.equal(ResponseHeader.decode(bytes(revision, SAFE_MAX)).revision, Number.MAX_SAFE_INTEGER);
  assert.equal(ResponseHeader.decode(bytes(revision, SAFE_MIN)).revision, Number.MIN_SAFE_INTEGER);
  for (const varint of [TWO_53, INT64_MAX, INT64_MIN]) {
    assert.throws(
      () => ResponseHeader.decode(bytes(revision, varint)),
      (e) =>
        e instanceof WireError &&
        e.typeName === "etcdserverpb.ResponseHeader" &&
        e.field === "revision" &&
        e.offset === 1,
    );
  }
  const raftTerm = 0x20;
  assert.equal(ResponseHeader.decode(bytes(raftTerm, SAFE_MAX)).raftTerm, Number.MAX_SAFE_INTEGER);
  assert.throws(
    () => ResponseHeader.decode(bytes(raftTerm, TWO_53)),
    /raft_term: not a safe integer at byte 1/,
  );
  // As uint64 this is a huge number, not a negative one.
  assert.throws(() => ResponseHeader.decode(bytes(raftTerm, INT64_MIN)), /not a safe integer/);
});

test("bounds and limits of requests are clamped instead", () => {
  const cases: [(input: Uint8Array) => number, number][] = [
    [(input) => RangeRequest.decode(input).limit, 0x18],
    [(input) => RangeRequest.decode(input).revision, 0x20],
    [(input) => RangeRequest.decode(input).minModRevision, 0x50],
    [(input) => RangeRequest.decode(input).maxModRevision, 0x58],
    [(input) => RangeRequest.decode(input).minCreateRevision, 0x60],
    [(input) => RangeRequest.decode(input).maxCreateRevision, 0x68],
    [(input) => CompactionRequest.decode(input).revision, 0x08],
    [(input) => WatchCreateRequest.decode(input).startRevision, 0x18],
    [(input) => LeaseGrantRequest.decode(input).TTL, 0x08],
  ];
  for (const [read, tag] of cases) {
    assert.equal(read(bytes(tag, INT64_MAX)), Number.MAX_SAFE_INTEGER);
    assert.equal(read(bytes(tag, TWO_53)), Number.MAX_SAFE_INTEGER);
    assert.equal(read(bytes(tag, INT64_MIN)), Number.MIN_SAFE_INTEGER);
    assert.equal(read(bytes(tag, SAFE_MIN)), Number.MIN_SAFE_INTEGER);
    assert.equal(read(bytes(tag, 5)), 5);
  }
  assert.deepEqual(Compare.decode(bytes(0x30, INT64_MAX)).targetUnion, {
    case: "modRevision",
    value: Number.MAX_SAFE_INTEGER,
  });
});

test("negative numbers and ids are exact", () => {
  const grant = LeaseGrantResponse.decode(LeaseGrantResponse.encode({ TTL: -1, ID: -(2n ** 63n) }));
  assert.deepEqual([grant.TTL, grant.ID], [-1, -(2n ** 63n)]);
  assert.equal(PutRequest.decode(bytes(0x18, INT64_MAX)).lease, 2n ** 63n - 1n);
  assert.equal(
    ResponseHeader.decode(ResponseHeader.encode({ memberId: 2n ** 64n - 1n })).memberId,
    2n ** 64n - 1n,
  );
  assert.equal(
    StatusResponse.decode(StatusResponse.encode({ leader: 2n ** 63n, dbSize: 2 ** 52 })).leader,
    2n ** 63n,
  );
  for (const value of [
    -1,
    -(2 ** 31),
    -(2 ** 32),
    -(2 ** 32) - 1,
    Number.MIN_SAFE_INTEGER,
    2 ** 31,
    2 ** 32,
    Number.MAX_SAFE_INTEGER,
  ]) {
    assert.equal(KeyValue.decode(KeyValue.encode({ modRevision: value })).modRevision, value);
  }
});

test("encoding refuses integers that do not fit", () => {
  const cases: [MessageType<never>, object][] = [
    [KeyValue as MessageType<never>, { version: 2 ** 53 }],
    [KeyValue as MessageType<never>, { version: 1.5 }],
    [KeyValue as MessageType<never>, { version: Number.NaN }],
    [KeyValue as MessageType<never>, { lease: 2n ** 63n }],
    [KeyValue as MessageType<never>, { lease: -(2n ** 63n) - 1n }],
    [ResponseHeader as MessageType<never>, { raftTerm: -1 }],
    [ResponseHeader as MessageType<never>, { memberId: -1n }],
    [ResponseHeader as MessageType<never>, { memberId: 2n ** 64n }],
    [HashKVResponse as MessageType<never>, { hash: -1 }],
    [HashKVResponse as MessageType<never>, { hash: 2 ** 32 }],
    [Compare as MessageType<never>, { target: 2 ** 31 }],
    [Compare as MessageType<never>, { target: 0.5 }],
  ];
  for (const [type, message] of cases)
    assert.throws(
      () => type.encode(message as never),
      RangeError,
      JSON.stringify(Object.keys(message)),
    );
  // The writer that was interrupted is usable.
  assert.equal(toHex(KeyValue.encode({ version: 1 })), "2001");
});

test("small integers are truncated as protobuf says", () => {
  assert.equal(HashKVResponse.decode(bytes(0x10, INT64_MAX)).hash, 0xffff_ffff);
  assert.equal(Compare.decode(bytes(0x10, INT64_MAX)).target, -1);
  assert.equal(PutRequest.decode(bytes(0x20, 0x80, 0x80, 0x80, 0x80, 0x10)).prevKv, true);
});

test("bytes are views of the input", () => {
  const input = PutRequest.encode({ key: fromUtf8("key"), value: fromUtf8("value") });
  const { key, value } = PutRequest.decode(input);
  assert.equal(key.buffer, input.buffer);
  input[input.length - 1] ^= 1;
  assert.equal(value.at(-1), input.at(-1));
  assert.equal(
    Object.getPrototypeOf(PutRequest.decode(Buffer.from(input)).key),
    Uint8Array.prototype,
  );
});

test("records in answers are embedded as they are", () => {
  // A record with a field of a later version survives.
  const record = concat([KeyValue.encode({ key: fromUtf8("k") }), bytes(0x78, 1)]);
  assert.deepEqual(
    RangeResponse.decode(RangeResponse.encode({ kvs: [record, record], count: 2 })).kvs,
    [record, record],
  );
  const watch = WatchResponse.encode({ events: [bytes(), record] });
  assert.deepEqual(WatchResponse.decode(watch).events, [bytes(), record]);
});

test("a request is embedded in a proposal unchanged, also an empty one", () => {
  const put = concat([PutRequest.encode({ key: fromUtf8("k") }), bytes(0x78, 1)]);
  const proposal = InternalRaftRequest.encode({
    header: { ID: 7n, username: "", authRevision: 0 },
    put,
  });
  assert.equal(toHex(proposal), `22${toHex(bytes(put.length))}${toHex(put)}a206020807`);
  assert.deepEqual(InternalRaftRequest.decode(proposal).put, put);
  const empty = InternalRaftRequest.decode(
    InternalRaftRequest.encode({ authEnable: new Uint8Array(0) }),
  );
  assert.deepEqual([empty.authEnable, empty.authDisable], [new Uint8Array(0), undefined]);
});

test("an embedded message that comes twice is merged, a scalar replaced", () => {
  const put = (init: Partial<PutRequest>): Uint8Array =>
    RequestOp.encode({ request: { case: "requestPut", value: PutRequest.create(init) } });
  const merged = RequestOp.decode(
    concat([put({ key: fromUtf8("a"), prevKv: true }), put({ key: fromUtf8("b") })]),
  );
  assert.deepEqual(merged.request, {
    case: "requestPut",
    value: PutRequest.create({ key: fromUtf8("b"), prevKv: true }),
  });
  const range = RequestOp.encode({
    request: { case: "requestRange", value: RangeRequest.create() },
  });
  assert.equal(RequestOp.decode(concat([put({}), range])).request?.case, "requestRange");
  const raw = InternalRaftRequest.decode(
    concat([
      InternalRaftRequest.encode({ put: bytes(0x20, 1) }),
      InternalRaftRequest.encode({ put: bytes(0x28, 1) }),
    ]),
  );
  assert.deepEqual(
    PutRequest.decode(raw.put!),
    PutRequest.create({ prevKv: true, ignoreValue: true }),
  );
});

test("repeated numbers are read packed and unpacked, and written packed in proto3 only", () => {
  assert.deepEqual(
    WatchCreateRequest.decode(bytes(0x28, 1, 0x2a, 2, 0, 1, 0x28, 0)).filters,
    [1, 0, 1, 0],
  );
  assert.equal(toHex(WatchCreateRequest.encode({ filters: [1, 0] })), "2a020100");
  assert.deepEqual(raftpb.ConfState.decode(bytes(0x0a, 2, 1, 2, 0x08, 3)).voters, [1n, 2n, 3n]);
  assert.equal(toHex(raftpb.ConfState.encode({ voters: [1n, 2n] })), "080108022800");
});

test("raft and WAL records carry every scalar and required message, as etcd writes them", () => {
  assert.equal(toHex(raftpb.Entry.encode({})), "080010001800");
  assert.equal(toHex(raftpb.HardState.encode({})), "080010001800");
  assert.equal(toHex(raftpb.Snapshot.encode({})), "12080a02280010001800");
  assert.equal(toHex(walpb.Record.encode({ type: 4 })), "08041000");
  assert.equal(raftpb.Message.decode(bytes()).snapshot, undefined);
  assert.deepEqual(raftpb.Message.decode(bytes(0x4a, 0)).snapshot, raftpb.Snapshot.create());
});

test("lengths are right at every width of their varint", () => {
  for (const size of [
    0, 1, 125, 126, 127, 128, 16_000, 16_380, 16_383, 16_384, 2_097_148, 2_097_152,
  ]) {
    const key = new Uint8Array(size).fill(7);
    const op = RequestOp.encode({
      request: { case: "requestPut", value: PutRequest.create({ key, prevKv: true }) },
    });
    const { request } = RequestOp.decode(op);
    assert.ok(
      request?.case === "requestPut" &&
        Buffer.compare(request.value.key, key) === 0 &&
        request.value.prevKv,
      `size ${size}`,
    );
  }
  const text = "ü€😀".repeat(2000);
  assert.equal(LeaseGrantResponse.decode(LeaseGrantResponse.encode({ error: text })).error, text);
});

test("a writer grows wherever its buffer ends", () => {
  for (let size = WRITER_INITIAL_BYTES - 40; size < WRITER_INITIAL_BYTES + 8; size++) {
    const w = new Writer();
    const key = new Uint8Array(size).fill(7);
    // The lease takes all ten bytes it can; then the length of the operation turns out to need a
    // second byte.
    const value = PutRequest.create({ key, lease: -1n });
    RequestOp.encodeTo(w, { request: { case: "requestPut", value } });
    const { request } = RequestOp.decode(w.finish());
    assert.deepEqual(request, { case: "requestPut", value }, `size ${size}`);
  }
});

test("a writer drops a buffer that one big message made", () => {
  const w = new Writer();
  PutRequest.encodeTo(w, { value: new Uint8Array(2 * WRITER_MAX_KEPT_BYTES) });
  assert.ok(w.capacityBytes > WRITER_MAX_KEPT_BYTES);
  w.reset();
  assert.equal(w.capacityBytes, WRITER_INITIAL_BYTES);
  PutRequest.encodeTo(w, { value: new Uint8Array(WRITER_MAX_KEPT_BYTES / 4) });
  const kept = w.capacityBytes;
  w.reset();
  assert.equal(w.capacityBytes, kept);
});

test("a writer collects several messages", () => {
  const w = new Writer();
  PutRequest.encodeTo(w, { key: fromUtf8("a") });
  PutRequest.encodeTo(w, { prevKv: true });
  assert.equal(w.length, 5);
  assert.equal(toHex(w.finish()), "0a01612001");
  w.reset();
  assert.equal(w.finish().length, 0);
});

test("every service and method of proto/ is in the table", () => {
  const mine = services.flatMap((service) =>
    Object.entries(service.methods).map(([name, m]) => {
      assert.equal(m.name, name);
      assert.equal(m.path, `/${service.typeName}/${name}`);
      return `${m.path} ${m.requestStream} ${m.requestType.typeName} ${m.responseStream} ${m.responseType.typeName}`;
    }),
  );
  const theirs: string[] = [];
  for (const pkg of root.nestedArray) {
    for (const service of (pkg as { nestedArray?: unknown[] }).nestedArray ?? []) {
      const { methodsArray } = service as { methodsArray?: import("protobufjs").Method[] };
      for (const method of methodsArray ?? []) {
        method.resolve();
        theirs.push(
          `/${nameOf(method.parent!)}/${method.name} ${method.requestStream === true} ${nameOf(method.resolvedRequestType!)} ` +
            `${method.responseStream === true} ${nameOf(method.resolvedResponseType!)}`,
        );
      }
    }
  }
  assert.deepEqual(mine.sort(), theirs.sort());
  assert.equal(mine.length, 49);
});
