/**
 * Of two members only one can dial the other, as behind a firewall: messages and snapshots pass
 * both ways.
 */
import assert from "node:assert/strict";
import { connect as connectHttp2 } from "node:http2";
import { connect, createServer } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { fromUtf8, raftpb } from "@quorate/proto";
import { RecordingListener } from "@quorate/transport/testing";
import { makeAuthority, makeLocalCertificate } from "../../../test/support/certs.ts";
import { freePorts } from "../../../test/support/ports.ts";
import { Tunnel } from "../src/tunnel.ts";
import { append, heartbeat, snapshotMessage } from "./helpers/messages.ts";
import { type MemberSettings, type RealMember, RealNetwork } from "./helpers/network.ts";
import { StallingProxy } from "./helpers/proxy.ts";

const MIB = 1024 * 1024;

function networkOf(t: TestContext, made = new RealNetwork()): RealNetwork {
  t.after(() => made.close());
  return made;
}

/** A URL where nothing listens. */
async function deadUrl(scheme = "http"): Promise<string> {
  return `${scheme}://127.0.0.1:${(await freePorts(1))[0]}`;
}

function isUp(from: RealMember, to: bigint): boolean {
  return from.transport
    .peers()
    .some(({ id, activeSinceMs }) => id === to && activeSinceMs !== undefined);
}

/** Member 2, which says that it is where no member reaches it. */
function startBehind(
  net: RealNetwork,
  blockedUrl: string,
  urls?: readonly string[],
): Promise<RealMember> {
  return net.start(2n, new RecordingListener(), urls, { options: { localUrls: [blockedUrl] } });
}

interface Pair {
  readonly a: RealMember;
  readonly b: RealMember;
}

/** Member 1 cannot dial member 2, which can dial member 1. */
async function pairOf(
  net: RealNetwork,
  blockedUrl: string,
  settings: MemberSettings = {},
): Promise<Pair> {
  const a = await net.start(1n, new RecordingListener(), undefined, settings);
  const b = await startBehind(net, blockedUrl);
  a.transport.addPeer(2n, [blockedUrl]);
  b.transport.addPeer(1n, a.urls);
  return { a, b };
}

/** Waits until both kinds of messages pass both ways. */
async function linked(net: RealNetwork, { a, b }: Pair): Promise<void> {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ]) {
    await net.until(`${from.id} reaches ${to.id}`, () => {
      from.transport.send([heartbeat(from.id, to.id), append(from.id, to.id, 1, 10)]);
      const types = new Set(to.listener.messages.map((message) => message.type));
      return types.size === 2 && isUp(from, to.id);
    });
  }
}

function bodyOf(chunks: number, chunkBytes: number) {
  const state = { ended: false };
  async function* give(): AsyncGenerator<Uint8Array> {
    try {
      for (let i = 0; i < chunks; i++) yield new Uint8Array(chunkBytes).fill(i & 0xff);
    } finally {
      state.ended = true;
    }
  }
  return { body: give(), state };
}

