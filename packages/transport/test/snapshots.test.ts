import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { RecordingListener } from "@quorate/transport/testing";
import { heartbeat, snapshotMessage } from "./helpers/messages.ts";
import { RealNetwork } from "./helpers/network.ts";
import { StallingProxy } from "./helpers/proxy.ts";

const CHUNK = new Uint8Array(100_000);

async function* endless(state: { given: number; ended: boolean }): AsyncGenerator<Uint8Array> {
  try {
    for (; ; state.given++) yield CHUNK;
  } finally {
    state.ended = true;
  }
}

async function twoMembers(t: TestContext, options = {}, receiver = {}) {
  const net = new RealNetwork();
  t.after(() => net.close());
  const a = await net.start(1n, new RecordingListener(), undefined, { options });
  const b = await net.start(2n, new RecordingListener(), undefined, { options: receiver });
  const { proxy, url } = await StallingProxy.before(t, b.urls[0]);
  a.transport.addPeer(2n, [url]);
  await net.until("the link is up", () => a.transport.peers()[0].activeSinceMs !== undefined);
  return { net, a, b, proxy };
}

describe("a snapshot", () => {
  it("is given up when the peer takes no more of it", async (t) => {
    const { net, a, proxy } = await twoMembers(t, { snapshotStallTimeoutMs: 1000 });
    const state = { given: 0, ended: false };
    a.transport.sendSnapshot({ message: snapshotMessage(1n, 2n), body: endless(state) });
    await net.until("it is under way", () => state.given > 10);
    proxy.stall();
    await net.until("it has failed", () => a.listener.snapshotsSent.length === 1 && state.ended);
    const [line] = a.logger.find("warn", "failed to send database snapshot");
    assert.equal(line.fields["error"], "the peer takes no more of the snapshot");
  });

  it("is given up when the peer does not say what became of it", async (t) => {
    const { net, a, b } = await twoMembers(t, { snapshotInstallTimeoutMs: 50 });
    let release = () => {};
    b.listener.onChunk = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    a.transport.sendSnapshot({
      message: snapshotMessage(1n, 2n),
      body: (async function* () {
        yield CHUNK;
      })(),
    });
    await net.until("it has failed", () => a.listener.snapshotsSent.length === 1);
    assert.equal(
      a.logger.find("warn", "failed to send database snapshot")[0].fields["error"],
      "the peer does not answer",
    );
    release();
    await net.until(
      "the receiver has failed too",
      () => b.listener.brokenSnapshots.length + b.listener.snapshots.length === 1,
    );
  });

  it("ends with the peer that is removed", async (t) => {
    const { net, a, b } = await twoMembers(t, { maxSnapshots: 1 });
    const state = { given: 0, ended: false };
    a.transport.sendSnapshot({ message: snapshotMessage(1n, 2n), body: endless(state) });
    await net.until("it is under way", () => state.given > 10);
    a.transport.removePeer(2n);
    await net.until("its body is let go", () => state.ended);
    await net.until("the receiver knows", () => b.listener.brokenSnapshots.length === 1);
    assert.match(b.listener.brokenSnapshots[0], /snapshot broke off/);
    await net.until(
      "the owner of the body is notified",
      () => a.listener.snapshotsSent.length === 1,
    );
    assert.equal(a.listener.snapshotsSent[0].taken, false);
    a.transport.addPeer(2n, b.urls);
    await net.until("another one is accepted", () => {
      a.transport.sendSnapshot({
        message: snapshotMessage(1n, 2n),
        body: (async function* () {})(),
      });
      return a.listener.snapshotsSent.some(({ taken }) => taken);
    });
  });

  it("is one of so many, both ways", async (t) => {
    const { net, a, b } = await twoMembers(t, { maxSnapshots: 1 }, { maxSnapshots: 1 });
    const c = await net.start(3n, new RecordingListener());
    b.transport.addPeer(3n, c.urls);
    a.transport.addPeer(3n, c.urls);
    const first = { given: 0, ended: false };
    a.transport.sendSnapshot({ message: snapshotMessage(1n, 2n), body: endless(first) });
    await net.until("it is under way", () => first.given > 10);
    a.transport.sendSnapshot({
      message: snapshotMessage(1n, 3n),
      body: endless({ given: 0, ended: false }),
    });
    await net.until("a second is not sent", () => a.listener.snapshotsSent.length === 1);
    assert.deepEqual(a.listener.snapshotsSent, [{ id: 3n, taken: false }]);
    c.transport.addPeer(2n, b.urls);
    c.transport.sendSnapshot({
      message: snapshotMessage(3n, 2n),
      body: endless({ given: 0, ended: false }),
    });
    await net.until("a second is not received", () => c.listener.snapshotsSent.length === 1);
    assert.deepEqual(c.listener.snapshotsSent, [{ id: 2n, taken: false }]);
    assert.equal(
      c.logger.find("warn", "failed to send database snapshot")[0].fields["error"],
      "too many snapshots are being received",
    );
  });

  it("must come by its own way and with the right message", async (t) => {
    const { net, a, b } = await twoMembers(t);
    assert.throws(() => a.transport.send([snapshotMessage(1n, 2n)]), /sent by sendSnapshot/);
    a.transport.sendSnapshot({ message: heartbeat(1n, 2n), body: (async function* () {})() });
    await net.until("it has failed", () => a.listener.snapshotsSent.length === 1);
    assert.deepEqual(a.listener.snapshotsSent, [{ id: 2n, taken: false }]);
    assert.equal(
      b.logger.find("warn", "failed to save incoming database snapshot")[0].fields["error"],
      "wrong raft message",
    );
  });

  it("is sent in parts where its chunks are long", async (t) => {
    const { net, a, b } = await twoMembers(t, {}, { maxMessageBytes: 2 * 1024 * 1024 });
    const size = 10 * 1024 * 1024 + 1;
    a.transport.sendSnapshot({
      message: snapshotMessage(1n, 2n),
      body: (async function* () {
        yield new Uint8Array(size);
      })(),
    });
    await net.until("it is taken", () => a.listener.snapshotsSent.length === 1);
    assert.deepEqual(a.listener.snapshotsSent, [{ id: 2n, taken: true }]);
    assert.equal(b.listener.snapshots[0].sizeBytes, size);
  });
});
