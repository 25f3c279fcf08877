import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { connect, createServer } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { RecordingListener } from "@quorate/transport/testing";
import { request } from "undici";
import { heldBytes } from "../../../test/support/memory.ts";
import { Tunnel } from "../src/tunnel.ts";
import { append, heartbeat, snapshotMessage } from "./helpers/messages.ts";
import { type MemberSettings, type RealMember, RealNetwork } from "./helpers/network.ts";
import { StallingProxy } from "./helpers/proxy.ts";

const MIB = 1024 * 1024;

async function network(t: TestContext): Promise<RealNetwork> {
  const made = new RealNetwork();
  t.after(() => made.close());
  return made;
}

function member(net: RealNetwork, id: bigint, settings: MemberSettings = {}): Promise<RealMember> {
  return net.start(id, new RecordingListener(), undefined, settings);
}

/** What member 2 begins a stream of messages to member 1 with. */
const streamOpening = Tunnel.request({
  ":method": "POST",
  ":path": "/raft/stream/urgent",
  "x-quorate-protocol": "1",
  "x-quorate-cluster-id": "c36a1e619c38211b",
  "x-quorate-from": "2",
  "x-quorate-to": "1",
  "x-quorate-server-version": "3.7.0",
  "x-quorate-min-cluster-version": "3.0.0",
});

function isUp(from: RealMember, to: bigint): boolean {
  return from.transport.peers().some((peer) => peer.id === to && peer.activeSinceMs !== undefined);
}

