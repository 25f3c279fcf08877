/** The parts of the storage by themselves, and their bounds. */

import assert from "node:assert/strict";
import test from "node:test";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import { protobufCodec, unwrapEnvelope, wrapEnvelope } from "../src/codec/builtin-kind.ts";
import { canonicalJson, jsonCodec } from "../src/codec/json-codec.ts";
import type { KubeObject } from "../src/meta/object.ts";
import { ApiError } from "../src/meta/status.ts";
import { StorageError, type StorageErrorCode, tooLarge, tooOld } from "../src/storage/errors.ts";
import {
  DecodedObjects,
  EtcdValues,
  identityTransformer,
  VersionedObject,
} from "../src/storage/etcd-values.ts";
import { interpretStorageError } from "../src/storage/interpret-error.ts";
import { rootOf } from "../src/storage/keys.ts";
import { LeaseManager } from "../src/storage/lease-manager.ts";
import { listOptions, POD, pod, podAttributes, predicate, where } from "../testing/example-pods.ts";
import { memoryStorage } from "../testing/memory-storage.ts";

const RESOURCE = { group: "apps", resource: "deployments" };

function pods(clock?: { monotonicMs(): number; endOfTurn(task: () => void): void }) {
  return memoryStorage({
    kind: POD,
    resourcePrefix: "/pods",
    attributesOf: podAttributes,
    ...(clock === undefined ? {} : { clock }),
  });
}

test("parsed objects are kept within a budget, and parsed again beyond it", () => {
  let decodes = 0;
  const codec = {
    ...jsonCodec,
    decode: (bytes: Uint8Array) => {
      decodes++;
      return jsonCodec.decode(bytes);
    },
  };
  const decoded = new DecodedObjects(10_000);
  const objects = Array.from(
    { length: 5000 },
    (_, at) =>
      new VersionedObject(`/pods/${at}`, at, jsonCodec.encode(pod("ns", `${at}`)), {
        codec,
        decoded,
      }),
  );
  for (const object of objects) object.object();
  assert.equal(decodes, 5000);
  assert.ok(decoded.bytes <= 10_000, `${decoded.bytes}`);
  const last = objects.at(-1)!;
  assert.equal(last.object(), last.object());
  assert.equal(decodes, 5000);
  assert.equal(objects[7].object().metadata.name, "7");
  assert.equal(decodes, 5001);
  assert.equal(objects[7].object().metadata.resourceVersion, "7");
  // JSON replaces the stored bytes: nothing is decoded from them again.
  const json = objects[8].json();
  for (const object of objects.slice(1000)) object.object();
  const before = decodes;
  assert.equal(objects[8].json(), json);
  assert.deepEqual(objects[8].object(), JSON.parse(toUtf8(json)));
  assert.equal(decodes, before);
});

test("one object above the budget is kept while it is the latest", () => {
  const decoded = new DecodedObjects(10);
  const forms = { codec: jsonCodec, decoded };
  const [one, two] = ["a", "b"].map(
    (name) => new VersionedObject(name, 1, jsonCodec.encode(pod("ns", name)), forms),
  );
  assert.equal(one.object(), one.object());
  two.object();
  assert.equal(decoded.bytes, two.sizeBytes);
});

test("the writer of an object and its event have one object, which is decoded once", () => {
  const forms = { codec: jsonCodec, decoded: new DecodedObjects() };
  const values = new EtcdValues("/registry", forms, identityTransformer);
  const bytes = jsonCodec.encode(pod("ns", "a"));
  const written = values.written("/pods/a", 7, bytes);
  assert.equal(values.written("/pods/a", 7, bytes.slice()), written);
  assert.notEqual(values.written("/pods/a", 7, bytes), written, "it is taken once");

  const again = values.written("/pods/b", 7, bytes);
  assert.notEqual(values.written("/pods/b", 8, bytes), again, "another revision");
  const other = jsonCodec.encode(pod("ns", "b"));
  const before = values.written("/pods/c", 7, bytes);
  assert.notEqual(values.written("/pods/c", 7, other), before, "a store that has gone back");

  const first = values.written("/pods/first", 1, bytes);
  for (let i = 0; i < 100; i++) values.written(`/pods/${i}`, 1, bytes);
  assert.notEqual(values.written("/pods/first", 1, bytes), first, "those that wait are bounded");
});

