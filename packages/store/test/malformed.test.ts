/**
 * Entries that do not decode: each comes to an error, changes nothing, and is the same on every
 * member; nothing else has another meaning.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  AlarmRequest,
  AlarmType,
  CompactionRequest,
  DeleteRangeRequest,
  EMPTY,
  EtcdError,
  fromUtf8,
  InternalRaftRequest,
  LeaseCheckpointRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  membershippb,
  PutRequest,
  RangeRequest,
  type RequestOp,
  raftpb,
  TxnRequest,
  WireError,
} from "@quorate/proto";
import {
  type AppliedEntry,
  checkConfChangeData,
  checkEntryData,
  checkRequest,
  decodeTxn,
  InvalidRequestError,
  MAX_CHECKPOINT_LEASES,
  MAX_TXN_OPS_IN_ALL,
  type RequestKind,
  readConfChange,
  Store,
} from "@quorate/store";
import { addMember, member, removeMember } from "./store-log.ts";

const LIMITS = {
  maxTxnOps: 128,
  versionProblem: (version: string) => (version === "3.7.0" ? undefined : `no version: ${version}`),
};
const key = fromUtf8("k");
const put: RequestOp = {
  request: { case: "requestPut", value: PutRequest.create({ key, value: fromUtf8("v") }) },
};
const nested: RequestOp = {
  request: { case: "requestTxn", value: TxnRequest.create({ success: [put] }) },
};

/** A valid request of each kind that is proposed. */
const VALID: Readonly<Partial<Record<RequestKind, Uint8Array>>> = {
  put: PutRequest.encode({ key, value: fromUtf8("value"), lease: 0n, prevKv: true }),
  deleteRange: DeleteRangeRequest.encode({ key, rangeEnd: fromUtf8("z"), prevKv: true }),
  txn: TxnRequest.encode({ success: [put], failure: [nested] }),
  range: RangeRequest.encode({ key, limit: 5 }),
  compaction: CompactionRequest.encode({ revision: 1, physical: true }),
  leaseGrant: LeaseGrantRequest.encode({ ID: 77n, TTL: 300 }),
  leaseRevoke: LeaseRevokeRequest.encode({ ID: 77n }),
  leaseCheckpoint: LeaseCheckpointRequest.encode({ checkpoints: [{ ID: 77n, remaining_TTL: 20 }] }),
  alarm: AlarmRequest.encode({ action: 1, memberID: 9n, alarm: AlarmType.NOSPACE }),
  clusterVersionSet: membershippb.ClusterVersionSetRequest.encode({ ver: "3.7.0" }),
  clusterMemberAttrSet: membershippb.ClusterMemberAttrSetRequest.encode({
    member_ID: 1n,
    memberAttributes: { name: "m0", clientUrls: ["http://a:1"] },
  }),
};
const KINDS = Object.keys(VALID) as RequestKind[];

async function openStore(): Promise<Store> {
  const disk = new MemoryDisk();
  disk.makeDir("/store");
  return Store.open(new MemoryKeyspaceOpener(disk), "/store");
}

/** Stores that apply the same entries. */
class Members {
  readonly stores: readonly Store[];
  constructor(stores: readonly Store[]) {
    this.stores = stores;
  }

  /** Applies data on all; what it came to, the same on all. */
  apply(data: Uint8Array): AppliedEntry {
    const results = this.stores.map((store, i) => {
      const { index } = store.position;
      // Who waits for the answer must make no difference.
      return store.apply(
        { type: raftpb.EntryType.EntryNormal, index: index + 1, term: 1, data },
        { applies: () => i === 0 },
      );
    });
    const [first] = results;
    for (const { error, kind, requestId } of results) {
      assert.deepEqual(
        [error?.message, kind, requestId],
        [first.error?.message, first.kind, first.requestId],
      );
    }
    return first;
  }

  /** Everything that a request may change. */
  async state(): Promise<unknown> {
    const states = await Promise.all(
      this.stores.map(async (store) => ({
        hash: await store.mvcc.hash(),
        revision: store.mvcc.currentRevision,
        leases: [...store.lessor.all()].map(({ id, keyCount }) => [id, keyCount]),
        alarms: store.alarms.list(),
        members: store.membership.members(),
      })),
    );
    for (const state of states) assert.deepEqual(state, states[0]);
    return states[0];
  }
}

async function members(): Promise<Members> {
  const made = new Members([await openStore(), await openStore()]);
  made.apply(entryOf("leaseGrant", VALID.leaseGrant!));
  made.apply(entryOf("put", PutRequest.encode({ key, value: fromUtf8("old"), lease: 77n })));
  return made;
}

function entryOf(kind: RequestKind | "downgradeInfoSet", request: Uint8Array, id = 5n): Uint8Array {
  return InternalRaftRequest.encode({
    header: { ID: id, username: "", authRevision: 0 },
    [kind]: request,
  });
}

function isMalformed({ error }: AppliedEntry): boolean {
  return error instanceof InvalidRequestError;
}