describe("a peer that hangs", () => {
  it("does not make memory grow: its queue is bounded, and what it cannot hold is dropped and reported once", async (t) => {
    const net = await network(t);
    const dropped: number[] = [];
    const bounds = { maxQueuedBytes: 4 * MIB, maxQueuedMessages: 1000, pingTimeoutMs: 60_000 };
    const a = await member(net, 1n, {
      options: bounds,
      observer: { dropped: (_id, type) => dropped.push(type) },
    });
    const b = await member(net, 2n);
    const { proxy, url } = await StallingProxy.before(t, b.urls[0]);
    a.transport.addPeer(2n, [url]);
    await net.until("the link is up", () => isUp(a, 2n) && proxy.connections === 2);
    a.transport.send([append(1n, 2n, 1, 10)]);
    await net.until("both channels work", () => b.listener.messages.length === 1);
    proxy.stall();
    const before = await heldBytes();
    for (let i = 0; i < 200; i++) {
      a.transport.send([append(1n, 2n, i + 1, MIB)]);
      assert.ok(a.transport.queued(2n, "bulk").bytes <= 4 * MIB);
      if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    for (let i = 0; i < 20_000; i++) a.transport.send([heartbeat(1n, 2n, i)]);
    // 200 MiB were sent; the sockets' buffers hold a few MiB besides the queue.
    const grown = (await heldBytes()) - before;
    assert.ok(grown < 32 * MIB, `${Math.round(grown / MIB)} MiB more`);
    assert.ok(a.transport.queued(2n, "urgent").messages <= 1000);
    assert.ok(dropped.length > 10_000, `${dropped.length} dropped`);
    // Once for each channel, and once more for each half of a queue that the system's buffers still
    // took.
    assert.ok(
      a.listener.unreachables.length <= 8,
      `${a.listener.unreachables.length} times reported`,
    );
    const warnings = a.logger.find(
      "warn",
      "dropped internal Raft message since sending buffer is full",
    );
    const types = warnings.map((line) => line.fields["message-type"]);
    assert.deepEqual(new Set(types), new Set(["MsgApp", "MsgHeartbeat"]));
    assert.ok(types.length <= 8, `${types.length} times logged`);
    const early = b.listener.messages.length;
    proxy.go();
    await net.until(
      "the queue is empty",
      () =>
        a.transport.queued(2n, "bulk").bytes === 0 && a.transport.queued(2n, "urgent").bytes === 0,
    );
    a.transport.send([heartbeat(1n, 2n, 777_777)]);
    await net.until("the link works again", () =>
      b.listener.messages.some((message) => message.commit === 777_777),
    );
    assert.ok(b.listener.messages.length > early);
  });

  it("is given up when it answers no ping, and comes back when it does", async (t) => {
    const net = await network(t);
    const a = await member(net, 1n, {
      options: { pingIntervalMs: 20, pingTimeoutMs: 400, dialTimeoutMs: 400 },
    });
    // It says of no address that it is there: it is dialled through the proxy alone.
    const b = await member(net, 2n, { options: { localUrls: [] } });
    const { proxy, url } = await StallingProxy.before(t, b.urls[0]);
    const established = () =>
      a.logger.find("info", "established TCP streaming connection with remote peer").length;
    a.transport.addPeer(2n, [url]);
    await net.until("the streams are open", () => established() === 2);
    proxy.stall();
    const lost = () =>
      a.logger.find("warn", "lost TCP streaming connection with remote peer").length;
    await net.until("the streams are given up", () => lost() === 2);
    await net.until("it is reported", () => a.listener.unreachables.length > 0);
    await net.until(
      "new attempts end too",
      () => a.logger.find("warn", "failed to dial remote peer").length > 0,
    );
    proxy.go();
    await net.until("the streams are open again", () => established() >= 4 && isUp(a, 2n));
  });

  it("that takes connections but never reads is dialled again and again, with a bounded queue", async (t) => {
    const net = await network(t);
    let accepted = 0;
    const silent = createServer((socket) => {
      accepted++;
      socket.on("error", () => {});
      socket.pause();
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    t.after(() => silent.close());
    const a = await member(net, 1n, { options: { dialTimeoutMs: 50, maxQueuedBytes: MIB } });
    a.transport.addPeer(2n, [`http://127.0.0.1:${(silent.address() as { port: number }).port}`]);
    let most = 0;
    await net.until("it was dialled often", () => {
      a.transport.send([append(1n, 2n, 1, 100_000)]);
      most = Math.max(most, a.transport.queued(2n, "bulk").bytes);
      return accepted >= 6;
    });
    assert.ok(most > 0 && most <= MIB, `${most} bytes`);
    assert.ok(a.listener.unreachables.length >= 1);
    assert.ok(!isUp(a, 2n));
  });
});

describe("a peer is turned away", () => {
  const cases: [string, MemberSettings, string, RegExp, string][] = [
    [
      "of another cluster",
      { options: { clusterId: 0xbadn } },
      "request cluster ID mismatch",
      /^cluster ID mismatch$/,
      "request sent was ignored by remote peer due to cluster ID mismatch",
    ],
    [
      "of a version that is too low",
      { options: { serverVersion: "2.3.0", minClusterVersion: "2.0.0" } },
      "request version incompatibility",
      /^incompatible version$/,
      "request sent was ignored by remote peer due to server version incompatibility",
    ],
  ];
  for (const [name, settings, serverLine, error, clientLine] of cases) {
    it(name, async (t) => {
      const net = await network(t);
      const refused: string[] = [];
      const a = await member(net, 1n, settings);
      const b = await member(net, 2n, {
        observer: { refused: (id, reason) => refused.push(`${id} ${reason}`) },
      });
      a.transport.addPeer(2n, b.urls);
      await net.until("both have said so", () => {
        a.transport.send([heartbeat(1n, 2n)]);
        return (
          a.logger.find("warn", clientLine).length > 0 &&
          b.logger.find("warn", serverLine).length > 0
        );
      });
      assert.match(String(a.logger.find("warn", clientLine)[0].fields["error"]), error);
      const line = b.logger.find("warn", serverLine)[0];
      const isOfCluster = name.includes("cluster");
      for (const { fields } of [line, a.logger.find("warn", clientLine)[0]])
        assert.equal(/--initial-cluster-token/.test(String(fields["advice"])), isOfCluster);
      assert.equal(line.fields["remote-peer-id"], "1");
      assert.match(String(line.fields["remote-addr"]), /^127\.0\.0\.1:\d+$/);
      assert.ok(refused.length > 0 && refused.every((one) => one.startsWith("1 ")));
      a.transport.sendSnapshot({
        message: snapshotMessage(1n, 2n),
        body: (async function* () {})(),
      });
      await net.until("its snapshot fails too", () => a.listener.snapshotsSent.length === 1);
      assert.deepEqual(a.listener.snapshotsSent, [{ id: 2n, taken: false }]);
      assert.deepEqual([b.listener.messages, b.listener.snapshots], [[], []]);
      assert.ok(!isUp(a, 2n));
      assert.equal(
        b.logger.find("warn", serverLine).length,
        1,
        "said once, however often it comes",
      );
    });
  }

  it("that wants someone else", async (t) => {
    const net = await network(t);
    const a = await member(net, 1n);
    const b = await member(net, 2n);
    a.transport.addPeer(3n, b.urls);
    await net.until(
      "it is logged",
      () => b.logger.find("warn", "ignored streaming request; ID mismatch").length > 0,
    );
    assert.ok(!isUp(a, 3n));
  });

  it("that was removed, and it hears so", async (t) => {
    const net = await network(t);
    let reported = 0;
    const a = await member(net, 1n, { selfRemoved: () => reported++ });
    const b = await member(net, 2n, { isRemoved: (id) => id === 1n });
    a.transport.addPeer(2n, b.urls);
    await net.until("it hears so", () => reported > 0);
    const [line] = b.logger.find("warn", "rejected stream from remote peer because it was removed");
    assert.equal(line.fields["remote-peer-id"], "1");
    const [mine] = a.logger.find("warn", "failed to dial remote peer");
    assert.equal(mine.fields["error"], "the member has been permanently removed from the cluster");
  });

  it("in the middle of its stream, when it is removed then", async (t) => {
    const net = await network(t);
    const removed = new Set<bigint>();
    let reported = 0;
    const a = await member(net, 1n, { selfRemoved: () => reported++ });
    const b = await member(net, 2n, { isRemoved: (id) => removed.has(id) });
    a.transport.addPeer(2n, b.urls);
    b.transport.addPeer(1n, a.urls);
    await net.until("the link is up", () => isUp(a, 2n) && isUp(b, 1n));
    removed.add(1n);
    b.transport.removePeer(1n);
    await net.until("it hears so", () => reported > 0);
    assert.ok(!isUp(a, 2n));
  });
});

describe("a member that is not known yet", () => {
  it("is heard, and answered where it says it is, but is no peer", async (t) => {
    const net = await network(t);
    const a = await member(net, 1n);
    const b = await member(net, 2n);
    a.transport.addPeer(2n, b.urls);
    await net.until("it is heard", () => {
      a.transport.send([heartbeat(1n, 2n)]);
      return b.listener.messages.length > 0;
    });
    await net.until("it is answered", () => {
      b.transport.send([heartbeat(2n, 1n)]);
      return a.listener.messages.length > 0;
    });
    assert.deepEqual(b.transport.peers(), []);
    b.transport.addPeer(1n, a.urls);
    assert.equal(b.transport.peers().length, 1);
    assert.ok(isUp(b, 1n), "the link goes on as the peer's");
  });

  it("is one of a few", async (t) => {
    const net = await network(t);
    const b = await member(net, 2n, { options: { maxRemotes: 2 } });
    for (let id = 10n; id < 15n; id++) {
      const outsider = await member(net, id);
      outsider.transport.addPeer(2n, b.urls);
      await net.until("it is heard", () => isUp(outsider, 2n));
    }
    assert.equal(b.logger.find("info", "added remote peer").length, 2);
  });
});

describe("a peer that has moved", () => {
  it("is reached where it says that it is, too, until it is known to be there", async (t) => {
    const net = await network(t);
    const before = await member(net, 9n);
    const a = await member(net, 1n);
    const b = await member(net, 2n);
    // What a knows of b is old: another member is there now, which takes nothing for b.
    a.transport.addPeer(2n, before.urls);
    b.transport.addPeer(1n, a.urls);
    await net.until("both links are up", () => isUp(a, 2n) && isUp(b, 1n));
    a.transport.send([heartbeat(1n, 2n, 7)]);
    await net.until("it arrives at the new address", () => b.listener.messages.length === 1);
    const known = () => a.transport.peers().map(({ urls }) => urls);
    assert.deepEqual(known(), [before.urls], "what is known is what the log says");
    a.transport.updatePeer(2n, b.urls);
    assert.deepEqual(known(), [b.urls]);
    a.transport.send([heartbeat(1n, 2n, 8)]);
    await net.until("the link stays", () => b.listener.messages.length === 2);
  });
});

describe("the peer port", () => {
  it("answers plain HTTP in both versions", async (t) => {
    const net = await network(t);
    const a = await member(net, 1n, {
      http: (one) => ({
        status: 200,
        headers: {},
        body: `${one.method} ${one.path}?${one.query}\n`,
      }),
    });
    assert.equal(
      await (await request(`${a.urls[0]}/members?x=1`)).body.text(),
      "GET /members?x=1\n",
    );
    const session = connectHttp2(a.urls[0]);
    const stream = session.request({ ":path": "/version" });
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    await new Promise((resolve) => stream.on("close", resolve));
    session.destroy();
    assert.equal(Buffer.concat(chunks).toString(), "GET /version?\n");
  });

  it("closes a connection that sends what is no message, and takes the next", async (t) => {
    const net = await network(t);
    let failed = 0;
    const a = await member(net, 1n, {
      options: { maxMessageBytes: 1000 },
      observer: { receiveFailed: () => failed++ },
    });
    a.transport.addPeer(2n, ["http://127.0.0.1:1"]);
    const data = (...bytes: number[]) => [0, 0, bytes.length, 0, 0, 0, 0, 0, 1, ...bytes];
    for (const garbage of [
      data(0, 0, 0, 3, 1, 2, 3),
      data(0, 0, 4, 0, 0),
      data(0, 0, 0, 0),
      [0, 0, 0, 5, 0, 0, 0, 0, 2],
    ]) {
      const socket = connect(Number(new URL(a.urls[0]).port), "127.0.0.1");
      socket.on("error", () => {});
      socket.write(streamOpening);
      socket.write(Buffer.from(garbage));
      socket.resume();
      await new Promise((resolve) => socket.on("close", resolve));
    }
    assert.equal(failed, 4);
    const lines = a.logger
      .find("warn", "failed to read Raft message")
      .map((line) => String(line.fields["error"]));
    assert.equal(lines.length, 1, "one line for all of a member's broken input in a while");
    const b = await member(net, 2n);
    b.transport.addPeer(1n, a.urls);
    await net.until("a good one is taken", () => isUp(b, 1n));
  });

  it("ends a connection that asks and asks and never reads the answers", async (t) => {
    const net = await network(t);
    const a = await member(net, 1n);
    a.transport.addPeer(2n, ["http://127.0.0.1:1"]);
    const socket = connect(Number(new URL(a.urls[0]).port), "127.0.0.1");
    t.after(() => socket.destroy());
    socket.on("error", () => {});
    socket.pause();
    socket.write(streamOpening);
    await net.until("it is there", () => a.transport.incomingConnections === 1);
    const pings = Buffer.concat(Array.from({ length: 4000 }, () => Tunnel.ping()));
    await net.until("it is ended", () => {
      if (socket.writableLength < 4 * pings.length) socket.write(pings);
      return a.transport.incomingConnections === 0;
    });
  });

  it("ignores messages of another sender, or for another member", async (t) => {
    const net = await network(t);
    let failed = 0;
    const a = await member(net, 1n);
    const b = await member(net, 2n, { observer: { receiveFailed: () => failed++ } });
    a.transport.addPeer(2n, b.urls);
    await net.until("all is through", () => {
      a.transport.send([heartbeat(5n, 2n), heartbeat(1n, 2n)]);
      return b.listener.messages.length > 0;
    });
    assert.ok(b.listener.messages.every((message) => message.from === 1n));
    assert.ok(failed > 0);
  });

  it("accepts so many connections, and drops those that are silent", async (t) => {
    const net = await network(t);
    const clock = new ManualClock();
    const a = await member(net, 1n, {
      options: { maxIncomingConnections: 8, incomingIdleTimeoutMs: 100 },
      clock,
    });
    const open = () => {
      const socket = connect(Number(new URL(a.urls[0]).port), "127.0.0.1");
      socket.on("error", () => {});
      socket.resume();
      t.after(() => socket.destroy());
      return {
        socket,
        closed: new Promise<void>((resolve) => socket.on("close", () => resolve())),
      };
    };
    // A quarter of them is for those who have not said who they are: the third one takes the place
    // of the first.
    const first = open();
    await net.until("it is there", () => a.transport.incomingConnections === 1);
    const silent = [open(), open()];
    await first.closed;
    await net.until(
      "both are there",
      () =>
        a.transport.incomingConnections === 2 &&
        a.transport.slotCounters.displacedUnidentified === 1,
    );
    silent[0].socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    await net.until("both are gone", () => {
      clock.advance(10);
      return a.transport.incomingConnections === 0;
    });
    await Promise.all(silent.map((one) => one.closed));
    assert.equal(a.logger.find("warn", "closed idle peer connection").length, 2);
  });

  it("opens all of its addresses or none", async (t) => {
    const net = await network(t);
    const taken = await member(net, 1n);
    const port = Number(new URL(taken.urls[0]).port);
    const listen = [
      { host: "127.0.0.1", port: 0, secure: false },
      { host: "127.0.0.1", port, secure: false },
    ];
    await assert.rejects(member(net, 2n, { options: { listen } }), { code: "EADDRINUSE" });
  });
});

describe("what is counted", () => {
  it("is the same on both sides", async (t) => {
    const net = await network(t);
    const sent = new Map<bigint, number>();
    const received = new Map<bigint, number>();
    const events: string[] = [];
    const traffic = (id: bigint) => ({
      sent: { add: (bytes: number) => sent.set(id, (sent.get(id) ?? 0) + bytes) },
      received: { add: (bytes: number) => received.set(id, (received.get(id) ?? 0) + bytes) },
    });
    const a = await member(net, 1n, {
      observer: {
        known: (id, isKnown) => events.push(`known ${id} ${isKnown}`),
        traffic: (id) => ({ ...traffic(id), received: { add() {} } }),
        active: (id, active) => events.push(`active ${id} ${active}`),
        roundTrip: (id, ms) => assert.ok(id === 2n && ms >= 0),
        snapshotSendStarted: (id) => events.push(`sending ${id}`),
        snapshotSendEnded: (id, taken, _ms, bytes) =>
          events.push(`sent ${id} ${taken} ${bytes > 100_000}`),
      },
    });
    const b = await member(net, 2n, {
      observer: {
        traffic: (id) => ({ ...traffic(id), sent: { add() {} } }),
        snapshotReceiveStarted: (id) => events.push(`receiving ${id}`),
        snapshotReceiveEnded: (id, taken, _ms, bytes) =>
          events.push(`received ${id} ${taken} ${bytes > 100_000}`),
      },
    });
    a.transport.addPeer(2n, b.urls);
    await net.until("the link is up", () => isUp(a, 2n));
    a.transport.send(Array.from({ length: 100 }, (_, i) => heartbeat(1n, 2n, i)));
    a.transport.send([append(1n, 2n, 5, 300_000)]);
    await net.until("all is there", () => b.listener.messages.length === 101);
    assert.ok(sent.get(2n)! > 300_000);
    assert.equal(received.get(1n), sent.get(2n));
    a.transport.sendSnapshot({
      message: snapshotMessage(1n, 2n),
      body: (async function* () {
        yield new Uint8Array(100_000);
      })(),
    });
    await net.until("the snapshot is there", () => a.listener.snapshotsSent.length === 1);
    a.transport.removePeer(2n);
    assert.deepEqual(events, [
      "known 2 true",
      "active 2 true",
      "sending 2",
      "receiving 1",
      "received 1 true true",
      "sent 2 true true",
      "active 2 false",
      "known 2 false",
    ]);
  });
});