test("leases are shared for a while, and by so many objects", async () => {
  let nowMs = 0;
  const granted: number[] = [];
  const leases = new LeaseManager(
    async (ttl) => BigInt(granted.push(ttl)),
    () => nowMs,
    { reuseSeconds: 60, maxObjects: 3 },
  );
  assert.equal(await leases.leaseFor(3600), 1n);
  assert.deepEqual(granted, [3660]);
  nowMs = 30_000;
  assert.equal(await leases.leaseFor(3600), 1n);
  assert.equal(await leases.leaseFor(3600), 1n);
  assert.equal(await leases.leaseFor(3600), 2n, "three objects have the first lease");
  nowMs = 91_000;
  assert.equal(await leases.leaseFor(3600), 3n, "the second one would end too early");
  assert.equal(await leases.leaseFor(10), 4n, "the third one would end too late");
  assert.equal(granted.at(-1), 10);
});

test("a lease that was not granted is not shared", async () => {
  let isUp = false;
  const leases = new LeaseManager(
    async () => {
      if (!isUp) throw new Error("no member");
      return 7n;
    },
    () => 0,
  );
  await assert.rejects(leases.leaseFor(100), /no member/);
  isUp = true;
  assert.equal(await leases.leaseFor(100), 7n);
});

test("an update that meets a conflict each time ends", async () => {
  const { storage, cluster } = pods();
  const key = fromUtf8("/registry/pods/ns/a");
  await storage.create("/pods/ns/a", pod("ns", "a"), 0);
  const touch = (generation: number): void =>
    cluster.write(key, jsonCodec.encode(pod("ns", "a", { generation })));
  let calls = 0;
  const update = storage.guaranteedUpdate(
    "/pods/ns/a",
    (present) => {
      touch(++calls);
      return { object: { ...present!, spec: { calls } } };
    },
    { ignoreNotFound: false },
  );
  await assert.rejects(update, /request timeout.*1000 attempts met a conflict/);
  assert.equal(calls, 1000);
  await assert.rejects(
    storage.delete("/pods/ns/a", { validate: () => touch(++calls) }),
    /1000 attempts met a conflict/,
  );
});

test("requests of a page with a selector grow to 10,000 keys", async () => {
  const { storage, cluster } = pods();
  for (let at = 0; at < 12_000; at++) {
    const name = `pod-${String(at).padStart(5, "0")}`;
    cluster.write(fromUtf8(`/registry/pods/${name}`), jsonCodec.encode(pod("", name)));
  }
  cluster.requests.length = 0;
  const { items, continueToken } = await storage.getList("/pods/", {
    ...listOptions(),
    predicate: predicate({ field: where("metadata.name", "=", "pod-11999"), limit: 500 }),
  });
  assert.deepEqual([items.length, continueToken], [1, ""]);
  assert.deepEqual(
    cluster.requests.map(({ limit }) => limit),
    [500, 1000, 2000, 4000, 8000],
  );
});

test("a list without pages is read in parts, and so is a large page", async () => {
  const { storage, cluster } = pods();
  const names = Array.from({ length: 1100 }, (_, at) => `pod-${String(at).padStart(5, "0")}`);
  for (const name of names)
    cluster.write(fromUtf8(`/registry/pods/${name}`), jsonCodec.encode(pod("", name)));
  const listed = async (limit: number, isTaken: boolean) => {
    cluster.requests.length = 0;
    const taken: string[] = [];
    const { items, ...rest } = await storage.getList("/pods/", {
      ...listOptions(),
      predicate: predicate({ limit }),
      forEach: isTaken ? ({ key }) => void taken.push(key) : undefined,
    });
    const keys = isTaken ? taken : items.map(({ key }) => key);
    assert.deepEqual(
      keys.slice(0, 1100),
      names.slice(0, keys.length).map((name) => `/pods/${name}`),
    );
    assert.equal(isTaken ? items.length : 0, 0);
    return { count: keys.length, limits: cluster.requests.map((request) => request.limit), rest };
  };
  for (const isTaken of [false, true]) {
    const all = await listed(0, isTaken);
    assert.deepEqual([all.count, all.limits], [1100, [500, 500, 500]]);
    assert.equal(all.rest.resourceVersion, 1101);
    assert.equal(all.rest.continueToken, "");
  }
  const page = await listed(1050, false);
  assert.deepEqual([page.count, page.limits, page.rest.remainingItemCount], [1050, [1050], 50]);
  const large = await listed(20_000, false);
  assert.deepEqual([large.count, large.limits], [1100, [500, 500, 500]]);
});

