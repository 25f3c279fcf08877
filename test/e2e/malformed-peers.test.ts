/**
 * The peer port under everything that is no member's: every type of message cut and spoilt, frames
 * that are none, HTTP/2 that breaks off, snapshots with impossible beginnings. Three members live
 * on, serve, and hold the same.
 * @slow
 */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import {
  fromUtf8,
  InternalRaftRequest,
  KVService,
  MaintenanceService,
  PutRequest,
  raftpb,
} from "@quorate/proto";
import { MessageMaker } from "../fuzz/messages.ts";
import { type PeerIdentity, PeerStream, sendSnapshot } from "../fuzz/peer.ts";
import { assertEqualHashes } from "../support/checks.ts";
import { TestClient } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import type { TestMember } from "../support/member.ts";
import { SeededRandom, seedOf } from "../support/random.ts";
import { until } from "../support/until.ts";

const SEED = seedOf(20261123);
/**
 * Types by which members vouch for something: believed in a term that counts, so they come from one
 * long past.
 */
const VOUCHING = /App|Heartbeat|Resp|Snap/;
const PARALLEL = 16;

interface Known {
  readonly member: TestMember;
  readonly id: bigint;
  readonly clusterId: bigint;
  readonly term: number;
}

async function known(cluster: TestCluster): Promise<Known[]> {
  return Promise.all(
    cluster.members.map(async (member) => {
      const client = new TestClient(member.clientAddress, cluster.identity);
      try {
        const { header, raftTerm } = await client.call(MaintenanceService.methods.Status, {});
        return { member, id: header!.memberId, clusterId: header!.clusterId, term: raftTerm };
      } finally {
        client.close();
      }
    }),
  );
}

/** A message of a type with something in every field. */
function messageOf(
  type: number,
  name: string,
  { from, to }: PeerIdentity,
  term: number,
): Uint8Array {
  const put = InternalRaftRequest.encode({
    header: { ID: 7n, username: "", authRevision: 0 },
    put: PutRequest.encode({ key: fromUtf8("x") }),
  });
  const entries = [{ type: 0 as const, term: 1, index: 8, data: put }];
  const conf = {
    voters: [from, to],
    learners: [to],
    votersOutgoing: [],
    learnersNext: [9n],
    autoLeave: true,
  };
  return raftpb.Message.encode({
    type: type as raftpb.MessageType,
    from,
    to,
    entries,
    context: fromUtf8("context"),
    reject: true,
    vote: 3n,
    term: VOUCHING.test(name) ? 1 : term,
    logTerm: 1,
    index: 7,
    commit: 5,
    rejectHint: 4,
    snapshot: raftpb.Snapshot.create({ metadata: { index: 9, term: 1, confState: conf } }),
  });
}

async function walk(targets: readonly Known[], bodies: readonly Uint8Array[]): Promise<void> {
  for (let at = 0; at < bodies.length; at += PARALLEL) {
    await Promise.all(
      bodies.slice(at, at + PARALLEL).map(async (body, i) => {
        const to = targets[(at + i) % targets.length];
        const from = targets[(at + i + 1) % targets.length];
        const stream = PeerStream.open(to.member.options.peerUrl, {
          from: from.id,
          to: to.id,
          clusterId: to.clusterId,
        });
        stream.send(body);
        // One that decodes leaves the stream open.
        await Promise.race([stream.closed, delay(40)]);
        stream.close();
      }),
    );
  }
}

async function assertServes(cluster: TestCluster, what: string): Promise<void> {
  for (const member of cluster.members)
    assert.ok(member.isRunning, `${what} ended ${member.name}\n${member.logTail(5)}`);
  const client = new TestClient(cluster.members[0].clientAddress, cluster.identity);
  try {
    // A campaign that a member was sent into may be under way.
    await until(`a write after ${what}`, () =>
      client.call(KVService.methods.Put, { key: fromUtf8("serves"), value: fromUtf8(what) }).then(
        () => true,
        () => false,
      ),
    );
  } finally {
    client.close();
  }
}

test(`every message of the peer protocol, malformed (seed ${SEED})`, async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const random = new SeededRandom(SEED);
    const maker = new MessageMaker(random, { keys: ["a"], ids: [1n, 2n] });
    for (const [name, type] of [
      ...Object.entries<number>(raftpb.MessageType),
      ["of no type", 77] as const,
    ]) {
      const targets = await known(cluster);
      const [to, from] = targets;
      const whole = messageOf(
        type,
        name,
        { from: from.id, to: to.id, clusterId: to.clusterId },
        to.term,
      );
      const cuts = Array.from({ length: 24 }, () => whole.subarray(0, random.below(whole.length)));
      await walk([to, from], [whole, ...cuts]);
      await assertServes(cluster, name);
    }
    const targets = await known(cluster);
    const spoilt = Array.from({ length: 150 }, () => maker.malformed("raftpb.Message")).filter(
      (bytes) => !isMessage(bytes),
    );
    await walk(targets, [new Uint8Array(0), ...spoilt]);
    await assertServes(cluster, "spoilt messages");
    await assertEqualHashes(cluster);
  });
});

