/** A peer that is a process of its own, and what happens to it. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, it, type TestContext } from "node:test";
import { RecordingListener } from "@quorate/transport/testing";
import { endsWith } from "../../../test/support/children.ts";
import { freePorts } from "../../../test/support/ports.ts";
import { append, heartbeat, snapshotMessage } from "./helpers/messages.ts";
import { type RealMember, RealNetwork } from "./helpers/network.ts";

const MIB = 1024 * 1024;
/**
 * Heartbeats that must be answered while a snapshot is on its way, and how long it may become for
 * that.
 */
const MIN_TRIPS = 20;
const MAX_SNAPSHOT_BYTES = 1000 * MIB;

/** @param port one that no other process takes while this one is away; a free one by default */
async function spawnMember(
  t: TestContext,
  url: string,
  port?: number,
): Promise<{ process: ChildProcess; url: string }> {
  const script = new URL("./helpers/member-process.ts", import.meta.url).pathname;
  const own = port ?? (await freePorts(1))[0];
  const child = endsWith(
    spawn(process.execPath, [script, String(own), url], { stdio: ["ignore", "pipe", "inherit"] }),
    t,
  );
  const ended = once(child, "close").then(() => assert.fail("the process has ended at its start"));
  const [line] = (await Promise.race([once(child.stdout, "data"), ended])) as [Buffer];
  return { process: child, url: `http://127.0.0.1:${Number(line.toString())}` };
}

async function start(t: TestContext, options = {}): Promise<{ net: RealNetwork; a: RealMember }> {
  const net = new RealNetwork();
  t.after(() => net.close());
  const a = await net.start(1n, new RecordingListener(), undefined, {
    options: { dialTimeoutMs: 3000, ...options },
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
    const { net, a } = await start(t, { maxQueuedBytes: 2 * MIB });
    const peer = await spawnMember(t, a.urls[0]);
    a.transport.addPeer(2n, [peer.url]);
    await answered(net, a, 1);
    a.listener.unreachables.length = 0;
    peer.process.kill("SIGSTOP");
    const message = append(1n, 2n, 5, MIB / 2);
    for (let i = 0; i < 500; i++) {
      a.transport.send([message]);
      assert.ok(a.transport.queued(2n, "bulk").bytes <= 2 * MIB);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await net.until("the loss is reported", () => a.listener.unreachables.length > 0);
    assert.equal(a.listener.unreachables.length, 1);
    peer.process.kill("SIGCONT");
    await answered(net, a, 2);
    await net.until("the queue is empty", () => a.transport.queued(2n, "bulk").bytes === 0);
  });

  it("that stays stopped loses its link", async (t) => {
    const { net, a } = await start(t, { pingTimeoutMs: 500 });
    const peer = await spawnMember(t, a.urls[0]);
    a.transport.addPeer(2n, [peer.url]);
    await answered(net, a, 1);
    peer.process.kill("SIGSTOP");
    await net.until(
      "the link is given up",
      () => a.transport.peers()[0].activeSinceMs === undefined,
    );
    await net.until("the loss is reported", () => a.listener.unreachables.length > 0);
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
      await net.until(
        "all has failed",
        () => a.listener.snapshotsSent.length === 1 && a.listener.unreachables.length > 0,
      );
      assert.deepEqual(a.listener.snapshotsSent, [{ id: 2n, taken: false }]);
      await net.until("the link is down", () => a.transport.peers()[0].activeSinceMs === undefined);
      peer = await spawnMember(t, a.urls[0], Number(new URL(peer.url).port));
    }
    await answered(net, a, 4);
  });

  it("answers heartbeats while a snapshot of 200 MB is on its way", async (t) => {
    const { net, a } = await start(t);
    const peer = await spawnMember(t, a.urls[0]);
    a.transport.addPeer(2n, [peer.url]);
    await answered(net, a, 1);
    const chunk = new Uint8Array(256 * 1024);
    let sentBytes = 0;
    let trips = 0;
    // It goes on until enough heartbeats were answered; were these behind it, none would be until
    // it ends.
    const isLongEnough = () => sentBytes >= 200 * MIB && trips >= MIN_TRIPS;
    a.transport.sendSnapshot({
      message: snapshotMessage(1n, 2n),
      body: (async function* () {
        for (; !isLongEnough() && sentBytes < MAX_SNAPSHOT_BYTES; sentBytes += chunk.length)
          yield chunk;
      })(),
    });
    let slowestBytes = 0;
    const late = AbortSignal.timeout(120_000);
    for (let mark = 100; a.listener.snapshotsSent.length === 0; mark++) {
      const beforeBytes = sentBytes;
      a.transport.send([heartbeat(1n, 2n, mark)]);
      while (a.listener.messages.at(-1)?.commit !== mark) {
        assert.ok(!late.aborted, "a heartbeat is never answered");
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (a.listener.snapshotsSent.length === 0) trips++;
      slowestBytes = Math.max(slowestBytes, sentBytes - beforeBytes);
    }
    assert.deepEqual(a.listener.snapshotsSent, [{ id: 2n, taken: true }]);
    t.diagnostic(
      `${sentBytes / MIB} MiB; ${trips} heartbeats there and back; at most ${slowestBytes / MIB} MiB meanwhile`,
    );
    assert.ok(
      trips >= MIN_TRIPS,
      `${trips} heartbeats were answered during ${sentBytes / MIB} MiB`,
    );
  });
});