for (const kind of KINDS) {
  test(`${kind}: a request that is cut anywhere, or is 08, fails or is applied as it reads; the next ones are applied`, async () => {
    const all = await members();
    const valid = VALID[kind]!;
    const before = await all.state();
    const one = all.apply(entryOf(kind, Uint8Array.of(0x08)));
    assert.ok(isMalformed(one), String(one.error));
    assert.deepEqual([one.requestId, one.kind], [5n, kind]);
    assert.deepEqual(
      { ...(before as object), hash: 0 },
      { ...((await all.state()) as object), hash: 0 },
    );
    let malformed = 0;
    for (let length = 0; length < valid.length; length++)
      if (isMalformed(all.apply(entryOf(kind, valid.subarray(0, length))))) malformed++;
    assert.ok(malformed > 0);
    assert.ok(!isMalformed(all.apply(entryOf(kind, valid))));
    await all.state();
  });
}

test("the entry itself: garbage, no request, a request of a newer version", async () => {
  const all = await members();
  for (const data of [[0x08], [0x0a, 0x7f], [0xff, 0xff], [0x22, 0x05, 1], [0xa2, 0x06, 0x01]]) {
    const applied = all.apply(Uint8Array.from(data));
    assert.ok(isMalformed(applied), String(data));
    assert.deepEqual([applied.requestId, applied.kind], [0n, undefined]);
  }
  const empty = all.apply(
    InternalRaftRequest.encode({ header: { ID: 9n, username: "", authRevision: 0 } }),
  );
  assert.match(empty.error!.message, /carries no request/);
  assert.equal(empty.requestId, 9n);
  // Passed over, it would make this member differ from those that know it.
  const newer = Uint8Array.of(0xc2, 0xbb, 0x01, 0x00);
  assert.throws(() => all.apply(newer), /a newer member wrote it; upgrade this one/);
});

test("random requests of every kind: an answer, the same on every member, and a store that goes on (seed 3)", async () => {
  const random = new SeededRandom(3n);
  const all = await members();
  let malformed = 0;
  for (let i = 0; i < 6000; i++) {
    const kind = KINDS[random.below(KINDS.length)];
    if (isMalformed(all.apply(entryOf(kind, mutated(random, VALID[kind]!), BigInt(i)))))
      malformed++;
  }
  assert.ok(malformed > 500 && malformed < 5500, `${malformed}`);
  await all.state();
});

/** A few bytes changed, cut out or put in. */
function mutated(random: SeededRandom, valid: Uint8Array): Uint8Array {
  const bytes = [...valid];
  for (let edits = random.below(4); edits >= 0; edits--) {
    const at = random.below(bytes.length + 1);
    const what = random.below(3);
    if (what === 0) bytes[at] = random.below(256);
    else if (what === 1)
      bytes.splice(at, 0, ...Array.from({ length: random.below(4) }, () => random.below(256)));
    else bytes.splice(at, random.below(4));
  }
  return Uint8Array.from(bytes);
}

// --- What may be proposed ---

for (const kind of KINDS) {
  test(`${kind}: what is proposed is checked whole`, () => {
    const valid = VALID[kind]!;
    checkRequest(kind, valid, LIMITS);
    assert.equal(checkEntryData(entryOf(kind, valid), LIMITS), 5n);
    assert.throws(() => checkRequest(kind, Uint8Array.of(0x08), LIMITS), WireError);
    assert.throws(() => checkEntryData(entryOf(kind, Uint8Array.of(0x08)), LIMITS), WireError);
    // The request twice: its parts would be joined.
    const twice = InternalRaftRequest.encode({ [kind]: valid });
    assert.throws(
      () => checkEntryData(Uint8Array.from([...twice, ...twice]), LIMITS),
      /2 requests instead of one/,
    );
  });
}

const REFUSED: readonly (readonly [kind: RequestKind, request: Uint8Array, error: RegExp])[] = [
  ["put", PutRequest.encode({}), /key is not provided/],
  ["put", PutRequest.encode({ key, ignoreLease: true, lease: 4n }), /lease is provided/],
  ["deleteRange", DeleteRangeRequest.encode({ rangeEnd: key }), /key is not provided/],
  ["range", RangeRequest.encode({ key, sortOrder: 9 as 0 }), /invalid sort option/],
  [
    "txn",
    TxnRequest.encode({ success: Array.from({ length: 129 }, () => put) }),
    /too many operations/,
  ],
  ["txn", TxnRequest.encode({ success: [put, put] }), /duplicate key/],
  ["txn", TxnRequest.encode({ success: [{ request: undefined }] }), /key not found/],
  ["leaseGrant", LeaseGrantRequest.encode({ ID: 1n, TTL: 9_000_000_001 }), /too large lease TTL/],
  ["alarm", AlarmRequest.encode({ action: 1, alarm: 77 as AlarmType }), /unknown alarm type 77/],
  ["alarm", AlarmRequest.encode({ action: 5 as 1 }), /unknown alarm action 5/],
  [
    "clusterVersionSet",
    membershippb.ClusterVersionSetRequest.encode({ ver: "99.0.0" }),
    /no version/,
  ],
  [
    "leaseCheckpoint",
    LeaseCheckpointRequest.encode({
      checkpoints: Array.from({ length: MAX_CHECKPOINT_LEASES + 1 }, () => ({
        ID: 1n,
        remaining_TTL: 1,
      })),
    }),
    /a checkpoint of 1001 leases/,
  ],
];

