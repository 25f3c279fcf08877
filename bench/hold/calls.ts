/**
 * The calls that are measured: the heavy forms of each method, and one row for all that are light.
 */
import {
  ClusterService,
  Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  fromUtf8,
  KVService,
  LeaseService,
  MaintenanceService,
  PutRequest,
  RangeRequest,
  RangeRequest_SortOrder,
  RangeRequest_SortTarget,
  type RequestOp,
} from "@quorate/proto";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";
import type { TestClient } from "../../test/support/client.ts";
import { keyOf } from "../keys.ts";
import type { Reading } from "./http.ts";
import { takeSnapshot } from "./snapshot.ts";

/** The keys that are there, and what else a call needs to know. */
export interface Scene {
  readonly keys: number;
  /** A lease with `leasedKeys` keys under "l". */
  readonly lease: bigint;
  readonly leasedKeys: number;
  /**
   * The store's revision when the keys had been written once, before a part of them was written
   * again.
   */
  readonly firstRevision: number;
  /** What a single call may take. */
  readonly limitMs: number;
  /** Takes a snapshot to its end; returns its size in bytes. */
  snapshot(): Promise<number>;
  /**
   * Watches all keys from revision 2 on, with what they were before; resolves when the last event
   * has come.
   */
  watch(): Promise<void>;
  /** Sends a request over HTTP/1.1 and reads the response; returns its size in bytes. */
  http(method: string, path: string, body: string, reading?: Reading): Promise<number>;
}

export interface HeavyCall {
  readonly name: string;
  /** False: etcd is not asked, because it would need more memory than a machine for tests has. */
  readonly suitsEtcd?: boolean;
  run(client: TestClient, scene: Scene): Promise<unknown>;
}

const { Range, Txn, DeleteRange, Compact, Put } = KVService.methods;
const { VALUE, MOD, VERSION } = RangeRequest_SortTarget;
const { ASCEND, DESCEND } = RangeRequest_SortOrder;
const ALL = { key: new Uint8Array(1), rangeEnd: new Uint8Array(1) };
const TXN_OPS = 128;
/** What a call of a store of any size may take. */
const LIMIT_MS = 3_600_000;

type RangeOptions = Partial<RangeRequest>;

function range(name: string, options: RangeOptions, times = 1): HeavyCall {
  return {
    name,
    run: (client, { limitMs }) =>
      Promise.all(
        Array.from({ length: times }, () =>
          client.call(Range, RangeRequest.create({ ...ALL, ...options }), limitMs),
        ),
      ),
  };
}

function rangeOp(options: RangeOptions): RequestOp {
  return { request: { case: "requestRange", value: RangeRequest.create({ ...ALL, ...options }) } };
}

const compareValues = [
  Compare.create({
    ...ALL,
    result: Compare_CompareResult.NOT_EQUAL,
    target: Compare_CompareTarget.VALUE,
    targetUnion: { case: "value", value: fromUtf8("no key has this value") },
  }),
];

function txn(
  name: string,
  success: readonly RequestOp[],
  compare: readonly Compare[] = [],
  suitsEtcd = true,
): HeavyCall {
  const request = { compare: [...compare], success: [...success], failure: [] };
  return { name, suitsEtcd, run: (client, { limitMs }) => client.call(Txn, request, limitMs) };
}

/** The list of all keys by HTTP; etcd has the gateway alone. */
function lists(): HeavyCall[] {
  const all = '{"key":"AA==","range_end":"AA=="}';
  const kv = (name: string, query: string, reading: Reading = {}): HeavyCall => ({
    name: `GET /kv/, ${name}`,
    suitsEtcd: false,
    run: (_client, scene) => scene.http("GET", `/kv/?prefix${query}`, "", reading),
  });
  return [
    {
      name: "JSON gateway: range of all",
      run: (_client, scene) => scene.http("POST", "/v3/kv/range", all),
    },
    {
      name: "JSON gateway: put of 1.5 MB, all escapes",
      run: (_client, scene) => {
        const value = "\\u0041".repeat(250_000);
        return scene.http("POST", "/v3/kv/put", `{"key":"dA==","value":"${value}"}`);
      },
    },
    kv("list of all", ""),
    kv("list of all, keys only", "&keys"),
    kv("list of all, a slow reader", "", { bytesPerS: 4 << 20, leavesAfterBytes: 20 << 20 }),
    kv("list of all, the client leaves", "", { leavesAfterBytes: 1 << 20 }),
  ];
}

const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);
const put: RequestOp = {
  request: {
    case: "requestPut",
    value: PutRequest.create({ key: fromUtf8("t"), value: fromUtf8("t") }),
  },
};