test("a long list goes in slices", async () => {
  let nowMs = 0;
  let turns = 0;
  const clock = {
    // Each object takes a tenth of a millisecond.
    monotonicMs: () => (nowMs += 0.1),
    endOfTurn: (task: () => void) => {
      turns++;
      setImmediate(task);
    },
  };
  const { storage, cluster } = pods(clock);
  for (let at = 0; at < 1000; at++)
    cluster.write(fromUtf8(`/registry/pods/${at}`), jsonCodec.encode(pod("", `${at}`)));
  assert.equal((await storage.getList("/pods/", listOptions())).items.length, 1000);
  assert.ok(turns >= 15 && turns <= 60, `${turns}`);
});

test("the caller of a long list may leave", async () => {
  const stop = new AbortController();
  const { storage, cluster } = pods({
    monotonicMs: () => performance.now() * 1000,
    endOfTurn: (task) => {
      stop.abort(new RangeError("gone"));
      setImmediate(task);
    },
  });
  for (let at = 0; at < 100; at++)
    cluster.write(fromUtf8(`/registry/pods/${at}`), jsonCodec.encode(pod("", `${at}`)));
  const list = storage.getList("/pods/", listOptions({ signal: stop.signal }));
  await assert.rejects(list, RangeError);
});

test("values that are no objects fail the reads that meet them", async () => {
  for (const bytes of ["", "{", "[]", "null", '{"kind":"Pod"}', "k8s\0\x0a", "\u0000\u0001"]) {
    const { storage, cluster } = pods();
    cluster.write(fromUtf8("/registry/pods/ns/bad"), fromUtf8(bytes));
    for (const read of [storage.get("/pods/ns/bad"), storage.getList("/pods/", listOptions())])
      await assert.rejects(read, (error: StorageError) => error.code === "CorruptObj");
  }
});

test("JSON has sorted keys and Go's escapes", () => {
  assert.equal(
    canonicalJson({ b: [{ z: 1, a: "<&>\u2028" }], a: { "10": 1, "9": undefined, x: null } }),
    String.raw`{"a":{"10":1,"x":null},"b":[{"a":"\u003c\u0026\u003e\u2028","z":1}]}`,
  );
  const hostile = JSON.parse('{"__proto__":{"a":1},"constructor":2}') as unknown;
  assert.equal(canonicalJson(hostile), '{"__proto__":{"a":1},"constructor":2}');
  const stored = jsonCodec.encode(pod("ns", "a", { resourceVersion: "7" }));
  assert.equal(
    toUtf8(stored),
    '{"apiVersion":"example.test/v1","kind":"Pod","metadata":{"name":"a","namespace":"ns"}}\n',
  );
});

test("keys that look like numbers are sorted as texts, as Go sorts them", () => {
  const data = { "10": "a", "9": "b", "1": { "2": [], "11": [{ "3": 1, "20": null }] }, a: "<" };
  assert.equal(
    canonicalJson({ data, b: [1, undefined], c: undefined }),
    '{"b":[1,null],"data":{"1":{"11":[{"20":null,"3":1}],"2":[]},"10":"a","9":"b","a":"\\u003c"}}',
  );
  // Fields that are undefined are no reason for the slow way, and are left out in both.
  assert.equal(canonicalJson({ b: undefined, a: [{ c: undefined }] }), '{"a":[{}]}');
});

