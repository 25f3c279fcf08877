/**
 * Messages that no member sends: each is refused with its reason, and the machine is as it was. No
 * content of a message breaks an invariant.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { EMPTY, raftpb } from "@quorate/proto";
import { MAX_INDEX, MAX_TERM, MAX_TERM_LEAP, Raft } from "../index.ts";
import { newCluster, newLeader, pump, testConfig } from "./helpers.ts";

const { MsgApp, MsgAppResp, MsgHeartbeat, MsgProp, MsgSnap, MsgVote } = raftpb.MessageType;

function message(type: number, fields: Partial<raftpb.Message>): raftpb.Message {
  return raftpb.Message.create({
    type: type as raftpb.MessageType,
    from: 2n,
    to: 1n,
    term: 2,
    ...fields,
  });
}

function entry(index: number, term: number, type = 0): raftpb.Entry {
  return { type: type as raftpb.EntryType, term, index, data: EMPTY };
}

function snapshot(
  index: number,
  term: number,
  confState: Partial<raftpb.ConfState> = { voters: [1n, 2n] },
): raftpb.Snapshot {
  return raftpb.Snapshot.create({
    metadata: { index, term, confState: raftpb.ConfState.create(confState) },
  });
}

/** Member 1 of three, a follower of member 2 in term 2 with its three bootstrap entries. */
function follower(): Raft {
  const raft = new Raft(testConfig(1n), newCluster(3));
  pump(raft);
  raft.step(message(MsgHeartbeat, { commit: 3 }));
  pump(raft);
  return raft;
}

const REFUSED: readonly (readonly [
  name: string,
  machine: () => Raft,
  message: raftpb.Message,
  reason: RegExp,
])[] = [
  ["a type that does not exist", follower, message(77, {}), /unknown message type 77/],
  [
    "a term far beyond",
    follower,
    message(MsgVote, { term: 3 + MAX_TERM_LEAP }),
    /term 4294967299, this member's is 2/,
  ],
  [
    "the last term of all",
    follower,
    message(MsgApp, { term: Number.MAX_SAFE_INTEGER }),
    /this member's is 2/,
  ],
  [
    "a commit index beyond the log",
    follower,
    message(MsgHeartbeat, { commit: 4 }),
    /this log has lost its end/,
  ],
  [
    "entries with a gap",
    follower,
    message(MsgApp, { index: 3, logTerm: 1, entries: [entry(5, 2)] }),
    /entry 5 of term 2 follows 3/,
  ],
  [
    "entries of a later term",
    follower,
    message(MsgApp, { index: 3, logTerm: 1, entries: [entry(4, 3)] }),
    /in an append of term 2/,
  ],
  [
    "entries of falling terms",
    follower,
    message(MsgApp, { index: 3, logTerm: 2, entries: [entry(4, 1)] }),
    /follows 3 of term 2/,
  ],
  [
    "an entry of no known type",
    follower,
    message(MsgApp, { index: 3, logTerm: 1, entries: [entry(4, 2, 9)] }),
    /unknown type 9/,
  ],
  [
    "a term before that is later",
    follower,
    message(MsgApp, { index: 3, logTerm: 7 }),
    /after an entry of term 7/,
  ],
  ["a snapshot without a snapshot", follower, message(MsgSnap, {}), /without the snapshot/],
  [
    "a snapshot of a later term",
    follower,
    message(MsgSnap, { snapshot: snapshot(9, 5) }),
    /a snapshot of term 5/,
  ],
  [
    "a snapshot past all indexes",
    follower,
    message(MsgSnap, { snapshot: snapshot(MAX_INDEX + 1, 2) }),
    /a snapshot of index/,
  ],
  [
    "a configuration with a voter that is a learner",
    follower,
    message(MsgSnap, { snapshot: snapshot(9, 2, { voters: [1n, 2n], learners: [2n] }) }),
    /impossible configuration: 2 is voter and learner/,
  ],
  [
    "a joint configuration that enters nothing",
    follower,
    message(MsgSnap, { snapshot: snapshot(9, 2, { votersOutgoing: [1n] }) }),
    /enters one without voters/,
  ],
  [
    "another leader's append",
    () => newLeader(2),
    message(MsgApp, { index: 2, logTerm: 1 }),
    /another leader of term 2/,
  ],
  [
    "another leader's heartbeat",
    () => newLeader(2),
    message(MsgHeartbeat, {}),
    /another leader of term 2/,
  ],
  [
    "an acknowledgement of what is not there",
    () => newLeader(2),
    message(MsgAppResp, { index: 99 }),
    /acknowledges entry 99/,
  ],
  [
    "a proposal of no known type",
    () => newLeader(2),
    message(MsgProp, { term: 0, entries: [entry(0, 0, 5)] }),
    /unknown type/,
  ],
];