/** In this order: the last ones take away what the others need. */
export const heavyCalls: readonly HeavyCall[] = [
  {
    name: "light calls: status, members, alarms, one key",
    run: async (client) => {
      await client.call(MaintenanceService.methods.Status, {});
      await client.call(ClusterService.methods.MemberList, {});
      await client.call(MaintenanceService.methods.Alarm, {});
      await client.call(Put, { key: fromUtf8("one"), value: fromUtf8("1") });
      await client.call(Range, { key: fromUtf8("one") });
    },
  },
  range("range of all", {}),
  ...lists(),
  range("range of all, keys only", { keysOnly: true }),
  range("range of all, count only", { countOnly: true }),
  {
    name: "list of 10,000 in the middle",
    run: (client, { keys, limitMs }) => {
      const key = keyOf("k", Math.floor(keys / 2));
      const rangeEnd = fromUtf8("l");
      return client.call(Range, { key, rangeEnd, limit: 10_000 }, limitMs);
    },
  },
  range("range of all, changed since the last revision but one", {
    minModRevision: Number.MAX_SAFE_INTEGER,
  }),
  {
    name: "range of all at an old revision, keys only",
    run: (client, { firstRevision, limitMs }) =>
      client.call(Range, { ...ALL, revision: firstRevision, keysOnly: true }, limitMs),
  },
  range("sort by value, limit 1", { sortTarget: VALUE, sortOrder: ASCEND, limit: 1 }),
  range("sort by value, descending, limit 1000", {
    sortTarget: VALUE,
    sortOrder: DESCEND,
    limit: 1000,
  }),
  range("sort by version, keys only", { sortTarget: VERSION, sortOrder: ASCEND, keysOnly: true }),
  range("sort by revision, descending, limit 10", {
    sortTarget: MOD,
    sortOrder: DESCEND,
    limit: 10,
  }),
  range(
    "three sorts by value, limit 1, at once",
    { sortTarget: VALUE, sortOrder: ASCEND, limit: 1 },
    3,
  ),
  range("1000 counts at once, one connection", { countOnly: true }, 1000),
  txn("txn of 128 counts", times(TXN_OPS, rangeOp({ countOnly: true }))),
  txn("txn that compares all values", [rangeOp({ countOnly: true })], compareValues),
  txn("txn that compares all values, and puts", [put], compareValues),
  txn(
    "txn of 128 ranges of all, keys only",
    times(TXN_OPS, rangeOp({ keysOnly: true })),
    [],
    false,
  ),
  {
    name: "HashKV",
    run: (client, { limitMs }) => client.call(MaintenanceService.methods.HashKV, {}, limitMs),
  },
  {
    name: "16 of HashKV at once",
    run: (client, { limitMs }) =>
      Promise.all(
        times(16, 0).map(() => client.call(MaintenanceService.methods.HashKV, {}, limitMs)),
      ),
  },
  {
    name: "Hash",
    run: (client, { limitMs }) => client.call(MaintenanceService.methods.Hash, {}, limitMs),
  },
  {
    name: "list of leases",
    run: (client, { limitMs }) => client.call(LeaseService.methods.LeaseLeases, {}, limitMs),
  },
  {
    name: "time to live of a lease, with its keys",
    run: (client, { lease, limitMs }) =>
      client.call(LeaseService.methods.LeaseTimeToLive, { ID: lease, keys: true }, limitMs),
  },
  { name: "snapshot", run: (_client, scene) => scene.snapshot() },
  {
    name: "watch of all from the first revision, with prev_kv",
    run: (_client, scene) => scene.watch(),
  },
  {
    name: "revocation of a lease with its keys",
    run: (client, { lease, limitMs }) =>
      client.call(LeaseService.methods.LeaseRevoke, { ID: lease }, limitMs),
  },
  {
    name: "txn that deletes a tenth of the keys",
    run: (client, { keys, limitMs }) => {
      const rangeEnd = keyOf("k", Math.floor(keys / 10));
      const value = DeleteRangeRequest.create({ key: fromUtf8("k"), rangeEnd });
      return client.call(
        Txn,
        { compare: [], success: [{ request: { case: "requestDeleteRange", value } }], failure: [] },
        limitMs,
      );
    },
  },
  {
    name: "deletion of all keys",
    run: (client, { limitMs }) => client.call(DeleteRange, ALL, limitMs),
  },
  {
    name: "compaction, physical",
    run: async (client, { limitMs }) => {
      // A revision that is not compacted yet, also when nobody else writes.
      const one = { key: fromUtf8("one"), value: fromUtf8("1") };
      const { header } = await client.call(Put, one, limitMs);
      await client.call(Compact, { revision: header!.revision, physical: true }, limitMs);
    },
  },
  {
    name: "defragment",
    run: (client, { limitMs }) => client.call(MaintenanceService.methods.Defragment, {}, limitMs),
  },
];

/** The calls whose names hold `text`. */
export function callsNamed(text: string): readonly HeavyCall[] {
  return heavyCalls.filter(({ name }) => name.includes(text));
}

/** What calls need to know that neither watch nor read leases. */
export function sceneOf(keys: number, address: string, identity: ClientIdentity): Scene {
  return {
    keys,
    lease: 0n,
    leasedKeys: 0,
    firstRevision: 1,
    limitMs: LIMIT_MS,
    snapshot: () => takeSnapshot(address, identity, LIMIT_MS),
    watch: () => Promise.reject(new Error("no watch is part of this")),
    http: () => Promise.reject(new Error("no call over HTTP is part of this")),
  };
}
