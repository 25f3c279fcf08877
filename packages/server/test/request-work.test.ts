/**
 * Requests of a million parts are refused before they are decoded, by every method; the largest
 * reasonable ones pass.
 * @slow
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Counter, Family, MAX_LABEL_CHARS } from "@quorate/metrics";
import {
  EtcdError,
  GrpcCode,
  LeaseService,
  type MethodDescriptor,
  PutRequest,
  services,
  TxnRequest,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import { LOCAL_CALL, StatusError, type StreamCall } from "@quorate/rpc";
import { serviceTable } from "@quorate/services";
import {
  ClientVersions,
  MAX_CLIENT_VERSIONS,
  MAX_REQUEST_FIELDS,
  requestCheck,
} from "@quorate/services/testing";
import { ClientCall } from "./support/client-call.ts";
import { World } from "./support/world.ts";

const REQUEST_BYTES = 2_000_000;
const MAX_TXN_OPS = 128;

function repeated(unit: readonly number[]): Uint8Array {
  return Buffer.alloc(REQUEST_BYTES - (REQUEST_BYTES % unit.length), Uint8Array.from(unit));
}

const methods: MethodDescriptor[] = services.flatMap((service) => Object.values(service.methods));

describe("requests of a million parts", () => {
  for (const method of methods) {
    test(method.path, () => {
      const check = requestCheck(method, MAX_TXN_OPS);
      for (let field = 1; field <= 15; field++) {
        for (const unit of [
          [field * 8 + 2, 0],
          [field * 8, 1],
          [field * 8 + 2, 2, 10, 0],
          [field * 8 + 2, 2, 0x22, 0],
        ]) {
          const bytes = repeated(unit);
          assert.ok(isRefused(method, check, bytes), `${unit}`);
        }
      }
    });
  }

  /** Refused, or malformed near its beginning: then decoding it is as short. */
  function isRefused(
    method: MethodDescriptor,
    check: (bytes: Uint8Array) => void,
    bytes: Uint8Array,
  ): boolean {
    try {
      check(bytes);
    } catch (error) {
      return error instanceof StatusError || error instanceof EtcdError;
    }
    try {
      method.requestType.decode(bytes);
    } catch (error) {
      return (error as { offset?: number }).offset! < 100;
    }
    return false;
  }

  test("a transaction has etcd's error", () => {
    const txn = methods.find(({ path }) => path === "/etcdserverpb.KV/Txn")!;
    const compares = TxnRequest.encode({
      compare: Array.from({ length: 700_000 }, () => ({}) as never),
    });
    assert.throws(() => requestCheck(txn, MAX_TXN_OPS)(compares), {
      message: "etcdserver: too many operations in txn request",
    });
  });

  test("numbers packed in a list count too", () => {
    const watch = methods.find(({ path }) => path === "/etcdserverpb.Watch/Watch")!;
    const request = {
      requestUnion: {
        case: "createRequest",
        value: { filters: new Array<number>(1_000_000).fill(1) },
      },
    } as never;
    assert.throws(
      () => requestCheck(watch, MAX_TXN_OPS)(WatchRequest.encode(request)),
      /has too many fields: more than 20000$/,
    );
  });
});

test("messages of streams are looked at before they are decoded, whichever method they are of and however late they come", async () => {
  const world = new World(1, [], 1n);
  await world.startAll();
  const member = world.nodes[0].member!;
  await world.until(() => member.leader !== 0n);
  const { stream } = serviceTable(member);
  const streaming = methods.filter((method) => method.requestStream || method.responseStream);
  assert.ok(streaming.length >= 5);
  for (const { path } of streaming) {
    const begin = () => stream.get(path)!(new ClientCall(path));
    // Fields that no message has, which decoding would skip one by one.
    const bytes = repeated([15 * 8, 1]);
    const refused = {
      code: GrpcCode.InvalidArgument,
      message: /^etcdserver: request has too many fields: more than 20000$/,
    };
    assert.throws(() => begin().message!(bytes), refused, path);
    if (
      path !== WatchService.methods.Watch.path &&
      path !== LeaseService.methods.LeaseKeepAlive.path
    )
      continue;
    const listener = begin();
    listener.message!(new Uint8Array());
    assert.throws(() => listener.message!(bytes), refused, path);
    listener.cancelled?.();
  }
  const watch = stream.get(WatchService.methods.Watch.path)!;
  const filters = {
    requestUnion: {
      case: "createRequest",
      value: { filters: new Array<number>(1_000_000).fill(1) },
    },
  } as never;
  const call = {
    context: { ...LOCAL_CALL, path: WatchService.methods.Watch.path },
    bufferedBytes: 0,
  } as unknown as StreamCall;
  assert.throws(() => watch(call).message!(WatchRequest.encode(filters)), /has too many fields/);
  await world.stopAll();
});