/** In the present term, with contents that end a member that believes them. */
function lies(term: number): Partial<raftpb.Message>[] {
  const { MsgApp, MsgAppResp, MsgHeartbeat, MsgProp, MsgSnap, MsgVote } = raftpb.MessageType;
  const conf = {
    voters: [1n],
    learners: [1n],
    votersOutgoing: [],
    learnersNext: [],
    autoLeave: false,
  };
  const header = { ID: 1n, username: "", authRevision: 0 };
  const proposed = (type: number, data: Uint8Array) => ({
    type: MsgProp,
    entries: [{ type: type as 0, term: 0, index: 0, data }],
  });
  return [
    { type: MsgHeartbeat, term, commit: 1e9 },
    {
      type: MsgApp,
      term,
      index: 1e9,
      commit: 1e9,
      entries: [{ type: 0, term, index: 7, data: new Uint8Array(1) }],
    },
    { type: MsgAppResp, term, index: 1e9 },
    { type: MsgVote, term: Number.MAX_SAFE_INTEGER, index: 1e9, logTerm: 1e9 },
    {
      type: MsgSnap,
      term,
      snapshot: raftpb.Snapshot.create({ metadata: { index: 1e9, term, confState: conf } }),
    },
    proposed(0, InternalRaftRequest.encode({ header, leaseRevoke: Uint8Array.of(8) })),
    proposed(0, Uint8Array.of(0xff)),
    proposed(1, Uint8Array.of(8)),
    proposed(1, raftpb.ConfChange.encode({ id: 1n, nodeId: 9n, context: fromUtf8("{") })),
    proposed(2, raftpb.ConfChangeV2.encode({ changes: [{ type: 1, nodeId: 1n }] })),
  ];
}

test("what no member can say, said in the present term to the leader and to the others", async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    for (const lie of lies(0).keys()) {
      const targets = await known(cluster);
      for (const to of targets) {
        for (const from of targets.filter((one) => one !== to)) {
          const stream = PeerStream.open(to.member.options.peerUrl, {
            from: from.id,
            to: to.id,
            clusterId: to.clusterId,
          });
          stream.send(raftpb.Message.encode({ ...lies(to.term)[lie], from: from.id, to: to.id }));
          await Promise.race([stream.closed, delay(60)]);
          stream.close();
        }
      }
      await assertServes(cluster, JSON.stringify(lies(0)[lie].type));
    }
    await assertEqualHashes(cluster);
  });
});

function isMessage(bytes: Uint8Array): boolean {
  try {
    raftpb.Message.decode(bytes);
    return true;
  } catch {
    return false;
  }
}

test(`frames and snapshots that are none (seed ${SEED})`, async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const random = new SeededRandom(SEED);
    const maker = new MessageMaker(random, { keys: ["a"], ids: [1n, 2n] });
    const targets = await known(cluster);
    const [to, from] = targets;
    const identity = { from: from.id, to: to.id, clusterId: to.clusterId };
    const url = to.member.options.peerUrl;
    // Bytes in the place of frames of messages, and in that of HTTP/2's.
    for (let i = 0; i < 40; i++) {
      const stream = PeerStream.open(url, identity);
      stream.sendRaw(maker.malformed("raftpb.Message"));
      await Promise.race([stream.closed, delay(10)]);
      stream.close();
    }
    const { hostname, port } = new URL(url);
    for (let i = 0; i < 60; i++) {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      const preface = random.oneIn(3) ? "" : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
      socket.write(
        Buffer.concat([
          Buffer.from(preface),
          Buffer.from(Array.from({ length: random.below(200) }, () => random.below(256))),
        ]),
      );
      await delay(5);
      socket.destroy();
    }
    const state = {
      voters: [1n],
      learners: [1n],
      votersOutgoing: [],
      learnersNext: [],
      autoLeave: true,
    };
    const metadata = [
      { index: Number.MAX_SAFE_INTEGER, term: 1, confState: state },
      { index: 1e9, term: Number.MAX_SAFE_INTEGER, confState: state },
      { index: 0, term: 0, confState: raftpb.ConfState.create() },
    ];
    const announced = [
      ...metadata.map((one) => raftpb.Snapshot.create({ metadata: one })),
      undefined,
    ].map((snapshot) =>
      raftpb.Message.encode({
        type: raftpb.MessageType.MsgSnap,
        from: from.id,
        to: to.id,
        term: to.term,
        snapshot,
      }),
    );
    const spoilt = Array.from({ length: 30 }, () => maker.malformed("raftpb.Message"));
    for (const message of [...announced, ...spoilt]) {
      const frame = Buffer.alloc(4);
      frame.writeUInt32BE(message.length);
      const status = await sendSnapshot(
        url,
        identity,
        Buffer.concat([frame, message, Buffer.alloc(random.below(9) * 4)]),
        5000,
      );
      assert.ok(
        status === 0 || status >= 400,
        `${status} for ${Buffer.from(message).toString("hex").slice(0, 80)}`,
      );
    }
    await assertServes(cluster, "snapshots that are none");
    await assertEqualHashes(cluster);
  });
});