test("requests that no state makes valid are not proposed", () => {
  for (const [kind, request, error] of REFUSED) {
    assert.throws(() => checkRequest(kind, request, LIMITS), error);
    assert.throws(() => checkEntryData(entryOf(kind, request), LIMITS), error);
  }
  assert.throws(() => checkEntryData(EMPTY, LIMITS), /0 requests/);
  assert.throws(
    () => checkEntryData(Uint8Array.of(0xc2, 0xbb, 0x01, 0x00), LIMITS),
    /does not serve/,
  );
});

test("operations are counted before anything is made of them: lists that are too long, and too many in nested ones", () => {
  const million = new Uint8Array(2_000_000);
  for (let at = 0; at < million.length; at += 2) million[at] = 0x0a;
  assert.throws(() => decodeTxn(million, 128), {
    code: "TooManyOps",
    message: "etcdserver: too many operations in txn request",
  });
  assert.throws(() => checkRequest("txn", million, LIMITS), { code: "TooManyOps" });
  // A hundred lists of a hundred nested transactions with two operations: no list is too long.
  const inner = {
    request: { case: "requestTxn", value: TxnRequest.create({ success: [put], failure: [put] }) },
  } as const;
  const middle = {
    request: {
      case: "requestTxn",
      value: TxnRequest.create({ success: Array.from({ length: 100 }, () => inner) }),
    },
  } as const;
  const outer = TxnRequest.encode({ success: Array.from({ length: 100 }, () => middle) });
  assert.throws(() => decodeTxn(outer, 128), {
    code: "TooManyOps",
    message: /: more than 10000, those of nested transactions counted too$/,
  });
  assert.equal(decodeTxn(outer, 40_000).success.length, 100);
  assert.equal(MAX_TXN_OPS_IN_ALL, 10_000);
  assert.throws(() => decodeTxn(million.fill(0xff), 128), WireError);
});

test("an entry that repeats a request a hundred thousand times is refused at once", () => {
  const many = new Uint8Array(300_000);
  for (let at = 0; at < many.length; at += 3) many.set([0x22, 0x01, 0x00], at);
  const startMs = performance.now();
  assert.throws(() => checkEntryData(many, LIMITS), /100000 requests instead of one/);
  assert.ok(performance.now() - startMs < 1000);
});

// --- Configuration changes ---

function confEntry(
  data: Uint8Array,
  type: raftpb.EntryType = raftpb.EntryType.EntryConfChange,
): raftpb.Entry {
  return { type, index: 1, term: 1, data };
}

test("configuration changes that do not decode are none", () => {
  const add = raftpb.ConfChange.encode(addMember(member(4n)));
  assert.ok(!(readConfChange(confEntry(add)) instanceof Error));
  assert.ok(
    !(readConfChange(confEntry(raftpb.ConfChange.encode(removeMember(4n)))) instanceof Error),
  );
  const broken: readonly Uint8Array[] = [
    Uint8Array.of(0x08),
    add.subarray(0, add.length - 1),
    raftpb.ConfChange.encode({ type: 9 as raftpb.ConfChangeType, nodeId: 4n }),
    ...[
      "",
      "{",
      "[]x",
      '"text"',
      '{"peerURLs":7}',
      '{"peerURLs":[7]}',
      `{"id":${"9".repeat(100_000)}}`,
    ].map((context) => raftpb.ConfChange.encode({ nodeId: 4n, context: fromUtf8(context) })),
  ];
  for (const data of broken) {
    assert.ok(
      readConfChange(confEntry(data)) instanceof InvalidRequestError,
      String(data.subarray(0, 40)),
    );
    assert.throws(
      () => checkConfChangeData(data, () => {}),
      (error) => error instanceof InvalidRequestError || error instanceof WireError,
    );
  }
  assert.ok(
    readConfChange(confEntry(Uint8Array.of(0x08), raftpb.EntryType.EntryConfChangeV2)) instanceof
      InvalidRequestError,
  );
});

test("configuration changes of other members are checked for what they say", () => {
  const urls = (texts: readonly string[]) => {
    if (texts.some((text) => text.length > 30)) throw new EtcdError("MemberBadURLs");
  };
  assert.equal(
    checkConfChangeData(raftpb.ConfChange.encode({ ...addMember(member(4n)), id: 12n }), urls),
    12n,
  );
  const long = { ...member(4n), peerUrls: ["http://a-name-that-is-too-long-for-this-test:1"] };
  assert.throws(() => checkConfChangeData(raftpb.ConfChange.encode(addMember(long)), urls), {
    code: "MemberBadURLs",
  });
  assert.throws(
    () => checkConfChangeData(raftpb.ConfChange.encode(addMember(member(0n))), urls),
    /member 0/,
  );
});
