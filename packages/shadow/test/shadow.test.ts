/** Comparing, finding what differs, and holding back what would change a cluster. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpRequest } from "@quorate/host";
import type { MemberDeps } from "@quorate/member";
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  fromLatin1,
  InternalRaftRequest,
  KeyValue,
  PutRequest,
  raftpb,
  TxnRequest,
  toLatin1,
} from "@quorate/proto";
import {
  Coverage,
  compare,
  firstDifferent,
  type HashSource,
  type KeyReader,
  locate,
  OtherwiseCounter,
  type ShadowReport,
  shadowPages,
  verdictOf,
} from "@quorate/shadow";
import type { AppliedEntry, KeyValueHash, Member, Store } from "@quorate/store";
import { quiet } from "../node/quiet.ts";

const voter = (n: number): Member => ({
  id: BigInt(n),
  name: `m${n}`,
  peerUrls: [`http://h${n}:2380`],
  clientUrls: [],
  isLearner: false,
});

const VOTERS = [1, 2, 3].map(voter);

/** A cluster whose history is hashed as its revision; voter 2 has another one from `from` on. */
class FakeSource implements HashSource {
  revision = 100;
  compactRevision = 10;
  from = Number.POSITIVE_INFINITY;
  /** Voters that stand there. */
  readonly behind = new Map<bigint, Partial<KeyValueHash>>();
  readonly silent = new Set<bigint>();
  pauses = 0;

  async own(asked: number): Promise<KeyValueHash> {
    const { revision: currentRevision, compactRevision } = this;
    const revision = asked === 0 ? currentRevision : asked;
    return { hash: revision, revision, compactRevision, currentRevision };
  }

  voters(): readonly Member[] {
    return VOTERS;
  }

  async ask(members: readonly Member[], revision: number) {
    return members.map(({ id }) => {
      const { currentRevision = 100, compactRevision = this.compactRevision } =
        this.behind.get(id) ?? {};
      const refused = (error: string) => ({ memberId: id, hash: undefined, error });
      if (this.silent.has(id)) return refused("connection refused");
      if (revision > currentRevision)
        return refused("mvcc: required revision is a future revision");
      const hash = id === 2n && revision >= this.from ? revision + 0.5 : revision;
      return {
        memberId: id,
        hash: { hash, revision, compactRevision, currentRevision },
        error: "",
      };
    });
  }

  async pause(): Promise<void> {
    this.pauses++;
    // Meanwhile all catch up.
    this.behind.clear();
  }
}

test("voters that are behind, or compact, are asked again; one that is down is not waited for", async () => {
  const source = new FakeSource();
  source.behind.set(1n, { currentRevision: 90 });
  source.behind.set(3n, { compactRevision: 9 });
  source.silent.add(2n);
  assert.deepEqual(await compare(source), {
    kind: "equal",
    revision: 100,
    compactRevision: 10,
    compared: 2,
    voters: 3,
  });
  assert.equal(source.pauses, 1);
  for (const { id } of VOTERS) source.silent.add(id);
  assert.deepEqual(await compare(source), { kind: "none", why: "connection refused" });
});

test("the first revision that differs is found by halving, and bounded by the compaction", async () => {
  for (const from of [11, 12, 63, 99, 100]) {
    const source = new FakeSource();
    source.from = from;
    const found = await compare(source);
    assert.equal(found.kind, "different");
    if (found.kind !== "different") continue;
    assert.equal(found.member.name, "m2");
    assert.equal(await firstDifferent(source, found), from);
  }
  const before = new FakeSource();
  before.from = 3;
  const found = await compare(before);
  assert.ok(found.kind === "different");
  assert.equal(await firstDifferent(before, found), 10, "what compaction left differs");
  before.compactRevision = 50;
  assert.equal(await firstDifferent(before, found), undefined, "it compacted meanwhile");
});

test("a comparison covers the revisions since the compaction, each once", () => {
  const coverage = new Coverage(100);
  coverage.add(90, 140);
  assert.deepEqual([coverage.equal, coverage.through], [41, 140]);
  coverage.add(120, 200);
  assert.deepEqual([coverage.equal, coverage.through], [101, 200]);
  coverage.add(260, 300);
  assert.deepEqual([coverage.equal, coverage.through], [142, 300]);
  coverage.add(260, 300);
  assert.equal(coverage.equal, 142);
});

test("requests are judged by the rules of a member's door, and texts are bounded", async () => {
  const limits = { maxTxnOps: 2, maxRequestBytes: 100, quotaBytes: 1000 };
  const counter = new OtherwiseCounter({ ...limits, versionProblem: () => undefined });
  const store = { auth: { isEnabled: false }, lessor: {}, quotaBytes: 10 } as unknown as Store;
  const applied = (kind: "put" | "txn" | "alarm", request: Uint8Array): void => {
    const data = InternalRaftRequest.encode({ [kind]: request });
    const entry = raftpb.Entry.create({ index: 7, data });
    counter.applied(entry, { kind } as AppliedEntry, store);
  };
  const key = fromLatin1("a");
  applied("put", PutRequest.encode({ key }));
  assert.equal(counter.all.length, 0);
  applied("put", PutRequest.encode({ key, value: new Uint8Array(100) }));
  const requestPut = PutRequest.create({ key });
  applied("txn", TxnRequest.encode({ success: [1, 2, 3].map(() => ({ requestPut })) } as never));
  const { NOSPACE } = AlarmType;
  applied(
    "alarm",
    AlarmRequest.encode({ action: AlarmRequest_AlarmAction.ACTIVATE, alarm: NOSPACE }),
  );
  assert.deepEqual(
    counter.all.map(({ what, count, lastIndex }) => [what.slice(0, 32), count, lastIndex]),
    [
      ["put: more than --max-request-byt", 1, 7],
      ["txn: etcdserver: too many operat", 1, 7],
      ["alarm: NOSPACE is raised, and 10", 1, 7],
    ],
  );
  assert.deepEqual(Object.fromEntries(counter.kinds), { put: 2, txn: 1, alarm: 1 });
  for (let i = 0; i < 100; i++) counter.note(`${i} ${"x".repeat(1000)}`, i);
  assert.equal(counter.all.length, 51);
  assert.equal(counter.all.at(-1)?.what, "others");
  assert.ok(counter.all.every(({ what }) => what.length <= 300));
});

