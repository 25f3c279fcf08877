/** Changes of the membership: what is proposed, how often, and what is refused before. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { EtcdError, errorOf, fromUtf8, raftpb } from "@quorate/proto";
import { decodeChangeContext, type Member } from "@quorate/store";
import type { PeerAnswer } from "@quorate/transport";
import { AutoPromotion, type AutoPromotionParts } from "../src/membership/auto-promotion.ts";
import {
  checkedUrls,
  countUrls,
  MAX_MEMBER_URL_CHARS,
  MAX_MEMBER_URLS,
} from "../src/membership/member-urls.ts";
import {
  MAX_WAITING_CHANGES,
  Reconfiguration,
  type ReconfigurationParts,
} from "../src/membership/reconfiguration.ts";

const { ConfChangeAddLearnerNode, ConfChangeAddNode, ConfChangeRemoveNode, ConfChangeUpdateNode } =
  raftpb.ConfChangeType;
const TIMEOUT_MS = 5000;

const member = (id: bigint, more: Partial<Member> = {}): Member => ({
  id,
  name: `m${id}`,
  peerUrls: [`http://m${id}`],
  clientUrls: [],
  isLearner: false,
  ...more,
});

/** A leader of two voters and the learner 3, which has `match` of 100 entries. */
function leading({ strict = false, match = 100 } = {}) {
  const clock = new ManualClock();
  clock.advance(60_000);
  const state = {
    clock,
    members: [member(1n), member(2n), member(3n, { isLearner: true })],
    removed: [] as bigint[],
    leader: 1n,
    role: "leader",
    result: "accepted",
    hasEnded: false,
    learner: 3n,
    proposed: [] as raftpb.ConfChange[],
    deposed: [] as bigint[],
    promoted: [] as string[],
    asked: [] as [url: string, path: string, timeoutMs: number][],
    errors: 0,
    answers: [] as (PeerAnswer | undefined)[],
    answersTakeMs: 0,
    /** Each change is applied, or refused, when the test says so. */
    applied: new Map<bigint, (result: { error?: Error }) => void>(),
  };
  let id = 0n;
  const parts = {
    memberId: 1n,
    strict,
    timeoutMs: TIMEOUT_MS,
    clock,
    logger: { ...silentLogger, error: () => state.errors++ },
    store: {
      current: {
        membership: {
          isRemoved: (one: bigint) => state.removed.includes(one),
          members: () => state.members,
        },
      },
    },
    transport: { peers: () => [{ id: 2n, activeSinceMs: 0 }] },
    leader: {
      get leader() {
        return state.leader;
      },
      get isLeader() {
        return state.leader === 1n;
      },
      peerUrls: () => (state.leader === 2n ? ["http://m2", "http://m2b"] : undefined),
    },
    raft: {
      status: () => ({
        role: state.role,
        progress: [
          { id: 1n, match: 100 },
          { id: state.learner, match },
        ],
      }),
      proposeConfChange: (change: raftpb.ConfChange) => {
        state.proposed.push(change);
        return state.result;
      },
    },
    turns: { wake: () => {} },
    lifetime: {
      get hasEnded() {
        return state.hasEnded;
      },
    },
    requestIds: { next: () => ++id },
    proposals: {
      wait: (one: bigint) =>
        new Promise<{ error?: Error }>((resolve) => state.applied.set(one, resolve)),
    },
    reads: { wait: async () => {} },
    metrics: {
      learnerPromoteSuccesses: { add: () => state.promoted.push("ok") },
      learnerPromoteFailures: {
        with: (reason: string) => ({ add: () => state.promoted.push(reason) }),
      },
    },
    leadership: { depose: async (one: bigint) => void state.deposed.push(one) },
    call: async (url: string, path: string, _body: Uint8Array, timeoutMs: number) => {
      state.asked.push([url, path, timeoutMs]);
      clock.advance(state.answersTakeMs);
      const answer = state.answers.shift();
      if (answer === undefined) throw new Error("no answer");
      return answer;
    },
  } as unknown as ReconfigurationParts;
  /** All changes that wait are applied. */
  const apply = async (result: { error?: Error } = {}) => {
    await turn();
    for (const done of state.applied.values()) done(result);
    state.applied.clear();
    await turn();
  };
  return { state, clock, apply, changes: new Reconfiguration(parts) };
}

