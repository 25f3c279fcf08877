/** Members of Quorate and members that speak as those of etcd, over real sockets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { requestHttp1 } from "@quorate/host/node";
import { idToHex, raftpb } from "@quorate/proto";
import { RecordingListener } from "@quorate/transport/testing";
import { encodeWithLength } from "../src/etcd-frames.ts";
import {
  CLUSTER_ID,
  type MemberSettings,
  type RealMember,
  RealNetwork,
} from "./helpers/network.ts";

const { MsgApp, MsgHeartbeat } = raftpb.MessageType;

async function withNetwork(body: (network: RealNetwork) => Promise<void>): Promise<void> {
  const network = new RealNetwork();
  try {
    await body(network);
  } finally {
    await network.close();
  }
}

const start = (network: RealNetwork, id: bigint, settings: MemberSettings = {}, urls?: string[]) =>
  network.start(id, new RecordingListener(), urls, settings);

function know(a: RealMember, b: RealMember): void {
  a.transport.addPeer(b.id, b.urls);
  b.transport.addPeer(a.id, a.urls);
}

function message(from: RealMember, to: RealMember, type: raftpb.MessageType): raftpb.Message {
  return raftpb.Message.create({ type, from: from.id, to: to.id, term: 3, logTerm: 3, index: 4 });
}

/** Sends until messages of both kinds have come. */
async function linked(network: RealNetwork, from: RealMember, to: RealMember): Promise<void> {
  to.listener.messages.length = 0;
  await network.until("messages come", () => {
    from.transport.send([message(from, to, MsgApp), message(from, to, MsgHeartbeat)]);
    const types = to.listener.messages.map(({ type }) => type);
    return types.includes(MsgApp) && types.includes(MsgHeartbeat);
  });
}

/** The status of a request to a member's peer port, and what it says. */
function ask(
  member: RealMember,
  path: string,
  headers: Record<string, string>,
  body?: Uint8Array,
): Promise<{ status: number; text: string }> {
  const method = body === undefined ? "GET" : "POST";
  return new Promise((resolve, reject) => {
    const request = requestHttp1(`${member.urls[0]}${path}`, { method, headers, agent: false });
    request.on("error", reject);
    request.on("response", (response) => {
      const status = response.statusCode ?? 0;
      if (status === 200 && path.startsWith("/raft/stream")) {
        response.destroy();
        resolve({ status, text: "" });
        return;
      }
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on("end", () => resolve({ status, text: text.trim() }));
    });
    request.end(body);
  });
}

const introduction = (from: bigint) => ({
  "x-etcd-cluster-id": idToHex(CLUSTER_ID),
  "x-server-from": idToHex(from),
  "x-server-version": "3.6.1",
  "x-min-cluster-version": "3.0.0",
});

test("a member of Quorate and one of etcd find the protocol that both speak", () =>
  withNetwork(async (network) => {
    const ours = await start(network, 1n);
    const theirs = await start(network, 2n, { options: { isEtcd: true } });
    know(ours, theirs);
    await linked(network, ours, theirs);
    await linked(network, theirs, ours);
    assert.equal(ours.logger.find("info", "the remote peer speaks another protocol").length, 1);
  }));

test("members of Quorate speak their own protocol, also where one was a member of etcd before", () =>
  withNetwork(async (network) => {
    const ours = await start(network, 1n);
    const theirs = await start(network, 2n, { options: { isEtcd: true } });
    know(ours, theirs);
    await linked(network, ours, theirs);
    await network.crash(theirs);
    const adopted = await start(network, 2n, {}, [...theirs.urls]);
    adopted.transport.addPeer(1n, ours.urls);
    await linked(network, ours, adopted);
    await linked(network, adopted, ours);
    const changes = ours.logger.find("info", "the remote peer speaks another protocol");
    assert.deepEqual(
      changes.map(({ fields }) => fields["protocol"]),
      ["etcd", "quorate"],
    );
    const other = adopted.logger.find("info", "the remote peer speaks another protocol");
    assert.deepEqual(other, []);
  }));

test("a member that must not have etcd's beside it neither takes nor sends messages", () =>
  withNetwork(async (network) => {
    const ours = await start(network, 1n, { takesEtcd: () => false });
    const theirs = await start(network, 2n, { options: { isEtcd: true } });
    know(ours, theirs);
    await network.until("both have tried", () => {
      theirs.transport.send([message(theirs, ours, MsgHeartbeat)]);
      return (
        ours.logger.find("warn", "request version incompatibility").length > 0 &&
        ours.logger.find("warn", "failed to dial remote peer").length > 0
      );
    });
    assert.deepEqual(ours.listener.messages, []);
  }));

