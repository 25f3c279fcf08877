/**
 * The peer port of a running cluster, approached by whoever is no member: with a wrong cluster, as
 * a member that is removed or never was, with a higher term, with what was recorded and comes again
 * in another order; by plain HTTP where TLS is spoken; by handshakes that do not end. The members
 * keep their leader and their term, serve, and hold the same.
 * @slow
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect as connectTcp, type Socket } from "node:net";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { ClusterService, fromUtf8, KVService, MaintenanceService, raftpb } from "@quorate/proto";
import { createAuthority } from "../../scripts/certs.ts";
import { type PeerIdentity, PeerStream, sendSnapshot } from "../fuzz/peer.ts";
import { assertEqualHashes } from "../support/checks.ts";
import { TestClient } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import type { TestMember } from "../support/member.ts";
import { until } from "../support/until.ts";

const HALF_HANDSHAKES = 200;
const key = fromUtf8("k");

interface Known {
  readonly member: TestMember;
  readonly id: bigint;
  readonly clusterId: bigint;
  readonly term: number;
  readonly leader: bigint;
  readonly index: number;
}

async function known(cluster: TestCluster): Promise<Known[]> {
  return Promise.all(
    cluster.members.map(async (member) => {
      const client = new TestClient(member.clientAddress, cluster.identity);
      try {
        const status = await client.call(MaintenanceService.methods.Status, {});
        const { header, raftTerm, leader, raftIndex } = status;
        const ids = { id: header!.memberId, clusterId: header!.clusterId };
        return { member, ...ids, term: raftTerm, leader, index: raftIndex };
      } finally {
        client.close();
      }
    }),
  );
}

/** A put on each member; then the members agree, in the term from before. */
async function assertUnmoved(cluster: TestCluster, before: readonly Known[]): Promise<void> {
  for (const { clientAddress } of cluster.members) {
    const client = new TestClient(clientAddress, cluster.identity);
    try {
      await client.call(KVService.methods.Put, { key, value: key });
    } finally {
      client.close();
    }
  }
  const after = await known(cluster);
  const most = Math.max(...before.map(({ term }) => term));
  assert.deepEqual(
    after.map(({ term }) => term),
    after.map(() => most),
    "the term",
  );
  assert.deepEqual(
    after.map(({ leader }) => leader),
    before.map(({ leader }) => leader),
  );
  await assertEqualHashes(cluster);
}

/** Messages that a member would act upon: elections, appends, heartbeats, a transfer. */
function messages({ from, to }: PeerIdentity, term: number, index: number): Uint8Array[] {
  const types = Object.entries(raftpb.MessageType).filter(([, type]) => typeof type === "number");
  return types.map(([, type]) =>
    raftpb.Message.encode({
      type: type as raftpb.MessageType,
      from,
      to,
      term,
      logTerm: term,
      index,
      commit: index,
      entries: [{ type: 0, term, index: index + 1, data: key }],
    } as never),
  );
}

/** Sends them, and again in the opposite order, each twice, until the member hangs up. */
async function speak(
  url: string,
  identity: PeerIdentity,
  all: readonly Uint8Array[],
): Promise<void> {
  for (const kind of ["urgent", "bulk"] as const) {
    const stream = PeerStream.open(url, identity, kind);
    for (const message of [...all, ...[...all].reverse().flatMap((one) => [one, one])])
      if (!stream.send(message)) break;
    // What is refused is hung up on; that is what is waited for.
    await stream.closed;
  }
}

function strangers(member: Known, removed: bigint): [string, PeerIdentity][] {
  const { id: to, clusterId } = member;
  return [
    ["another cluster's member", { from: 1n, to, clusterId: clusterId ^ 1n }],
    ["no member", { from: 0x1234n, to, clusterId }],
    ["member 0", { from: 0n, to, clusterId }],
    ["a removed member", { from: removed, to, clusterId }],
    ["a message for another", { from: 0x1234n, to: to ^ 2n, clusterId }],
  ];
}

