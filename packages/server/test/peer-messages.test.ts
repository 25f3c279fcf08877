/**
 * What other members send, with content that no member sends: nothing of it enters the log, and
 * no member ends.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import type { Member } from "@quorate/member";
import { MAX_WAITING_PROPOSALS } from "@quorate/member/testing";
import {
  EMPTY,
  fromUtf8,
  InternalRaftRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  membershippb,
  PutRequest,
  raftpb,
  TxnRequest,
} from "@quorate/proto";
import { MAX_TERM_LEAP } from "@quorate/raft";
import { encodeMember } from "@quorate/store";
import { get, type Node, put, World } from "./support/world.ts";

const { EntryConfChange, EntryConfChangeV2, EntryNormal } = raftpb.EntryType;
const { MsgProp, MsgSnap } = raftpb.MessageType;

interface Cluster {
  readonly world: World;
  readonly leader: Node;
  readonly member: Member;
  /** Another member: in its name the messages come. */
  readonly peer: Member;
}

async function cluster(): Promise<Cluster> {
  const world = new World(3);
  await world.startAll();
  const leader = world.leader()!;
  const peer = world.nodes.find((node) => node !== leader)!.member!;
  return { world, leader, member: leader.member!, peer };
}

function send({ leader, member, peer }: Cluster, message: Partial<raftpb.Message>): void {
  leader.request!.listener.received([
    raftpb.Message.create({ from: peer.id, to: member.id, term: member.term, ...message }),
  ]);
}

function proposal(
  peer: Member,
  request: Partial<InternalRaftRequest>,
  prefix = peer.id & 0xffffn,
): raftpb.Entry {
  const ID = (prefix << 48n) | 0x1234n;
  return {
    type: EntryNormal,
    term: 0,
    index: 0,
    data: InternalRaftRequest.encode({ header: { ID, username: "", authRevision: 0 }, ...request }),
  };
}

function change(peer: Member, fields: Partial<raftpb.ConfChange>): raftpb.Entry {
  const id = ((peer.id & 0xffffn) << 48n) | 0x77n;
  return {
    type: EntryConfChange,
    term: 0,
    index: 0,
    data: raftpb.ConfChange.encode({ id, ...fields }),
  };
}

function refusedProposals({ member }: Cluster): number {
  return member.metrics.peerMessagesRefused.with("MsgProp").value;
}

const key = fromUtf8("k");
const VALID: Partial<InternalRaftRequest> = {
  put: PutRequest.encode({ key, value: fromUtf8("v") }),
};

/** Proposals that no member makes, by what is wrong with them. */
const MALFORMED: readonly (readonly [name: string, entry: (peer: Member) => raftpb.Entry])[] = [
  ["a lease to revoke that is cut", (peer) => proposal(peer, { leaseRevoke: Uint8Array.of(8) })],
  ["a put without a key", (peer) => proposal(peer, { put: PutRequest.encode({}) })],
  [
    "a transaction without operations in an operation",
    (peer) => proposal(peer, { txn: TxnRequest.encode({ success: [{ request: undefined }] }) }),
  ],
  [
    "a lease for ever",
    (peer) => proposal(peer, { leaseGrant: LeaseGrantRequest.encode({ ID: 1n, TTL: 1e15 }) }),
  ],
  ["an alarm that there is not", (peer) => proposal(peer, { alarm: Uint8Array.of(8, 1, 24, 77) })],
  [
    "a version from the future",
    (peer) =>
      proposal(peer, {
        clusterVersionSet: membershippb.ClusterVersionSetRequest.encode({ ver: "99.0.0" }),
      }),
  ],
  [
    "no version",
    (peer) =>
      proposal(peer, {
        clusterVersionSet: membershippb.ClusterVersionSetRequest.encode({ ver: "x".repeat(99) }),
      }),
  ],
  [
    "a request of a kind that is not served",
    (peer) => {
      const none = proposal(peer, {});
      // Field 200, with no bytes.
      return { ...none, data: Uint8Array.of(...none.data, 0xc2, 0x0c, 0) };
    },
  ],
  [
    "two requests",
    (peer) => proposal(peer, { ...VALID, leaseRevoke: LeaseRevokeRequest.encode({ ID: 1n }) }),
  ],
  ["no request", (peer) => proposal(peer, {})],
  ["the id of another member's request", (peer) => proposal(peer, VALID, (peer.id & 0xffffn) ^ 1n)],
  ["no id", (peer) => proposal(peer, VALID, 0n)],
  ["nothing", () => ({ type: EntryNormal, term: 0, index: 0, data: EMPTY })],
  [
    "garbage",
    () => ({ type: EntryNormal, term: 0, index: 0, data: Uint8Array.of(0xff, 0xff, 0xff) }),
  ],
  [
    "a change that is cut",
    () => ({ type: EntryConfChange, term: 0, index: 0, data: Uint8Array.of(8) }),
  ],
  ["a change without a context", (peer) => change(peer, { nodeId: 5n })],
  [
    "a change of member 0",
    (peer) =>
      change(peer, {
        context: encodeMember({
          id: 0n,
          name: "",
          peerUrls: ["http://a:1"],
          clientUrls: [],
          isLearner: false,
        }),
      }),
  ],
  [
    "a change to no URL",
    (peer) =>
      change(peer, {
        nodeId: 5n,
        context: encodeMember({
          id: 5n,
          name: "",
          peerUrls: ["nonsense"],
          clientUrls: [],
          isLearner: false,
        }),
      }),
  ],
  [
    "a change to an endless URL",
    (peer) =>
      change(peer, {
        nodeId: 5n,
        context: encodeMember({
          id: 5n,
          name: "",
          peerUrls: [`http://${"a".repeat(1e6)}:1`],
          clientUrls: [],
          isLearner: false,
        }),
      }),
  ],
  [
    "a change past the membership",
    (peer) => ({
      type: EntryConfChangeV2,
      term: 0,
      index: 0,
      data: raftpb.ConfChangeV2.encode({ changes: [{ type: 1, nodeId: peer.id }] }),
    }),
  ],
  [
    "an entry type that there is not",
    () => ({ type: 7 as raftpb.EntryType, term: 0, index: 0, data: EMPTY }),
  ],
];

