/** A peer that is a process of its own, and what happens to it. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, it, type TestContext } from "node:test";
import { RecordingListener } from "@quorate/transport/testing";
import { append, heartbeat, snapshotMessage } from "./helpers/messages.ts";
import { type RealMember, RealNetwork } from "./helpers/network.ts";

const MIB = 1024 * 1024;

async function spawnMember(t: TestContext, url: string, port = 0): Promise<{ process: ChildProcess; url: string }> {
  const script = new URL("./helpers/member-process.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [script, String(port), url], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return { process: child, url: `http://127.0.0.1:${Number(line.toString())}` };
}

async function start(t: TestContext, options = {}): Promise<{ net: RealNetwork; a: RealMember }> {
  const net = new RealNetwork();
  t.after(() => net.close());
  const a = await net.start(1n, new RecordingListener(), undefined, {
    options: { pingIntervalMs: 50, pingTimeoutMs: 300, dialTimeoutMs: 300, ...options },
  });
  return { net, a };
}

async function answered(net: RealNetwork, a: RealMember, mark: number): Promise<void> {
  await net.until(`heartbeat ${mark} is answered`, () => {
    a.transport.send([heartbeat(1n, 2n, mark)]);
    return a.listener.messages.some((message) => message.commit === mark);
  });
}

describe("a peer process", () => {
  it("that is stopped costs bounded memory, and goes on when it goes on", async (t) => {
    const { net, a } = await start(t, { maxQueuedBytes: 2 * MIB, pingTimeoutMs: 10_000 });
    const peer = await spawnMember(t, a.urls[0]);
    a.transport.addPeer(2n, [peer.url]);
    await answered(net, a, 1);
    peer.process.kill("SIGSTOP");
    const message = append(1n, 2n, 5, MIB / 2);
    for (let i = 0; i < 500; i++) {
      a.transport.send([message]);
      assert.ok(a.transport.queued(2n, "bulk").bytes <= 2 * MIB);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await net.until("the loss is told", () => a.listener.unreachables.length > 0);
    assert.equal(a.listener.unreachables.length, 1);
    peer.process.kill("SIGCONT");
    await answered(net, a, 2);
    await net.until("the queue is empty", () => a.transport.queued(2n, "bulk").bytes === 0);
  });

  it("that stays stopped loses its link", async (t) => {
    const { net, a } = await start(t);
    const peer = await spawnMember(t, a.urls[0]);
    a.transport.addPeer(2n, [peer.url]);
    await answered(net, a, 1);
    peer.process.kill("SIGSTOP");
    await net.until("the link is given up", () => a.transport.peers()[0].activeSinceMs === undefined);
    await net.until("the loss is told", () => a.listener.unreachables.length > 0);
    peer.process.kill("SIGCONT");
    await answered(net, a, 2);
  });

  it("that is killed in the middle of all comes back in its place", async (t) => {
    const { net, a } = await start(t);
    let peer = await spawnMember(t, a.urls[0]);
    a.transport.addPeer(2n, [peer.url]);
    for (let round = 1; round <= 3; round++) {
      await answered(net, a, round);
      a.listener.snapshotsSent.length = 0;
      a.listener.unreachables.length = 0;
      let given = 0;
      a.transport.sendSnapshot({
        message: snapshotMessage(1n, 2n),
        body: (async function* () {
          for (; ; given++) yield new Uint8Array(100_000);
        })(),
      });
      await net.until("the snapshot is under way", () => {
        a.transport.send([append(1n, 2n, 5, 100_000)]);
        return given > 20;
      });
      peer.process.kill("SIGKILL");
      await net.until("all has failed", () => a.listener.snapshotsSent.length === 1 && a.listener.unreachables.length > 0);
      assert.deepEqual(a.listener.snapshotsSent, [{ id: 2n, taken: false }]);
      await net.until("the link is down", () => a.transport.peers()[0].activeSinceMs === undefined);
      peer = await spawnMember(t, a.urls[0], Number(new URL(peer.url).port));
    }
    await answered(net, a, 4);
  });

  it("answers heartbeats while a snapshot of 200 MB is on its way", async (t) => {
    const { net, a } = await start(t, { pingTimeoutMs: 10_000 });
    const peer = await spawnMember(t, a.urls[0]);
    a.transport.addPeer(2n, [peer.url]);
    await answered(net, a, 1);
    const chunk = new Uint8Array(256 * 1024);
    const count = (200 * MIB) / chunk.length;
    const startMs = performance.now();
    a.transport.sendSnapshot({
      message: snapshotMessage(1n, 2n),
      body: (async function* () {
        for (let i = 0; i < count; i++) yield chunk;
      })(),
    });
    const tripsMs: number[] = [];
    for (let mark = 100; a.listener.snapshotsSent.length === 0; mark++) {
      const sentMs = performance.now();
      a.transport.send([heartbeat(1n, 2n, mark)]);
      await net.until("the heartbeat is answered", () => a.listener.messages.at(-1)?.commit === mark);
      tripsMs.push(performance.now() - sentMs);
    }
    const tookMs = performance.now() - startMs;
    assert.deepEqual(a.listener.snapshotsSent, [{ id: 2n, taken: true }]);
    tripsMs.sort((x, y) => x - y);
    const at = (part: number) => tripsMs[Math.min(tripsMs.length - 1, Math.floor(tripsMs.length * part))].toFixed(1);
    t.diagnostic(
      `200 MB in ${tookMs.toFixed(0)} ms; ${tripsMs.length} heartbeats there and back: p50 ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)} ms`,
    );
    assert.ok(tripsMs.length >= 10, "heartbeats go on meanwhile");
    // Far below an election timeout of a second, also on a machine that is busy with other tests.
    assert.ok(tripsMs[Math.floor(tripsMs.length / 2)] < 100, `p50 ${at(0.5)} ms`);
    assert.ok(tripsMs[tripsMs.length - 1] < 500, `most ${at(1)} ms`);
  });
});