test("without TLS: what is no member's is hung up on, and changes nothing", async () => {
  await withCluster({}, async (cluster) => {
    // A member that is removed: added on paper, never started.
    const client = new TestClient(cluster.members[0].clientAddress);
    const { MemberAdd, MemberRemove } = ClusterService.methods;
    const peerURLs = ["http://127.0.0.1:9"];
    let added: bigint | undefined;
    await until("the members know each other", async () => {
      const request = { peerURLs, isLearner: true };
      added = (await client.call(MemberAdd, request).catch(() => undefined))?.member?.ID;
      return added !== undefined;
    });
    await client.call(MemberRemove, { ID: added! });
    client.close();
    const before = await known(cluster);
    for (const target of before) {
      for (const [, identity] of strangers(target, added!)) {
        const high = target.term + 100;
        const all = [
          ...messages(identity, high, target.index),
          ...messages(identity, target.term, 1),
        ];
        const url = target.member.options.peerUrl;
        await speak(url, identity, all);
        const status = await sendSnapshot(url, identity, Buffer.alloc(1000), 20_000);
        assert.ok(status >= 400 || status === 0, `a snapshot that nobody asked for: ${status}`);
      }
    }
    await assertUnmoved(cluster, before);
  });
});

/** Resolves when the other side has ended the connection; what came is returned. */
function ended(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      if (text.length < 200) text += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
  });
}

test("with mutual TLS: wrong certificates, half handshakes, plain HTTP, a crowd", async () => {
  await withCluster({ tls: true }, async (cluster) => {
    const before = await known(cluster);
    const [{ member, id: to, clusterId, term, index }] = before as [Known];
    const { hostname, port } = new URL(member.options.peerUrl);
    const { certs } = cluster;
    const read = (path: string): string => readFileSync(path, "utf8");
    const ca = read(certs!.peerCa);
    const foreign = await createAuthority("foreign");
    const hosts = ["localhost", "127.0.0.1"];
    const leaf = { commonName: "peer", hosts, usage: "both" } as const;
    const fromForeign = await foreign.issue(leaf);
    const attempts = [
      { cert: fromForeign.certPem, key: fromForeign.keyPem },
      { cert: read(certs!.client), key: read(certs!.clientKey) },
      { cert: read(certs!.server), key: read(certs!.serverKey) },
    ];
    for (const own of attempts) {
      const identity: PeerIdentity = { from: before[1].id, to, clusterId, tls: { ca, ...own } };
      await speak(member.options.peerUrl, identity, messages(identity, term + 50, index));
      assert.equal(
        await sendSnapshot(member.options.peerUrl, identity, Buffer.alloc(10), 20_000),
        0,
      );
    }
    // No certificate at all, and TLS of a version that is too old.
    const none = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false });
    none.write("GET /members HTTP/1.1\r\nhost: a\r\n\r\n");
    assert.equal(await ended(none), "");
    // Plain HTTP on a port of TLS.
    const plain = connectTcp(Number(port), hostname);
    plain.write("GET /members HTTP/1.1\r\nhost: a\r\n\r\n");
    assert.doesNotMatch(await ended(plain), /"id"/);
    // A crowd of handshakes that begin and do not go on; the members go on beside it.
    const crowd = Array.from({ length: HALF_HANDSHAKES }, () => {
      const socket = connectTcp(Number(port), hostname);
      socket.on("error", () => {});
      socket.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]));
      return socket;
    });
    const gone = crowd.map(ended);
    await assertUnmoved(cluster, before);
    // Each is ended by the member, by its deadline for handshakes.
    await Promise.all(gone);
    await assertUnmoved(cluster, before);
  });
});

test("TLS on a port of plain HTTP: hung up on, and nothing else happens", async () => {
  await withCluster({}, async (cluster) => {
    const before = await known(cluster);
    for (const { member } of before) {
      const { hostname, port } = new URL(member.options.peerUrl);
      const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false });
      assert.doesNotMatch(await ended(socket), /HTTP\/1.1 200/);
    }
    await assertUnmoved(cluster, before);
  });
});