test("proposals that no member makes stay out of the log, one by one, and the rest of their message goes on", async () => {
  const all = await cluster();
  const { world, member, peer } = all;
  for (const [name, entry] of MALFORMED) {
    const [before, refused] = [member.commitIndex, refusedProposals(all)];
    send(all, { type: MsgProp, term: 0, entries: [entry(peer)] });
    await world.run(60);
    assert.equal(refusedProposals(all), refused + 1, name);
    assert.equal(member.commitIndex, before, name);
  }
  const good = proposal(peer, VALID);
  send(all, {
    type: MsgProp,
    term: 0,
    entries: [MALFORMED[0][1](peer), good, MALFORMED[1][1](peer)],
  });
  await world.until(() => member.store.mvcc.keyCount === 1);
  send(all, {
    type: MsgProp,
    term: 0,
    entries: Array.from({ length: MAX_WAITING_PROPOSALS + 1 }, () => good),
  });
  await world.run(60);
  assert.equal(member.store.mvcc.currentRevision, 2);
  // What the members send each other on their own is all taken.
  await world.settled(put(peer, "through", "the border"));
  const refused = refusedProposals(all);
  await world.settled(put(peer, "once", "more"));
  assert.equal(refusedProposals(all), refused);
  assert.deepEqual(
    world.nodes.filter(({ ended }) => ended !== undefined),
    [],
  );
  await world.stopAll();
});

test("messages that no member sends are refused, counted, and end no member", async () => {
  const all = await cluster();
  const { world, member } = all;
  const snapshot = raftpb.Snapshot.create({
    metadata: { index: 99_999, term: member.term, confState: member.store.position.confState },
  });
  const sent: readonly (readonly [string, Partial<raftpb.Message>])[] = [
    ["MsgSnap", { type: MsgSnap, snapshot }],
    ["MsgApp", { type: raftpb.MessageType.MsgApp }],
    ["MsgHeartbeat", { type: raftpb.MessageType.MsgHeartbeat }],
    ["MsgAppResp", { type: raftpb.MessageType.MsgAppResp, index: 1e9 }],
    ["MsgVote", { type: raftpb.MessageType.MsgVote, term: member.term + MAX_TERM_LEAP + 1 }],
    ["unknown", { type: 99 as raftpb.MessageType }],
  ];
  for (const [label, message] of sent) {
    const before = member.metrics.peerMessagesRefused.with(label).value;
    send(all, message);
    await world.run(20);
    assert.equal(member.metrics.peerMessagesRefused.with(label).value, before + 1, label);
    assert.ok(member.isLeader, label);
  }
  await world.settled(put(member, "still", "here"));
  assert.equal(await world.settled(get(all.peer, "still")), "here");
  await world.stopAll();
});

test("random messages from a peer end no member (seed 5)", async () => {
  const all = await cluster();
  const { world, peer } = all;
  const random = new SeededRandom(5n);
  const number = (): number =>
    [0, 1, 2, 7, 2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER][random.below(7)] +
    random.below(2) -
    (random.below(2) === 0 ? 0 : 1);
  const bytes = () => new Uint8Array(random.below(30)).map(() => random.below(256));
  for (let i = 0; i < 1500; i++) {
    const to = world.nodes[random.below(3)];
    if (to.member === undefined || to.member === peer) continue;
    const positive = () => Math.max(0, Math.min(Number.MAX_SAFE_INTEGER, number()));
    const entries = Array.from({ length: random.below(3) }, () => ({
      type: random.below(4) as raftpb.EntryType,
      term: positive(),
      index: positive(),
      data: bytes(),
    }));
    const ids = () => Array.from({ length: random.below(3) }, () => BigInt(random.below(4)));
    const confState = {
      voters: ids(),
      learners: ids(),
      votersOutgoing: ids(),
      learnersNext: ids(),
      autoLeave: false,
    };
    const message = {
      type: random.below(25) as raftpb.MessageType,
      to: to.member.id,
      from: random.below(9) === 0 ? 9n : peer.id,
      entries,
      context: bytes(),
      term: random.below(3) === 0 ? positive() : to.member.term,
      logTerm: positive(),
      index: positive(),
      commit: positive(),
      reject: random.below(2) === 0,
      snapshot:
        random.below(3) === 0
          ? raftpb.Snapshot.create({ metadata: { index: positive(), term: positive(), confState } })
          : undefined,
    };
    // Bytes, as a stream brings them: what cannot be encoded cannot come.
    to.request!.listener.received([
      raftpb.Message.decode(raftpb.Message.encode(raftpb.Message.create(message))),
    ]);
    await world.run(random.below(3));
  }
  assert.deepEqual(
    world.nodes.map(({ ended }) => ended?.error),
    [undefined, undefined, undefined],
  );
  await world.until(() => world.leader() !== undefined);
  await world.settled(put(world.leader()!.member!, "after", "all that"));
  await world.stopAll();
});
