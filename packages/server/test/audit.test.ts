/** Lines of the audit log: what is shown, what is not, whatever a client sends. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  errorOf,
  fromUtf8,
  GrpcCode,
  KVService,
  LockService,
  type MethodDescriptor,
  RangeRequest,
  RangeResponse,
  RangeStreamResponse,
  ResponseHeader,
  services,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import type {
  MessageBytes,
  ServiceTable,
  Status,
  StreamHandler,
  StreamListener,
} from "@quorate/rpc";
import { toStatusError } from "@quorate/services";
import { KeyFilter } from "../src/audit/audit.ts";
import { auditLine, MAX_LISTED_KEYS, MAX_SHOWN_BYTES } from "../src/audit/line.ts";
import { revisionAtHand, revisionOf } from "../src/audit/response-head.ts";
import { MAX_KNOWN_WATCHES, MAX_PENDING_WATCHES } from "../src/audit/streams.ts";
import { type KeyAccess, subjectOf } from "../src/audit/subjects.ts";
import { auditOf, contextOf, type Line, tableOf } from "./support/audited.ts";
import { ClientCall } from "./support/client-call.ts";

const { Range, Put, Txn } = KVService.methods;

describe("subjects", () => {
  test("no field of any request is shown that may be a secret, whatever the level", () => {
    const MARK = "MARKED";
    let filled = 0;
    for (const { methods } of services) {
      for (const method of Object.values(methods) as MethodDescriptor[]) {
        const request = method.requestType.create({}) as Record<string, unknown>;
        for (const name of Object.keys(request)) {
          if (!/password|token|value|secret|hash/i.test(name)) continue;
          if (typeof request[name] === "string") request[name] = MARK;
          else if (request[name] instanceof Uint8Array) request[name] = fromUtf8(MARK);
          else continue;
          filled++;
        }
        const bytes = method.requestType.encode(request).slice();
        const call = {
          wallMs: 0,
          caller: { user: "", proof: "", address: "", certificate: undefined },
          path: method.path,
          revision: 0,
          verdict: "ok" as const,
          code: "OK",
          tookMs: 0,
        };
        for (const hash of [undefined, () => "h"]) {
          const subject = subjectOf(method.path, bytes, hash !== undefined);
          assert.ok(!auditLine({ ...call, subject }, hash).includes(MARK), method.path);
        }
      }
    }
    assert.ok(filled >= 7, `${filled} fields`);
  });

  test("bytes that are no request have no keys", () => {
    assert.deepEqual(subjectOf(Put.path, Uint8Array.of(0x0a, 0xff), false).accesses, []);
    assert.deepEqual(subjectOf("/no.Such/Method", new Uint8Array(0), true).accesses, []);
  });

  test("keys are the same whether they are read at once or decoded, whatever their order", () => {
    const long = new Uint8Array(200).fill(98);
    for (const method of [Put, Range, KVService.methods.DeleteRange] as MethodDescriptor[]) {
      for (const key of [new Uint8Array(0), fromUtf8("a"), long]) {
        for (const rangeEnd of [new Uint8Array(0), Uint8Array.of(0), long]) {
          const request = { key, rangeEnd, value: fromUtf8("v"), prevKv: true };
          const bytes = method.requestType.encode(request as object).slice();
          const [quick, decoded] = [false, true].map((isDetailed) =>
            subjectOf(method.path, bytes, isDetailed).accesses.map(({ op, key: start, end }) => {
              return [op, [...start], [...end]];
            }),
          );
          assert.deepEqual(quick, decoded);
        }
      }
    }
    const twice = Uint8Array.of(0x0a, 1, 97, 0x0a, 1, 98);
    assert.deepEqual(subjectOf(Put.path, twice, false).accesses[0].key, fromUtf8("b"));
    for (let length = 1; length < 6; length++) {
      const cut = Uint8Array.of(0x0a, 1, 97, 0x12, 2, 98).subarray(0, length);
      assert.deepEqual(
        subjectOf(Range.path, cut, false).accesses.length,
        subjectOf(Range.path, cut, true).accesses.length,
      );
    }
  });

  test("the name of a lock is a key", () => {
    const request = LockService.methods.Lock.requestType.encode({ name: fromUtf8("l") } as object);
    const [access] = subjectOf(LockService.methods.Lock.path, request, false).accesses;
    assert.deepEqual([access?.op, access?.key], ["use", fromUtf8("l")]);
  });
});

describe("lines", () => {
  const put = async (key: Uint8Array): Promise<Line> => {
    const { audit, lines } = auditOf();
    const table = audit.around(tableOf(Put.path, () => new Uint8Array(0)));
    await table.unary.get(Put.path)!(
      Put.requestType.encode({ key } as object),
      contextOf(Put.path),
    );
    return lines[0];
  };
  const firstKey = (line: Line) => (line["keys"] as Line[])[0];

  test("a key is one text, whatever it holds; bytes that are no text are hexadecimal", async () => {
    const evil = '"}\n{"user":"root';
    assert.equal(firstKey(await put(fromUtf8(evil)))["key"], evil);
    assert.equal(firstKey(await put(fromUtf8("grüße")))["key"], "grüße");
    assert.equal(firstKey(await put(Uint8Array.of(0xff, 0)))["keyHex"], "ff00");
  });

  test("a long key is cut, and of many keys the first are listed", async () => {
    const long = firstKey(await put(new Uint8Array(2000).fill(97)));
    assert.equal((long["key"] as string).length, MAX_SHOWN_BYTES);
    assert.equal(long["keyBytes"], 2000);
    const { audit, lines } = auditOf();
    const table = audit.around(tableOf(Txn.path, () => new Uint8Array(0)));
    const op = { request: { case: "requestPut", value: { key: fromUtf8("k") } } };
    const inner = { request: { case: "requestTxn", value: { success: Array(100).fill(op) } } };
    const request = Txn.requestType.encode({ success: [inner] } as object);
    await table.unary.get(Txn.path)!(request, contextOf(Txn.path));
    assert.equal((lines[0]["keys"] as Line[]).length, MAX_LISTED_KEYS);
    assert.equal(lines[0]["moreKeys"], 100 - MAX_LISTED_KEYS);
  });

  test("the revision is that of the response, in one piece or in many", () => {
    const header = { clusterId: 2n ** 63n, memberId: 5n, revision: 123_456_789_012, raftTerm: 3 };
    const bytes = RangeResponse.encode({ header } as object);
    assert.equal(revisionOf(bytes), 123_456_789_012);
    assert.equal(revisionOf([...bytes].map((byte) => Uint8Array.of(byte))), 123_456_789_012);
    assert.equal(revisionAtHand(bytes), 123_456_789_012);
    assert.equal(revisionAtHand([bytes, bytes]), 123_456_789_012);
    const elsewhere = [[], Uint8Array.of(0x0a), [...bytes].map((byte) => Uint8Array.of(byte))];
    for (const one of elsewhere) assert.equal(revisionAtHand(one), undefined);
    assert.equal(revisionOf([]), 0);
    assert.equal(revisionOf(Uint8Array.of(0x0a)), 0);
  });

  test("an error, thrown at once or later, has a line and stays an error", async () => {
    const { audit, lines } = auditOf();
    for (const handler of [
      () => {
        throw toStatusError(errorOf("PermissionDenied"));
      },
      () => Promise.reject(toStatusError(errorOf("NoSpace"))),
      () => Promise.reject(toStatusError(errorOf("UserEmpty"))),
    ]) {
      const call = audit.around(tableOf(Put.path, handler)).unary.get(Put.path)!;
      await assert.rejects(async () => call(new Uint8Array(0), contextOf(Put.path)));
    }
    assert.deepEqual(
      lines.map(({ verdict, code }) => [verdict, code]),
      [
        ["denied", "PermissionDenied"],
        ["failed", "ResourceExhausted"],
        ["denied", "InvalidArgument"],
      ],
    );
  });

  test("while lines cannot be written, writes are refused where that is wanted", async () => {
    const { audit, sink } = auditOf({ onFailure: "refuse" });
    sink.isWritable = false;
    const call = (path: string, request: Uint8Array) => async () =>
      audit.around(tableOf(path, () => new Uint8Array(0))).unary.get(path)!(
        request,
        contextOf(path),
      );
    await assert.rejects(call(Put.path, new Uint8Array(0)), {
      code: GrpcCode.Unavailable,
      message: "etcdserver: the audit log cannot be written",
    });
    await call(Range.path, new Uint8Array(0))();
    const get = { request: { case: "requestRange", value: { key: fromUtf8("k") } } };
    await call(Txn.path, Txn.requestType.encode({ success: [get] } as object))();
    const del = { request: { case: "requestDeleteRange", value: { key: fromUtf8("k") } } };
    await assert.rejects(call(Txn.path, Txn.requestType.encode({ success: [del] } as object)));
    assert.equal(audit.refusedWrites, 2);
  });

  test("ranges count as near a prefix when they share a key with it", () => {
    const filter = new KeyFilter([fromUtf8("b/"), Uint8Array.of(0xff)]);
    const near = (key: string, end: string): boolean =>
      filter.admits([{ op: "get", key: fromUtf8(key), end: fromUtf8(end) } as KeyAccess]);
    for (const [key, end] of [
      ["b/", ""],
      ["b/x", ""],
      ["a", "c"],
      ["a", "\0"],
      ["b0", "\0"],
    ] as const) {
      assert.ok(near(key, end), `${key} ${end}`);
    }
    for (const [key, end] of [
      ["b", ""],
      ["b0", ""],
      ["a", "b/"],
      ["b0", "c"],
    ] as const) {
      assert.ok(!near(key, end), `${key} ${end}`);
    }
    assert.ok(filter.admits([]));
  });
});

describe("watches", () => {
  function watching() {
    const { audit, lines } = auditOf();
    let send: (message: MessageBytes) => boolean = () => true;
    const { path } = WatchService.methods.Watch;
    const table: ServiceTable = {
      unary: new Map(),
      stream: new Map([
        [
          path,
          (call) => {
            send = call.send;
            return {};
          },
        ],
      ]),
    };
    const listener: StreamListener = audit.around(table).stream.get(path)!({
      context: contextOf(path),
      send: () => true,
      bufferedBytes: 0,
      end: () => {},
      pause: () => {},
      resume: () => {},
    });
    const create = (key: string): void =>
      listener.message!(
        WatchRequest.encode({
          requestUnion: { case: "createRequest", value: { key: fromUtf8(key) } },
        } as object),
      );
    const respond = (response: object): void => {
      send(WatchResponse.encode({ header: { revision: 7 }, ...response } as object));
    };
    return { lines, listener, create, respond };
  }
  const keyOf = (line: Line | undefined) => (line?.["keys"] as Line[] | undefined)?.[0]?.["key"];

  test("each watch has a line when it is created, and when it ends for want of permission", () => {
    const { lines, listener, create, respond } = watching();
    create("a");
    create("b");
    respond({ watchId: 1, created: true });
    respond({ watchId: 1, events: [new Uint8Array(200)] });
    const reason = "rpc error: code = PermissionDenied desc = etcdserver: permission denied";
    respond({ watchId: -1, created: true, canceled: true, cancelReason: reason });
    respond({ watchId: 1, canceled: true, cancelReason: reason });
    assert.deepEqual(
      lines.map((line) => [keyOf(line), line["verdict"]]),
      [
        ["a", "ok"],
        ["b", "denied"],
        ["a", "denied"],
      ],
    );
    create("c");
    listener.cancelled!();
    assert.deepEqual([keyOf(lines[3]), lines[3]["code"], lines.length], ["c", "Canceled", 4]);
  });

  test("beyond the bound of waiting watches lines have no keys, and stay in order", () => {
    const { lines, create, respond } = watching();
    for (let i = 0; i < MAX_PENDING_WATCHES + 2; i++) create(String(i));
    for (let i = 0; i < MAX_PENDING_WATCHES + 2; i++) respond({ watchId: i, created: true });
    create("last");
    respond({ watchId: 9999, created: true });
    assert.equal(keyOf(lines[MAX_PENDING_WATCHES - 1]), String(MAX_PENDING_WATCHES - 1));
    assert.equal(keyOf(lines[MAX_PENDING_WATCHES + 1]), undefined);
    assert.equal(keyOf(lines[MAX_PENDING_WATCHES + 2]), "last");
  });

  test("the end of a watch beyond the bound of known ones has a line without keys", () => {
    const { lines, create, respond } = watching();
    for (let i = 0; i <= MAX_KNOWN_WATCHES; i++) {
      create("k");
      respond({ watchId: i, created: true });
    }
    respond({ watchId: MAX_KNOWN_WATCHES, canceled: true, cancelReason: "why" });
    assert.equal(keyOf(lines.at(-1)), undefined);
    respond({ watchId: 0, canceled: true, cancelReason: "why" });
    assert.equal(keyOf(lines.at(-1)), "k");
  });
});

test("a range in parts has one line, with its keys and the revision of the last part", () => {
  const { audit, lines } = auditOf({ readSampling: 2 });
  const { path } = KVService.methods.RangeStream;
  const parts: MessageBytes[] = [
    RangeStreamResponse.encode({
      rangeResponse: RangeResponse.create({ kvs: [new Uint8Array(9)] }),
    }),
    RangeStreamResponse.encode({
      rangeResponse: RangeResponse.create({ header: ResponseHeader.create({ revision: 77 }) }),
    }),
  ];
  const refusal = toStatusError(errorOf("PermissionDenied"));
  const serve = (refused?: Status): void => {
    const handler: StreamHandler = (call) => ({
      message: () => {
        if (refused === undefined) for (const part of parts) call.send(part);
        call.end(refused);
      },
    });
    const table = { unary: new Map(), stream: new Map([[path, handler]]) };
    const listener = audit.around(table).stream.get(path)!(new ClientCall(path, contextOf(path)));
    listener.message!(RangeRequest.encode(RangeRequest.create({ key: fromUtf8("a") })));
  };
  serve();
  serve();
  serve(refusal);
  assert.deepEqual(
    lines.map((line) => [(line["keys"] as Line[])[0]["key"], line["verdict"], line["revision"]]),
    [
      ["a", "ok", 77],
      ["a", "denied", undefined],
    ],
  );
});