const refused = (code: string) => (error: unknown) =>
  error instanceof EtcdError && error.code === code;
const answer = (status: number, text = ""): PeerAnswer => ({ status, body: fromUtf8(text) });

test("an addition has an id that no removed member had", async () => {
  const { state, apply, changes } = leading();
  const add = async (isLearner: boolean) => {
    const added = changes.add(["http://new"], isLearner);
    await apply();
    return added;
  };
  const first = await add(false);
  assert.deepEqual(first, member(first.id, { name: "", peerUrls: ["http://new"] }));
  state.removed.push(first.id);
  const second = await add(true);
  assert.notEqual(second.id, first.id);
  assert.equal(second.isLearner, true);
  state.removed.push(second.id);
  const third = await add(true);
  assert.equal(new Set([first.id, second.id, third.id]).size, 3);
  assert.deepEqual(
    state.proposed.map(({ type, nodeId }) => [type, nodeId]),
    [
      [ConfChangeAddNode, first.id],
      [ConfChangeAddLearnerNode, second.id],
      [ConfChangeAddLearnerNode, third.id],
    ],
  );
});

test("a change is proposed again 100 ms after a refusal, and a second after it was taken", async () => {
  const { state, clock, apply, changes } = leading();
  state.result = "dropped";
  const removed = changes.remove(2n);
  await turn();
  assert.deepEqual([state.deposed, state.proposed.length], [[2n], 1]);
  clock.advance(99);
  assert.equal(state.proposed.length, 1);
  state.result = "accepted";
  clock.advance(1);
  assert.equal(state.proposed.length, 2);
  clock.advance(999);
  assert.equal(state.proposed.length, 2);
  clock.advance(1);
  assert.equal(state.proposed.length, 3);
  assert.ok(state.proposed.every(({ id, type }) => id === 1n && type === ConfChangeRemoveNode));
  await apply();
  await removed;
  clock.advance(60_000);
  assert.equal(state.proposed.length, 3, "it is over");
});

test("an update that was taken is not proposed again; one that was not is", async () => {
  const { state, clock, apply, changes } = leading();
  state.result = "dropped";
  const updated = assert.rejects(changes.update(2n, ["http://moved"]), refused("MemberNotFound"));
  state.result = "accepted";
  clock.advance(100);
  clock.advance(60_000);
  assert.deepEqual(
    state.proposed.map(({ type }) => type),
    [ConfChangeUpdateNode, ConfChangeUpdateNode],
  );
  assert.deepEqual(decodeChangeContext(state.proposed[0].context).member.peerUrls, [
    "http://moved",
  ]);
  await apply({ error: errorOf("MemberNotFound") });
  await updated;
});

test("a member that has ended proposes nothing", async () => {
  const { state, clock, changes } = leading();
  state.hasEnded = true;
  void changes.remove(2n);
  await turn();
  clock.advance(1000);
  assert.equal(state.proposed.length, 0);
});

test("so many changes wait at a time, and one that ends leaves its place", async () => {
  const { apply, changes } = leading();
  const update = () => changes.update(2n, ["http://m"]);
  const waiting = Array.from({ length: MAX_WAITING_CHANGES }, () =>
    assert.rejects(update(), refused("MemberNotFound")),
  );
  await assert.rejects(update(), refused("TooManyRequests"));
  await apply({ error: errorOf("MemberNotFound") });
  await Promise.all(waiting);
  const next = update();
  await apply();
  await next;
});