for (const [name, machine, sent, reason] of REFUSED) {
  test(`refused: ${name}`, () => {
    const raft = machine();
    const before = raft.status();
    assert.match(raft.step(sent) ?? "taken", reason);
    assert.deepEqual(raft.status(), before);
    assert.equal(raft.hasReady(), false);
  });
}

test("no campaign begins when no term is left", () => {
  const raft = new Raft(testConfig(1n), {
    ...newCluster(1),
    hardState: { term: MAX_TERM, vote: 0n, commit: 1 },
  });
  pump(raft);
  raft.campaign();
  assert.equal(raft.role, "follower");
  assert.equal(raft.term, MAX_TERM);
});

/** Numbers at and around the edges of what a machine knows. */
function numberFor(random: SeededRandom, raft: Raft): number {
  const edges = [
    0,
    1,
    raft.term,
    raft.lastIndex,
    raft.commitIndex,
    MAX_TERM,
    MAX_INDEX,
    Number.MAX_SAFE_INTEGER,
    2 ** 32,
  ];
  return Math.max(
    0,
    Math.min(Number.MAX_SAFE_INTEGER, edges[random.below(edges.length)] + random.below(5) - 2),
  );
}

function idFor(random: SeededRandom): bigint {
  return [0n, 1n, 2n, 3n, 99n, 2n ** 64n - 1n][random.below(6)];
}

function randomMessage(random: SeededRandom, raft: Raft): raftpb.Message {
  const number = () =>
    random.below(3) === 0
      ? numberFor(random, raft)
      : random.below(Math.min(raft.lastIndex, 1000) + 3);
  const ids = () => Array.from({ length: random.below(4) }, () => idFor(random));
  const bytes = () => new Uint8Array(random.below(20)).map(() => random.below(256));
  const first = number();
  const entries = Array.from({ length: random.below(4) }, (_, i) => ({
    type: random.below(8) === 0 ? random.below(9) : random.below(3),
    term: random.below(4) === 0 ? number() : raft.term,
    index: Math.min(Number.MAX_SAFE_INTEGER, first + 1 + i),
    data: bytes(),
  })) as raftpb.Entry[];
  const conf = {
    voters: ids(),
    learners: ids(),
    votersOutgoing: ids(),
    learnersNext: ids(),
    autoLeave: random.below(2) === 0,
  };
  return raftpb.Message.create({
    type: random.below(26) as raftpb.MessageType,
    to: random.below(20) === 0 ? idFor(random) : 1n,
    from: idFor(random),
    // Mostly terms that the machine looks at.
    term: random.below(4) === 0 ? number() : raft.term + random.below(2),
    logTerm: random.below(2) === 0 ? raft.term : number(),
    index: random.below(2) === 0 ? first : number(),
    entries,
    commit: number(),
    reject: random.below(2) === 0,
    rejectHint: number(),
    context: bytes(),
    snapshot:
      random.below(3) === 0
        ? raftpb.Snapshot.create({ metadata: { index: number(), term: number(), confState: conf } })
        : undefined,
  });
}

test("no message breaks an invariant, whatever it says and whatever the machine does", () => {
  const random = new SeededRandom(11n);
  let refused = 0;
  for (let run = 0; run < 300; run++) {
    const raft = new Raft(
      testConfig(1n, {
        preVote: random.below(2) === 0,
        checkQuorum: random.below(2) === 0,
        randomBelow: (bound) => random.below(bound),
      }),
      newCluster(1 + random.below(3)),
    );
    for (let i = 0; i < 200; i++) {
      const what = random.below(12);
      if (what === 0) raft.tick();
      else if (what === 1) raft.campaign();
      else if (what === 2) raft.propose([EMPTY, new Uint8Array(3)]);
      else if (raft.step(randomMessage(random, raft)) !== undefined) refused++;
      if (random.below(3) === 0) drive(raft);
    }
  }
  assert.ok(refused > 3000, `${refused} refusals`);
});

/** Carries the work out, as a driver does that decides against all changes of the configuration. */
function drive(raft: Raft): void {
  for (let turns = 0; raft.hasReady() && turns < 50; turns++) {
    const ready = raft.ready();
    // All that is written or sent can be.
    if (ready.hardState !== undefined) raftpb.HardState.encode(ready.hardState);
    for (const one of ready.entries) raftpb.Entry.encode(one);
    for (const one of [...ready.messages, ...ready.messagesAfterSync]) raftpb.Message.encode(one);
    raft.persisted(ready.number);
    if (ready.snapshot !== undefined) raft.applied(ready.snapshot.metadata.index);
    for (const one of ready.committed) raft.applied(one.index);
  }
}