test("the envelope of protobuf", () => {
  const raw = Uint8Array.of(1, 2, 3);
  const bytes = wrapEnvelope({ apiVersion: "v1", kind: "Secret", raw });
  assert.deepEqual(
    Buffer.from(bytes).toString("latin1"),
    "k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x03\x01\x02\x03\x1a\x00\x22\x00",
  );
  assert.deepEqual(unwrapEnvelope(bytes), { apiVersion: "v1", kind: "Secret", raw });
  for (let end = 0; end < bytes.length - 4; end++)
    if (end !== 4 && end !== 18)
      assert.throws(() => unwrapEnvelope(bytes.subarray(0, end)), TypeError, `${end}`);
  const message = { encode: () => raw, decode: () => pod("ns", "a") };
  const codec = protobufCodec({ apiVersion: "v1", kind: "ConfigMap" }, message);
  assert.throws(() => codec.decode(bytes), /is v1 Secret, not v1 ConfigMap/);
  const json = fromUtf8('{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}');
  assert.equal(codec.decode(json).kind, "ConfigMap");
});

const interpreted: readonly (readonly [StorageErrorCode, string, number, string])[] = [
  ["KeyNotFound", "get", 404, "NotFound"],
  ["KeyExists", "create", 409, "AlreadyExists"],
  ["KeyExists", "update", 409, "Conflict"],
  ["InvalidObj", "delete", 409, "Conflict"],
  ["Unreachable", "update", 500, "ServerTimeout"],
  ["Timeout", "list", 500, "ServerTimeout"],
  ["Timeout", "get", 504, "Timeout"],
  ["CorruptObj", "get", 500, "InternalError"],
  ["Internal", "list", 500, "InternalError"],
  ["ResourceVersionOnCreate", "create", 500, ""],
  ["InvalidOptions", "list", 400, "BadRequest"],
  ["InvalidContinueToken", "list", 400, "BadRequest"],
  ["TooOldResourceVersion", "list", 410, "Expired"],
  ["TooLargeResourceVersion", "get", 504, "Timeout"],
];

test("errors of the storage as the client's", () => {
  for (const [code, verb, status, reason] of interpreted) {
    const error = interpretStorageError(
      new StorageError(code, "/k", "why"),
      verb as "get",
      RESOURCE,
      "web",
    );
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.httpStatus, error.code], [status, reason], code);
  }
  const expired = interpretStorageError(tooOld("/k", "old", "token"), "list", RESOURCE, "");
  assert.deepEqual((expired as ApiError).status.metadata, { continue: "token" });
  const late = interpretStorageError(tooLarge("/k", 9, 5), "get", RESOURCE, "") as ApiError;
  assert.equal(late.message, "Timeout: Too large resource version: 9, current: 5");
  const other = new RangeError("other");
  assert.equal(interpretStorageError(other, "get", RESOURCE, ""), other);
  const conflict = interpretStorageError(
    new StorageError("InvalidObj", "/k", "StorageError: x"),
    "update",
    RESOURCE,
    "web",
  ) as ApiError;
  assert.equal(
    conflict.message,
    'Operation cannot be fulfilled on deployments.apps "web": StorageError: x',
  );
});

test("the root of keys", () => {
  const roots = ["/registry", "registry/", "//a//b/", "", "/"].map((prefix) => rootOf(prefix));
  assert.deepEqual(roots, ["/registry", "/registry", "/a/b", "", ""]);
});

test("a cluster that does not respond", async () => {
  const { storage, cluster } = pods();
  const failing: KubeObject = pod("ns", "a");
  cluster.onRequest = () => {
    throw new Error("no member responds");
  };
  await assert.rejects(storage.create("/pods/ns/a", failing, 0), /no member responds/);
  const watch = await storage.watch("/pods/", listOptions({ resourceVersion: "0" }));
  const ended = await new Promise<ApiError | undefined>((resolve) =>
    watch.start({ event: () => true, ended: resolve }),
  );
  assert.equal(ended?.httpStatus, 500);
});