describe("requests that are only large", () => {
  const check = (path: string, ops = MAX_TXN_OPS) =>
    requestCheck(methods.find((method) => method.path === path)!, ops);
  const key = new Uint8Array(100).fill(107);

  test("a value of two megabytes", () => {
    check("/etcdserverpb.KV/Put")(
      PutRequest.encode({ key, value: new Uint8Array(REQUEST_BYTES), lease: 7n, prevKv: true }),
    );
  });

  test("is not decoded before its handler decodes it", () => {
    const value = new Uint8Array(REQUEST_BYTES);
    const put = PutRequest.encode({ key, value });
    const txn = TxnRequest.encode({
      success: [{ request: { case: "requestPut", value: PutRequest.create({ key, value }) } }],
    });
    for (const [path, bytes] of [
      ["/etcdserverpb.KV/Put", put],
      ["/etcdserverpb.KV/Txn", txn],
    ] as const) {
      const method = methods.find((one) => one.path === path)!;
      const decodeFrom = () => assert.fail(`${path} was decoded`);
      requestCheck(
        { ...method, requestType: { ...method.requestType, decodeFrom } },
        MAX_TXN_OPS,
      )(bytes);
    }
  });

  for (const ops of [MAX_TXN_OPS, 10_000]) {
    test(`a transaction of ${ops} compares and as many operations in each list`, () => {
      const put = () =>
        ({
          request: {
            case: "requestPut",
            value: PutRequest.create({ key, value: key, lease: 9n, prevKv: true }),
          },
        }) as const;
      const compare = {
        result: 1,
        target: 1,
        key,
        rangeEnd: key,
        targetUnion: { case: "createRevision", value: 5 },
      } as const;
      const list = <T>(one: T): T[] => new Array<T>(ops).fill(one);
      check(
        "/etcdserverpb.KV/Txn",
        ops,
      )(TxnRequest.encode({ compare: list(compare), success: list(put()), failure: list(put()) }));
      assert.ok(ops > MAX_TXN_OPS || ops * 60 < MAX_REQUEST_FIELDS);
    });
  }
});

describe("labels from clients", () => {
  test("have the form of a version, and there are not many", () => {
    const requests = new Family(["kind", "version"], () => new Counter());
    const versions = new ClientVersions(requests);
    assert.equal(versions.label(undefined), "unknown");
    for (const version of ["3.7.0", "3.5.21+git", "4.0.0-alpha.1"])
      assert.equal(versions.label(version), version);
    for (const version of ["", "x".repeat(33), "a b", 'a"b', "3.7\u0000", "é", "x".repeat(60_000)])
      assert.equal(versions.label(version), "other");
    for (let i = 0; i < 10_000; i++) versions.label(`1.0.${i}`);
    const labels = new Set(Array.from({ length: 10_000 }, (_, i) => versions.label(`1.0.${i}`)));
    assert.equal(labels.size, MAX_CLIENT_VERSIONS - 3 + 1);
    assert.equal(versions.label("3.7.0"), "3.7.0");
    const of = (version: string | undefined) => ({ metadata: () => version });
    for (const version of ["3.7.0", undefined, "3.7.0", "3.7.0"])
      versions.counted("unary", of(version)).add();
    versions.counted("stream", of("3.7.0")).add();
    assert.equal(requests.with("unary", "3.7.0").value, 3);
    assert.equal(requests.with("unary", "unknown").value, 1);
    assert.equal(requests.with("stream", "3.7.0").value, 1);
  });

  test("of any metric are short", () => {
    const family = new Family(["name"], () => new Counter());
    family.with("x".repeat(MAX_LABEL_CHARS)).add();
    family.with("x".repeat(MAX_LABEL_CHARS + 1)).add();
    family.with("y".repeat(50_000)).add();
    assert.deepEqual(
      [...family.series.keys()].map((name) => name.length),
      [MAX_LABEL_CHARS, "other".length],
    );
    assert.equal(family.with("other").value, 2);
  });
});