test("requests of strangers and of other versions are refused in etcd's words", () =>
  withNetwork(async (network) => {
    const ours = await start(network, 1n, {
      isRemoved: (id) => id === 4n,
      askMembers: async (_urls, reported) => reported([]),
    });
    const theirs = await start(network, 2n, { options: { isEtcd: true } });
    ours.transport.addPeer(2n, theirs.urls);
    const path = "/raft/stream/message/2";
    const known = { ...introduction(2n), "x-raft-to": "1" };
    const stream = async (headers: Record<string, string>, at = path) => {
      const { status, text } = await ask(ours, at, headers);
      return `${status} ${text}`.trim();
    };
    assert.equal(await stream({ ...known, "x-etcd-cluster-id": "1" }), "412 cluster ID mismatch");
    assert.equal(await stream({ ...known, "x-raft-to": "9" }), "412 to field mismatch");
    const late = { ...known, "x-min-cluster-version": "3.8.0" };
    assert.equal(await stream(late), "412 incompatible version");
    const early = { ...known, "x-server-version": "2.3.0" };
    assert.equal(await stream(early), "412 incompatible version");
    assert.equal(await stream({ ...known, "x-server-from": "" }), "400 invalid from");
    assert.equal(await stream({ ...known, "x-server-from": "3" }), "404 error sender not found");
    assert.equal(await stream({ ...known, "x-server-from": "4" }), "410 removed member");
    assert.equal(await stream(known, "/raft/stream/message/3"), "404 invalid from");
    assert.equal(await stream(known, "/raft/stream/other/2"), "404 invalid path");
    const quorate = { ...known, "x-quorate-protocol": "1" };
    assert.equal(await stream(quorate), "412 incompatible version");
    assert.equal(await stream(known), "200");
    const probe = await ask(ours, "/raft/probing", {});
    assert.equal((JSON.parse(probe.text) as { OK: boolean }).OK, true);

    const post = async (from: bigint, body: Uint8Array, to = "/raft") => {
      const { status, text } = await ask(ours, to, introduction(from), body);
      return `${status} ${text}`.trim();
    };
    const good = raftpb.Message.encode(message(theirs, ours, MsgHeartbeat));
    assert.equal(await post(2n, good), "204");
    assert.equal(ours.listener.messages.length, 1);
    assert.equal(await post(4n, good), "403 removed member");
    assert.match(await post(2n, new Uint8Array([255])), /^400 /);
    const wrong = raftpb.Message.encode({ ...message(theirs, ours, MsgHeartbeat), from: 3n });
    assert.match(await post(2n, wrong), /^400 a message of another member/);
    const noSnapshot = encodeWithLength(message(theirs, ours, MsgHeartbeat));
    assert.match(await post(2n, noSnapshot, "/raft/snapshot"), /^400 .*wrong raft message/);
    const cut = encodeWithLength(message(theirs, ours, MsgHeartbeat)).subarray(0, 9);
    assert.match(await post(2n, cut, "/raft/snapshot"), /^400 .*broke off/);
    assert.equal(ours.listener.messages.length, 1);
    assert.deepEqual(ours.listener.snapshots, []);
  }));

test("messages go one by one while the peer reads no stream", () =>
  withNetwork(async (network) => {
    const ours = await start(network, 1n, { options: { isEtcd: true } });
    const theirs = await start(network, 2n, { options: { isEtcd: true } });
    // It does not know this member as a peer yet, so it dials no stream.
    ours.transport.addPeer(2n, theirs.urls);
    await network.until("a message comes", () => {
      ours.transport.send([message(ours, theirs, MsgHeartbeat)]);
      return theirs.listener.messages.length > 0;
    });
  }));

test("a posted message may come after later ones on a stream, and is taken", () =>
  withNetwork(async (network) => {
    const ours = await start(network, 1n);
    const theirs = await start(network, 2n, { options: { isEtcd: true } });
    know(ours, theirs);
    await linked(network, theirs, ours);
    ours.listener.messages.length = 0;
    const early = { ...message(theirs, ours, MsgHeartbeat), commit: 1 };
    const body = raftpb.Message.encode(early);
    const request = requestHttp1(`${ours.urls[0]}/raft`, {
      method: "POST",
      headers: { ...introduction(2n), "content-length": body.length },
      agent: false,
    });
    const status = new Promise<number | undefined>((resolve, reject) => {
      request.on("error", reject);
      request.on("response", (response) => resolve(response.statusCode));
    });
    request.write(body.subarray(0, 5));
    const late = { ...early, commit: 2 };
    const commits = () => ours.listener.messages.map(({ commit }) => commit);
    await network.until("the later one comes", () => {
      theirs.transport.send([late]);
      return commits().includes(2);
    });
    assert.ok(!commits().includes(1));
    request.end(body.subarray(5));
    assert.equal(await status, 204);
    assert.ok(commits().includes(1));
  }));

test("a snapshot goes as a file behind its message, whole or not at all", () =>
  withNetwork(async (network) => {
    const ours = await start(network, 1n);
    const theirs = await start(network, 2n, { options: { isEtcd: true } });
    know(ours, theirs);
    await linked(network, ours, theirs);
    await linked(network, theirs, ours);
    const snapshot = raftpb.Snapshot.create({
      metadata: raftpb.SnapshotMetadata.create({ index: 9, term: 2 }),
    });
    const send = async (from: RealMember, to: RealMember, fails: boolean): Promise<boolean> => {
      async function* body(): AsyncGenerator<Uint8Array> {
        for (let i = 0; i < 30; i++) yield new Uint8Array(50_000).fill(i);
        if (fails) throw new Error("read error");
      }
      const announced = { ...message(from, to, raftpb.MessageType.MsgSnap), snapshot };
      from.transport.sendSnapshot({ message: announced, body: body() });
      const { snapshotsSent } = from.listener;
      await network.until("it ends", () => snapshotsSent.length === 1);
      return snapshotsSent.pop()!.taken;
    };
    for (const [from, to] of [
      [ours, theirs],
      [theirs, ours],
    ] as const) {
      assert.equal(await send(from, to, false), true);
      assert.deepEqual(
        to.listener.snapshots.map(({ sizeBytes }) => sizeBytes),
        [1_500_000],
      );
      assert.equal(await send(from, to, true), false);
      await network.until("the receiver knows", () => to.listener.brokenSnapshots.length === 1);
      to.listener.onChunk = () => {
        throw new Error("disk full");
      };
      assert.equal(await send(from, to, false), false);
      assert.equal(to.listener.snapshots.length, 1);
    }
  }));
