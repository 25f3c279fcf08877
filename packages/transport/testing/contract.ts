/**
 * What every transport promises, real or simulated. A network makes members and lets time pass; the
 * suite does the rest through the Transport interface alone. Delivery is best effort, so what must
 * arrive is sent until it does.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { raftpb } from "@quorate/proto";
import type { Transport } from "../src/transport.ts";
import { checksumOf, PROBE_TERM, RecordingListener } from "./recording-listener.ts";

/** One member of a network. */
export interface MemberUnderTest {
  readonly id: bigint;
  readonly transport: Transport;
  readonly listener: RecordingListener;
  /** Where others reach it. */
  readonly urls: readonly string[];
}

/** Members that can reach each other. */
export interface NetworkUnderTest {
  /**
   * Starts a member; it knows no peers yet. With `urls` it takes the place of a member that has
   * crashed.
   */
  start(
    id: bigint,
    listener: RecordingListener,
    urls?: readonly string[],
  ): Promise<MemberUnderTest>;
  /** Ends a member at once, as a killed process ends: nothing more comes from it or goes to it. */
  crash(member: MemberUnderTest): Promise<void>;
  /** Whether the way is there on which messages keep their order; those before may come late. */
  hasWay(from: MemberUnderTest, to: MemberUnderTest): boolean;
  /** Lets time pass until the condition holds; rejects if it does not come about. */
  until(what: string, condition: () => boolean): Promise<void>;
  /** Ends all members. */
  close(): Promise<void>;
}

const MESSAGE_TYPES = raftpb.MessageType;

function heartbeat(from: MemberUnderTest, to: MemberUnderTest, index: number): raftpb.Message {
  return raftpb.Message.create({
    type: MESSAGE_TYPES.MsgHeartbeat,
    from: from.id,
    to: to.id,
    term: 1,
    commit: index,
  });
}

function append(
  from: MemberUnderTest,
  to: MemberUnderTest,
  index: number,
  sizeBytes: number,
): raftpb.Message {
  const data = new Uint8Array(sizeBytes).map((_, i) => (i * 7 + index) & 0xff);
  const entries = [raftpb.Entry.create({ term: 1, index, data })];
  return raftpb.Message.create({
    type: MESSAGE_TYPES.MsgApp,
    from: from.id,
    to: to.id,
    term: 1,
    logTerm: 1,
    index: index - 1,
    entries,
  });
}

function snapshotMessage(from: MemberUnderTest, to: bigint): raftpb.Message {
  const metadata = raftpb.SnapshotMetadata.create({
    index: 100,
    term: 3,
    confState: raftpb.ConfState.create({ voters: [1n, 2n] }),
  });
  return raftpb.Message.create({
    type: MESSAGE_TYPES.MsgSnap,
    from: from.id,
    to,
    term: 3,
    snapshot: raftpb.Snapshot.create({ metadata }),
  });
}

/** A body of `count` chunks, and what is known of it. */
function bodyOf(count: number, chunkBytes: number) {
  const state = { given: 0, ended: false };
  let checksum = 0;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (; state.given < count; state.given++) {
        const chunk = new Uint8Array(chunkBytes).fill(state.given & 0xff);
        checksum = checksumOf(chunk, checksum);
        yield chunk;
      }
    } finally {
      state.ended = true;
    }
  }
  return { body: chunks(), state, checksum: () => checksum };
}