test("the last voter is not removed, whatever the flag says; a learner is", async () => {
  const { state, apply, changes } = leading();
  state.members = [member(1n), member(3n, { isLearner: true })];
  await assert.rejects(changes.remove(1n), refused("MemberNotEnoughStarted"));
  const removed = changes.remove(3n);
  await apply();
  await removed;
  assert.equal(state.proposed.length, 1);
});

test("with the strict check, what leaves no quorum of healthy members is refused", async () => {
  const { state, changes } = leading({ strict: true });
  state.members = [member(1n), member(2n, { name: "" })];
  await assert.rejects(changes.remove(1n), refused("MemberNotEnoughStarted"));
  assert.deepEqual([state.deposed, state.proposed], [[], []]);
});

test("a learner is promoted with nine tenths of the leader's log", async () => {
  const ready = leading({ match: 90 });
  const promoted = ready.changes.promote(3n);
  await ready.apply();
  await promoted;
  const [{ type, nodeId, context }] = ready.state.proposed;
  assert.deepEqual([type, nodeId], [ConfChangeAddNode, 3n]);
  assert.equal(decodeChangeContext(context).isPromote, true);
  assert.deepEqual(ready.state.promoted, ["ok"]);
  const behind = leading({ match: 89 });
  const notReady = errorOf("MemberLearnerNotReady");
  await assert.rejects(behind.changes.promote(3n), refused("MemberLearnerNotReady"));
  assert.deepEqual([behind.state.promoted, behind.state.errors], [[notReady.message], 1]);
  await assert.rejects(behind.changes.promote(4n), refused("MemberNotFound"));
});

test("who does not lead asks the leader, until it answers or the time is up", async () => {
  const { state, clock, changes } = leading();
  state.leader = 2n;
  state.answers = [undefined, answer(503, "?"), answer(500, errorOf("NotLeader").message)];
  const promoted = changes.promote(3n);
  await turn();
  assert.deepEqual(state.asked, [
    ["http://m2", "/members/promote/3", TIMEOUT_MS],
    ["http://m2b", "/members/promote/3", TIMEOUT_MS],
  ]);
  state.asked.length = 0;
  state.answers.push(answer(200));
  await clock.advanceAsync(100);
  await promoted;
  assert.deepEqual(
    state.asked.map(([url, , leftMs]) => [url, leftMs]),
    [
      ["http://m2", TIMEOUT_MS - 100],
      ["http://m2b", TIMEOUT_MS - 100],
    ],
  );
  assert.deepEqual([state.proposed, state.promoted], [[], []], "the leader does, and counts it");
  state.answers = [answer(412, `${errorOf("MemberLearnerNotReady").message}\n`)];
  await assert.rejects(changes.promote(3n), refused("MemberLearnerNotReady"));
});

test("a promotion without a leader ends when its time is up", async () => {
  const { state, clock, changes } = leading();
  const outcome = async (leader: bigint) => {
    state.leader = leader;
    let code: unknown;
    const done = changes.promote(3n).catch((error: EtcdError) => {
      code = error.code;
    });
    await clock.advanceAsync(TIMEOUT_MS - 100);
    assert.equal(code, undefined);
    await clock.advanceAsync(100);
    await done;
    return code;
  };
  assert.equal(await outcome(0n), "NoLeader");
  assert.equal(await outcome(2n), "Timeout");
});

test("no further URL of the leader is asked once the time is up", async () => {
  const { state, changes } = leading();
  state.leader = 2n;
  state.answersTakeMs = TIMEOUT_MS;
  await assert.rejects(changes.promote(3n), refused("Timeout"));
  assert.equal(state.asked.length, 1);
});

test("one that leads no more asks the one that does", async () => {
  const { state, changes } = leading();
  state.role = "follower";
  state.answers = [answer(200)];
  state.leader = 1n;
  const promoted = changes.promote(3n);
  await turn();
  state.leader = 2n;
  await state.clock.advanceAsync(100);
  await promoted;
  assert.equal(state.asked.length, 1);
});