describe("one direction of dialling is enough", () => {
  const authority = makeAuthority();
  const { certPem, keyPem } = makeLocalCertificate(authority, "peer");
  const tls = { certPem, keyPem, trustedCaPem: authority.certPem, clientCertAuth: true };
  for (const secure of [false, true]) {
    it(`messages arrive in order and a link is up on both sides, ${secure ? "TLS" : "plain text"}`, async (t) => {
      const net = networkOf(t, new RealNetwork(secure ? tls : undefined));
      const pair = await pairOf(net, await deadUrl(secure ? "https" : "http"));
      const { a, b } = pair;
      await linked(net, pair);
      const sizes = [0, 100, 16_384, 65_537, 1_500_000, 10];
      for (const [i, size] of sizes.entries())
        a.transport.send([append(1n, 2n, 1000 + i, size), heartbeat(1n, 2n, 1000 + i)]);
      const came = (type: raftpb.MessageType) =>
        b.listener.messages.filter((message) => message.type === type);
      const { MsgApp, MsgHeartbeat } = raftpb.MessageType;
      await net.until(
        "all came",
        () => came(MsgApp).at(-1)?.index === 1004 && came(MsgHeartbeat).at(-1)?.commit === 1005,
      );
      const lengths = came(MsgApp).slice(-sizes.length);
      assert.deepEqual(
        lengths.map(({ index, entries }) => [index, entries[0]?.data?.length]),
        sizes.map((size, i) => [999 + i, size]),
      );
      await net.until(
        "a round trip was measured",
        () => a.transport.peers()[0]?.roundTripMs !== undefined,
      );
    });
  }

  it("a snapshot is fetched by the member that cannot be dialled, and what it says of it comes back", async (t) => {
    const net = networkOf(t);
    const pair = await pairOf(net, await deadUrl());
    const { a, b } = pair;
    await linked(net, pair);
    const good = bodyOf(40, 100_000);
    a.transport.sendSnapshot({ message: snapshotMessage(1n, 2n), body: good.body });
    await net.until("it is taken", () => a.listener.snapshotsSent.length === 1);
    assert.deepEqual(a.listener.snapshotsSent, [{ id: 2n, taken: true }]);
    assert.equal(b.listener.snapshots[0]?.sizeBytes, 40 * 100_000);
    assert.ok(good.state.ended);
    // The announcement is not a message of its own.
    assert.ok(b.listener.messages.every(({ type }) => type !== raftpb.MessageType.MsgSnap));

    b.listener.onChunk = () => Promise.reject(new Error("no space left"));
    const refused = bodyOf(4, 100);
    a.transport.sendSnapshot({ message: snapshotMessage(1n, 2n), body: refused.body });
    await net.until("it is refused", () => a.listener.snapshotsSent.length === 2);
    assert.deepEqual(a.listener.snapshotsSent[1], { id: 2n, taken: false });
    assert.equal(b.listener.brokenSnapshots.length, 1);
    assert.ok(refused.state.ended);
  });

  it("a link whose dialler ends is down, and comes back with it", async (t) => {
    const net = networkOf(t);
    const url = await deadUrl();
    const pair = await pairOf(net, url);
    const { a, b } = pair;
    await linked(net, pair);
    await net.crash(b);
    await net.until("it is down", () => !isUp(a, 2n) && a.listener.unreachables.length > 0);
    const again = await startBehind(net, url, b.urls);
    again.transport.addPeer(1n, a.urls);
    await linked(net, { a, b: again });
  });

  it("a firewall that swallows what is dialled does not delay messages by the time of a dial", async (t) => {
    const net = networkOf(t);
    const silent = createServer((socket) => {
      socket.on("error", () => {});
      t.after(() => socket.destroy());
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    t.after(() => silent.close());
    const url = `http://127.0.0.1:${(silent.address() as { port: number }).port}`;
    const pair = await pairOf(net, url, { options: { dialTimeoutMs: 300, mostRetryMs: 10 } });
    await linked(net, pair);
    const { a, b } = pair;
    // Most of the time a dial is under way now: what is sent then must not wait for its end.
    let commit = 0;
    for (let i = 0; i < 20; i++) {
      commit++;
      a.transport.send([heartbeat(1n, 2n, commit)]);
      await net.until("it came", () => b.listener.messages.at(-1)?.commit === commit);
    }
    assert.ok(a.transport.queued(2n, "urgent").messages <= 1);
  });

  it("a peer that can be dialled again is sent to on the connection that was dialled", async (t) => {
    const net = networkOf(t);
    const url = await deadUrl();
    const pair = await pairOf(net, url);
    await linked(net, pair);
    const { a, b } = pair;
    const proxied = connectThrough(t, url, b.urls[0]);
    await net.until(
      "it is dialled",
      () =>
        a.logger.find("info", "established TCP streaming connection with remote peer").length === 2,
    );
    const before = proxied.bytes;
    a.transport.send([append(1n, 2n, 7, 50_000)]);
    await net.until("it came", () =>
      b.listener.messages.some(({ entries }) => entries[0]?.data?.length === 50_000),
    );
    assert.ok(proxied.bytes - before >= 50_000);
  });

  it("what waits on the stream of a dialler that hangs is bounded", async (t) => {
    const net = networkOf(t);
    const bounds = { maxQueuedBytes: 4 * MIB, maxQueuedMessages: 1000, pingTimeoutMs: 60_000 };
    let dropped = 0;
    const settings: MemberSettings = { options: bounds, observer: { dropped: () => dropped++ } };
    const a = await net.start(1n, new RecordingListener(), undefined, settings);
    const blockedUrl = await deadUrl();
    const b = await startBehind(net, blockedUrl);
    const { proxy, url } = await StallingProxy.before(t, a.urls[0]);
    a.transport.addPeer(2n, [blockedUrl]);
    b.transport.addPeer(1n, [url]);
    await linked(net, { a, b });
    proxy.stall();
    for (let i = 0; i < 100; i++) {
      a.transport.send([append(1n, 2n, i + 1, MIB)]);
      assert.ok(a.transport.queued(2n, "bulk").bytes <= 4 * MIB);
      if (i % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(dropped > 50, `${dropped} dropped`);
    proxy.go();
    await net.until("the queue is empty", () => a.transport.queued(2n, "bulk").bytes === 0);
    await linked(net, { a, b });
  });
});

describe("who may have messages and snapshots sent back", () => {
  const introduction = {
    "x-quorate-protocol": "1",
    "x-quorate-cluster-id": "c36a1e619c38211b",
    "x-quorate-from": "2",
    "x-quorate-to": "1",
    "x-quorate-server-version": "3.7.0",
    "x-quorate-min-cluster-version": "3.0.0",
  };

  it("a dialler that does not say that it reads messages is sent none", async (t) => {
    const net = networkOf(t);
    const a = await net.start(1n, new RecordingListener());
    a.transport.addPeer(2n, [await deadUrl()]);
    const counts = { heads: 0, dataBytes: 0 };
    const opened = (twoWay: boolean) => {
      const socket = connect(Number(new URL(a.urls[0]).port), "127.0.0.1");
      t.after(() => socket.destroy());
      const fields = { ":method": "POST", ":path": "/raft/stream/urgent", ...introduction };
      socket.write(Tunnel.request(twoWay ? { ...fields, "x-quorate-two-way": "1" } : fields));
      const events = {
        head: () => counts.heads++,
        data: (bytes: Uint8Array) => (counts.dataBytes += bytes.length),
      };
      const tunnel = new Tunnel({ ...events, pong: () => {}, ended: () => {} });
      socket.on("data", (chunk: Buffer) => tunnel.push(chunk));
      return socket;
    };
    const old = opened(false);
    await net.until("the stream is open", () => counts.heads === 1);
    await net.until(
      "a dial has failed",
      () => a.logger.find("warn", "failed to dial remote peer").length > 0,
    );
    a.transport.send([heartbeat(1n, 2n)]);
    assert.ok(!isUp(a, 2n));
    old.destroy();
    opened(true);
    await net.until("a message came", () => {
      a.transport.send([heartbeat(1n, 2n)]);
      return counts.dataBytes > 0;
    });
    assert.equal(counts.heads, 2);
  });

  it("a snapshot that was not offered is not sent, and a removed member gets none", async (t) => {
    const net = networkOf(t);
    const a = await net.start(1n, new RecordingListener(), undefined, {
      isRemoved: (id) => id === 3n,
    });
    a.transport.addPeer(2n, [await deadUrl()]);
    const session = connectHttp2(a.urls[0]);
    t.after(() => session.destroy());
    const fetchAs = (from: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = {
          ":method": "POST",
          ":path": "/raft/snapshot/fetch",
          ...introduction,
          "x-quorate-from": from,
        };
        const stream = session.request(headers, { endStream: false });
        stream.on("error", reject);
        stream.on("response", (answer) => {
          stream.end(fromUtf8("204 "));
          stream.resume();
          resolve(Number(answer[":status"]));
        });
      });
    assert.equal(await fetchAs("2"), 404);
    assert.equal(await fetchAs("3"), 410);
  });
});

/** Forwards what is dialled at one URL to another one, and counts it. */
function connectThrough(t: TestContext, url: string, target: string): { readonly bytes: number } {
  const counts = { bytes: 0 };
  const server = createServer((near) => {
    const far = connect(Number(new URL(target).port), "127.0.0.1");
    near.on("data", (chunk) => {
      counts.bytes += chunk.length;
    });
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      socket.on("error", () => {});
      t.after(() => socket.destroy());
    }
  });
  server.listen(Number(new URL(url).port), "127.0.0.1");
  t.after(() => server.close());
  return counts;
}