/** Registers the suite. `makeNetwork` is called for each test. */
export function transportContract(
  name: string,
  makeNetwork: () => Promise<NetworkUnderTest>,
): void {
  describe(`transport contract: ${name}`, () => {
    const test = (title: string, body: (network: NetworkUnderTest) => Promise<void>) =>
      it(title, async () => {
        const network = await makeNetwork();
        try {
          await body(network);
        } finally {
          await network.close();
        }
      });

    /** Two members that know each other and whose links work. */
    async function pair(network: NetworkUnderTest): Promise<[MemberUnderTest, MemberUnderTest]> {
      const a = await network.start(1n, new RecordingListener());
      const b = await network.start(2n, new RecordingListener());
      a.transport.addPeer(b.id, b.urls);
      b.transport.addPeer(a.id, a.urls);
      await linked(network, a, b);
      await linked(network, b, a);
      return [a, b];
    }

    /**
     * Waits until messages of both kinds get from `a` to `b`, then forgets them and what was reported
     * of the time before.
     */
    async function linked(
      network: NetworkUnderTest,
      a: MemberUnderTest,
      b: MemberUnderTest,
    ): Promise<void> {
      b.listener.probes.length = 0;
      const arrived = (type: raftpb.MessageType, term: number) =>
        b.listener.probes.some((message) => message.type === type && message.term === term);
      const send = (term: number) =>
        a.transport.send(
          [heartbeat(a, b, 0), append(a, b, 1, 0)].map((message) => ({ ...message, term })),
        );
      const isUp = () =>
        a.transport.peers().some((peer) => peer.id === b.id && peer.activeSinceMs !== undefined);
      await network.until("the link works", () => {
        send(PROBE_TERM);
        return (
          isUp() &&
          network.hasWay(a, b) &&
          arrived(MESSAGE_TYPES.MsgHeartbeat, PROBE_TERM) &&
          arrived(MESSAGE_TYPES.MsgApp, PROBE_TERM)
        );
      });
      // Behind these there are no more of the others.
      send(PROBE_TERM + 1);
      await network.until(
        "all is through",
        () =>
          arrived(MESSAGE_TYPES.MsgHeartbeat, PROBE_TERM + 1) &&
          arrived(MESSAGE_TYPES.MsgApp, PROBE_TERM + 1),
      );
      a.listener.unreachables.length = 0;
    }

    test("messages arrive whole, unchanged, and in order among their kind", async (network) => {
      const [a, b] = await pair(network);
      const sizes = [0, 1, 100, 16_384, 65_536, 65_537, 300_000, 1_500_000, 10];
      const appends = sizes.map((size, i) => append(a, b, i + 1, size));
      const beats = sizes.map((_, i) => heartbeat(a, b, i));
      for (const [i, one] of appends.entries()) a.transport.send([one, ...beats.slice(i, i + 1)]);
      await network.until("all arrived", () => b.listener.messages.length === 2 * sizes.length);
      const ofType = (type: raftpb.MessageType) =>
        b.listener.messages.filter((message) => message.type === type);
      const plain = (messages: readonly raftpb.Message[]) =>
        messages.map((message) => Buffer.from(raftpb.Message.encode(message)).toString("latin1"));
      assert.deepEqual(plain(ofType(MESSAGE_TYPES.MsgApp)), plain(appends));
      assert.deepEqual(plain(ofType(MESSAGE_TYPES.MsgHeartbeat)), plain(beats));
    });

    test("a send of many messages arrives in few calls", async (network) => {
      const [a, b] = await pair(network);
      const count = 500;
      a.transport.send(Array.from({ length: count }, (_, i) => heartbeat(a, b, i)));
      await network.until("all arrived", () => b.listener.messages.length === count);
      assert.ok(
        b.listener.batches.length <= 10,
        `${b.listener.batches.length} calls for ${count} messages`,
      );
    });

    test("messages go to the peers that they name, and those for others go nowhere", async (network) => {
      const [a, b] = await pair(network);
      const c = await network.start(3n, new RecordingListener());
      a.transport.addPeer(c.id, c.urls);
      c.transport.addPeer(a.id, a.urls);
      await linked(network, a, c);
      const unknown = { ...b, id: 99n };
      a.transport.send([
        heartbeat(a, b, 1),
        heartbeat(a, c, 2),
        heartbeat(a, unknown, 3),
        heartbeat(a, b, 4),
      ]);
      await network.until(
        "all arrived",
        () => b.listener.messages.length === 2 && c.listener.messages.length === 1,
      );
      assert.deepEqual(
        b.listener.messages.map((message) => message.commit),
        [1, 4],
      );
      assert.deepEqual(
        c.listener.messages.map((message) => message.commit),
        [2],
      );
      assert.deepEqual(a.listener.unreachables, []);
      assert.deepEqual(
        a.transport.peers().map((peer) => peer.id),
        [2n, 3n],
      );
    });

    test("a link reports since when it is up, and its round-trip time", async (network) => {
      const [a, b] = await pair(network);
      await network.until("a round trip was measured", () =>
        a.transport.peers().every(({ roundTripMs }) => roundTripMs !== undefined),
      );
      const [status] = a.transport.peers();
      assert.ok(status !== undefined);
      assert.equal(status.id, b.id);
      assert.deepEqual(status.urls, b.urls);
      assert.ok((status.roundTripMs ?? -1) >= 0);
      assert.ok((status.activeSinceMs ?? -1) >= 0);
    });

    test("a crashed peer is reported, and the link comes back with it", async (network) => {
      const [a, b] = await pair(network);
      await network.crash(b);
      await network.until("the loss is reported", () => {
        if (a.listener.unreachables.length === 0)
          a.transport.send([append(a, b, 1, 10), heartbeat(a, b, 1)]);
        return a.listener.unreachables.length > 0;
      });
      assert.ok(a.listener.unreachables.every((id) => id === b.id));
      await network.until("the link is down", () =>
        a.transport.peers().every(({ activeSinceMs }) => activeSinceMs === undefined),
      );
      const again = await network.start(2n, new RecordingListener(), b.urls);
      again.transport.addPeer(a.id, a.urls);
      await linked(network, a, again);
      await linked(network, again, a);
    });

    test("a send to a peer that is down reports it a few times, not for every message", async (network) => {
      const [a, b] = await pair(network);
      await network.crash(b);
      await network.until("the link is down", () =>
        a.transport.peers().every(({ activeSinceMs }) => activeSinceMs === undefined),
      );
      for (let i = 0; i < 10_000; i++) a.transport.send([heartbeat(a, b, i)]);
      await network.until("the loss is reported", () => a.listener.unreachables.length > 0);
      assert.ok(
        a.listener.unreachables.length < 50,
        `reported ${a.listener.unreachables.length} times`,
      );
    });

    test("a removed peer gets nothing more and is heard no more", async (network) => {
      const [a, b] = await pair(network);
      a.transport.removePeer(b.id);
      assert.deepEqual(a.transport.peers(), []);
      a.transport.send([heartbeat(a, b, 1)]);
      a.transport.sendSnapshot({ message: snapshotMessage(a, b.id), body: bodyOf(1, 1).body });
      await network.until("the snapshot has failed", () => a.listener.snapshotsSent.length === 1);
      assert.deepEqual(a.listener.snapshotsSent, [{ id: b.id, taken: false }]);
      assert.deepEqual(b.listener.messages, []);
      assert.deepEqual(a.listener.unreachables, []);
      a.transport.removePeer(b.id);
    });

    test("a peer can move to other URLs", async (network) => {
      const [a, b] = await pair(network);
      // With etcd's protocol members dial for what is sent to them: two of one id would compete.
      await network.crash(b);
      const moved = await network.start(2n, new RecordingListener());
      moved.transport.addPeer(a.id, a.urls);
      a.transport.updatePeer(b.id, moved.urls);
      await linked(network, a, moved);
      assert.deepEqual(
        a.transport.peers().map(({ urls }) => urls),
        [moved.urls],
      );
      a.transport.updatePeer(77n, moved.urls);
      assert.equal(a.transport.peers().length, 1);
    });

    test("a peer is reached by whichever of its URLs works", async (network) => {
      const a = await network.start(1n, new RecordingListener());
      const gone = await network.start(3n, new RecordingListener());
      const b = await network.start(2n, new RecordingListener());
      await network.crash(gone);
      a.transport.addPeer(b.id, [...gone.urls, ...b.urls]);
      b.transport.addPeer(a.id, a.urls);
      await linked(network, a, b);
    });

    test("a snapshot arrives whole, beside the messages", async (network) => {
      const [a, b] = await pair(network);
      const { body, state, checksum } = bodyOf(40, 100_000);
      const message = snapshotMessage(a, b.id);
      a.transport.sendSnapshot({ message, body });
      a.transport.send([heartbeat(a, b, 1)]);
      await network.until("it is taken", () => a.listener.snapshotsSent.length === 1);
      assert.deepEqual(a.listener.snapshotsSent, [{ id: b.id, taken: true }]);
      assert.equal(state.given, 40);
      assert.ok(state.ended);
      assert.equal(b.listener.snapshots.length, 1);
      const [got] = b.listener.snapshots;
      assert.ok(got !== undefined);
      assert.deepEqual([got.sizeBytes, got.checksum], [4_000_000, checksum()]);
      assert.deepEqual(
        Buffer.from(raftpb.Message.encode(got.message)),
        Buffer.from(raftpb.Message.encode(message)),
      );
      await network.until("the heartbeat is there", () => b.listener.messages.length === 1);
    });

    test("an empty snapshot is one too", async (network) => {
      const [a, b] = await pair(network);
      a.transport.sendSnapshot({ message: snapshotMessage(a, b.id), body: bodyOf(0, 0).body });
      await network.until("it is taken", () => a.listener.snapshotsSent.length === 1);
      assert.deepEqual(a.listener.snapshotsSent, [{ id: b.id, taken: true }]);
      assert.deepEqual(
        b.listener.snapshots.map(({ sizeBytes }) => sizeBytes),
        [0],
      );
    });

    test("a snapshot that the peer refuses is not taken", async (network) => {
      const [a, b] = await pair(network);
      b.listener.onChunk = () => {
        throw new Error("disk full");
      };
      const { body, state } = bodyOf(1000, 100_000);
      a.transport.sendSnapshot({ message: snapshotMessage(a, b.id), body });
      await network.until("it has failed", () => a.listener.snapshotsSent.length === 1);
      assert.deepEqual(a.listener.snapshotsSent, [{ id: b.id, taken: false }]);
      await network.until("its body is let go", () => state.ended);
    });

    test("a snapshot that breaks off at its source is not taken, and the peer does not take it for whole", async (network) => {
      const [a, b] = await pair(network);
      async function* broken(): AsyncGenerator<Uint8Array> {
        for (let i = 0; i < 5; i++) yield new Uint8Array(50_000);
        throw new Error("read error");
      }
      a.transport.sendSnapshot({ message: snapshotMessage(a, b.id), body: broken() });
      await network.until(
        "both know",
        () => a.listener.snapshotsSent.length === 1 && b.listener.brokenSnapshots.length === 1,
      );
      assert.deepEqual(a.listener.snapshotsSent, [{ id: b.id, taken: false }]);
      assert.deepEqual(b.listener.snapshots, []);
    });

    test("a snapshot whose receiver crashes is not taken", async (network) => {
      const [a, b] = await pair(network);
      let chunks = 0;
      b.listener.onChunk = () => {
        chunks++;
      };
      const { body, state } = bodyOf(100_000, 100_000);
      a.transport.sendSnapshot({ message: snapshotMessage(a, b.id), body });
      await network.until("it is under way", () => chunks >= 3);
      await network.crash(b);
      await network.until("it has failed", () => a.listener.snapshotsSent.length === 1);
      assert.deepEqual(a.listener.snapshotsSent, [{ id: b.id, taken: false }]);
      await network.until("its body is let go", () => state.ended);
    });

    test("a second snapshot for the same peer fails while the first is on its way", async (network) => {
      const [a, b] = await pair(network);
      let open = () => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      b.listener.onChunk = () => gate;
      a.transport.sendSnapshot({ message: snapshotMessage(a, b.id), body: bodyOf(3, 1000).body });
      a.transport.sendSnapshot({ message: snapshotMessage(a, b.id), body: bodyOf(3, 1000).body });
      await network.until("the second has failed", () => a.listener.snapshotsSent.length === 1);
      assert.deepEqual(a.listener.snapshotsSent, [{ id: b.id, taken: false }]);
      open();
      await network.until("the first is taken", () => a.listener.snapshotsSent.length === 2);
      assert.deepEqual(a.listener.snapshotsSent[1], { id: b.id, taken: true });
    });

    test("a slow receiver holds the sender of a snapshot back", async (network) => {
      const [a, b] = await pair(network);
      let open = () => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      let chunks = 0;
      b.listener.onChunk = () => {
        chunks++;
        return gate;
      };
      const chunkBytes = 256 * 1024;
      const { body, state } = bodyOf(100, chunkBytes);
      a.transport.sendSnapshot({ message: snapshotMessage(a, b.id), body });
      await network.until("the first chunk is there", () => chunks === 1);
      // Heartbeats go on meanwhile: enough of them that the snapshot would be through if nothing
      // held it back.
      for (let i = 0; i < 100; i++) {
        a.transport.send([heartbeat(a, b, i)]);
        await network.until("a heartbeat is there", () => b.listener.messages.length === i + 1);
      }
      // Sockets take some MiB of it.
      assert.ok(state.given < 80, `${state.given} chunks were read ahead`);
      open();
      await network.until("it is taken", () => a.listener.snapshotsSent.length === 1);
      assert.deepEqual(a.listener.snapshotsSent, [{ id: b.id, taken: true }]);
    });

    test("a closed transport does nothing and calls nothing", async (network) => {
      const [a, b] = await pair(network);
      await a.transport.close();
      a.transport.send([heartbeat(a, b, 1)]);
      a.transport.sendSnapshot({ message: snapshotMessage(a, b.id), body: bodyOf(1, 1).body });
      a.transport.addPeer(5n, b.urls);
      await network.until("the other side has noticed", () =>
        b.transport.peers().every(({ activeSinceMs }) => activeSinceMs === undefined),
      );
      assert.deepEqual(a.listener.unreachables, []);
      assert.deepEqual(a.listener.snapshotsSent, []);
      assert.deepEqual(b.listener.messages, []);
    });
  });
}