function reader(records: readonly KeyValue[]): KeyReader {
  return {
    async page({ from, limit, only }) {
      return records
        .filter(({ key, modRevision }) => {
          return toLatin1(key) >= from && (only === undefined || modRevision === only);
        })
        .slice(0, limit);
    },
  };
}

const record = (key: string, modRevision: number, value = "v"): KeyValue =>
  KeyValue.create({
    key: fromLatin1(key),
    value: fromLatin1(value),
    modRevision,
    createRevision: 1,
    version: 1,
  });

test("the key that differs is named, of several that of the lowest revision", async () => {
  const many = Array.from({ length: 450 }, (_, i) => record(`k${1000 + i}`, 10 + i));
  const changed = many.map((one, i) =>
    i === 300 ? record("k1300", 310, "w") : i === 420 ? record("k1420", 430, "vv") : one,
  );
  const found = await locate(reader(many), reader(changed), { revision: 500 });
  assert.deepEqual(
    { ...found, key: toLatin1(found!.key) },
    { key: "k1300", revision: 310, seen: "values of 1 bytes, which differ from byte 0 on" },
  );
  const only = await locate(reader(many), reader(changed), { revision: 500, only: 430 });
  assert.deepEqual(toLatin1(only!.key), "k1420");
  const missing = await locate(reader(many), reader(many.slice(0, 449)), { revision: 500 });
  assert.equal(missing!.seen, "the shadow has this key, the voter has not");
  const more = await locate(reader(many.slice(1)), reader(many), { revision: 500 });
  assert.equal(more!.seen, "the voter has this key, the shadow has not");
  assert.equal(await locate(reader(many), reader(many), { revision: 500 }), undefined);
});

test("proposals neither come in nor go out, but for that of its own name", () => {
  const sent: raftpb.Message[] = [];
  const got: raftpb.Message[] = [];
  const held = { incoming: 0, outgoing: 0 };
  const listener = { received: (all: readonly raftpb.Message[]) => void got.push(...all) };
  let received: (messages: readonly raftpb.Message[]) => void = () => {};
  const deps = {
    makeTransport: (request: { listener: { received: typeof received } }) => {
      received = request.listener.received;
      return { send: (all: readonly raftpb.Message[]) => void sent.push(...all) };
    },
  } as unknown as MemberDeps;
  const transport = quiet(deps, held).makeTransport({ listener } as never);
  const message = (type: number, request: Partial<InternalRaftRequest> = {}) =>
    raftpb.Message.create({
      type,
      entries: [raftpb.Entry.create({ data: InternalRaftRequest.encode(request) })],
    });
  const { MsgProp, MsgAppResp, MsgApp } = raftpb.MessageType;
  const own = message(MsgProp, { clusterMemberAttrSet: new Uint8Array([8, 1]) });
  const put = message(MsgProp, { put: new Uint8Array([10, 1, 97]) });
  const alarm = message(MsgProp, { alarm: new Uint8Array([8, 1]) });
  transport.send([own, put, alarm, message(MsgAppResp)]);
  assert.deepEqual(
    sent.map(({ type }) => type),
    [MsgProp, MsgAppResp],
  );
  received([message(MsgApp), put, own]);
  assert.deepEqual(
    got.map(({ type }) => type),
    [MsgApp],
  );
  assert.deepEqual(held, { incoming: 2, outgoing: 2 });
});

test("the page shows what a member calls itself as text, runs no script, and has no other path", async () => {
  const revisions = { first: 1, current: 9, compacted: 2, equal: 5, equalThrough: 9 };
  const report = {
    verdict: verdictOf({ difference: null, revisions }),
    phase: "following",
    reason: "",
    name: "<script>alert(1)</script>",
    clusterId: "9",
    startedAt: "",
    revisions,
    comparisons: { equal: 1, different: 0, none: 0, lastProblem: "" },
    compactions: { applied: 1, equal: 1 },
    difference: null,
    store: { appliedIndex: 1, lagEntries: 0, keys: 1, liveBytes: 1, keyBytes: 1 },
    requests: { put: 3 },
    requestsPerSecond: 1,
    otherwise: [],
    members: [],
  } as unknown as ShadowReport;
  const pages = shadowPages(() => report);
  const get = (path: string, method = "GET") =>
    pages.get(pages.has(path) ? path : "/")!({ method, path } as HttpRequest);
  const page = await get("/");
  const text = String(page.body);
  assert.match(text, /equal over 5 revisions, up to 9/);
  assert.doesNotMatch(text, /<script/);
  assert.match(text, /&lt;script&gt;alert/);
  assert.match(String(page.headers["content-security-policy"]), /^default-src 'none'/);
  assert.equal((await get("/v3/kv/put", "POST")).status, 404);
  assert.equal((await get("/report.json", "POST")).status, 405);
  assert.equal(JSON.parse(String((await get("/report.json")).body)).verdict, report.verdict);
});