/** A learner that promotes itself; its requests wait until the test ends them. */
function learner() {
  const clock = new ManualClock();
  const state = { learners: [1n], name: "m", warnings: [] as string[], isDone: 0 };
  const requests: PromiseWithResolvers<void>[] = [];
  const promotion = new AutoPromotion({
    memberId: 1n,
    clock,
    logger: {
      ...silentLogger,
      warn: (_text: string, fields: { error: string }) => state.warnings.push(fields.error),
      info: () => state.isDone++,
    },
    raft: {
      get confState() {
        return { learners: state.learners };
      },
    },
    store: { current: { membership: { member: () => ({ name: state.name }) } } },
    reconfiguration: {
      promote: (id: bigint) => {
        assert.equal(id, 1n);
        const request = Promise.withResolvers<void>();
        requests.push(request);
        return request.promise;
      },
    },
  } as unknown as AutoPromotionParts);
  return { clock, state, requests, promotion };
}

test("a learner asks for its promotion once a second, one request at a time", async () => {
  const { clock, state, requests, promotion } = learner();
  promotion.start();
  await clock.advanceAsync(999);
  assert.equal(requests.length, 0);
  await clock.advanceAsync(1);
  assert.equal(requests.length, 1);
  await clock.advanceAsync(5000);
  assert.equal(requests.length, 1, "the first is still open");
  const fail = async (error: Error) => {
    requests.at(-1)!.reject(error);
    await clock.advanceAsync(1000);
  };
  await fail(errorOf("MemberLearnerNotReady"));
  assert.equal(requests.length, 2);
  assert.deepEqual(state.warnings, [], "it is usual");
  await fail(new Error("first"));
  await fail(new Error("first"));
  await fail(new Error("second"));
  assert.deepEqual(state.warnings, ["first", "second"]);
  requests.at(-1)!.resolve();
  await clock.advanceAsync(1000);
  assert.equal(state.isDone, 1);
  await fail(new Error("second"));
  assert.deepEqual(state.warnings, ["first", "second", "second"], "it is new again");
  const { length } = requests;
  requests.at(-1)!.resolve();
  promotion.stop();
  await clock.advanceAsync(5000);
  assert.equal(requests.length, length);
});

test("a voter, and a member that has not published itself, ask for nothing", async () => {
  const { clock, state, requests, promotion } = learner();
  promotion.start();
  state.name = "";
  await clock.advanceAsync(2000);
  state.name = "m";
  state.learners = [2n];
  await clock.advanceAsync(2000);
  assert.equal(requests.length, 0);
});

test("URLs of a member: how many, how long, and of which form", () => {
  const urls = (count: number) => Array.from({ length: count }, (_, i) => `http://m:${i + 1}`);
  assert.deepEqual(checkedUrls(["HTTP://m:1"]), ["http://m:1"]);
  assert.equal(checkedUrls(urls(MAX_MEMBER_URLS)).length, MAX_MEMBER_URLS);
  const long = (chars: number) => `http://${"m".repeat(chars - 9)}:1`;
  assert.equal(checkedUrls([long(MAX_MEMBER_URL_CHARS)])[0].length, MAX_MEMBER_URL_CHARS);
  for (const bad of [
    [],
    urls(MAX_MEMBER_URLS + 1),
    [long(MAX_MEMBER_URL_CHARS + 1)],
    ["ftp://m:1"],
  ])
    assert.throws(() => checkedUrls(bad), refused("MemberBadURLs"));
});

test("URLs of an encoded request are counted before it is decoded", () => {
  const encoded = (field: number, count: number) =>
    Uint8Array.from(Array.from({ length: count }, () => [(field << 3) | 2, 0]).flat());
  countUrls(encoded(1, MAX_MEMBER_URLS), 1);
  assert.throws(() => countUrls(encoded(1, MAX_MEMBER_URLS + 1), 1), refused("MemberBadURLs"));
  countUrls(encoded(2, MAX_MEMBER_URLS + 1), 1);
  countUrls(Uint8Array.of(0x0a, 0xff), 1);
});
