/**
 * A member whose front-end threads end again and again under load: no acknowledged write is lost,
 * none is done twice, and no call of another front-end stalls. Five ends by default; one a second
 * for ten minutes with `./dev soak front-ends`.
 */
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { tmpdir } from "node:os";
import { test } from "node:test";
import type { Worker } from "node:worker_threads";
import { compareVersion, opPut } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { startMember } from "@quorate/embed/node";
import { toUtf8 } from "@quorate/proto";
import { MachinePauses } from "../support/pauses.ts";

const IS_SOAK = process.env["QUORATE_SOAK"] === "1";
const ENDS = IS_SOAK ? 600 : 5;
const PAUSE_MS = 1000;
const CLIENTS = 8;
/** What a call may take that no end of a front-end has cut off, beyond what the machine stood. */
const MAX_CALL_MS = 2000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The threads of the process that run, as they start and end. */
function followThreads(): { readonly running: ReadonlySet<Worker>; stop(): void } {
  const running = new Set<Worker>();
  const started = (message: unknown): void => {
    const { worker } = message as { readonly worker: Worker };
    running.add(worker);
    worker.once("exit", () => running.delete(worker));
  };
  subscribe("worker_threads", started);
  return { running, stop: () => void unsubscribe("worker_threads", started) };
}

test("front-ends that end under load lose no acknowledged write, and repeat none", async (t) => {
  const pauses = new MachinePauses(tmpdir());
  const threads = followThreads();
  await using member = await startMember({ flags: ["--frontend-threads=2"] });
  assert.equal(threads.running.size, 2);
  let isOver = false;
  let lost = 0;
  let longestMs = 0;
  /** Each writes 1, 2, 3, ... to its own key, and only over the version before. */
  const written = Array<number>(CLIENTS).fill(0);
  const work = async (index: number): Promise<number> => {
    const key = `counter-${index}`;
    const client = connect({ endpoints: member.endpoints, timeoutMs: 60_000 });
    let acknowledged = 0;
    // A call was lost since: it may still take effect, once, even after a later read.
    let isPending = false;
    while (!isOver) {
      const startMs = performance.now();
      try {
        const { succeeded } = await client.txn({
          compare: [compareVersion(key, "=", acknowledged)],
          success: [opPut(key, String(acknowledged + 1))],
        });
        assert.ok(succeeded || isPending, `${key}: nobody else writes it`);
        // Either way there is one version more, over which nothing that was lost can be written.
        acknowledged++;
        isPending = false;
        written[index]++;
        longestMs = Math.max(longestMs, performance.now() - startMs);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        lost++;
        isPending = true;
        const { kvs } = await client.get(key).catch(() => client.get(key));
        const version = Number(kvs[0]?.version ?? 0);
        assert.ok(version === acknowledged || version === acknowledged + 1, `${key}: ${version}`);
        if (version > acknowledged) isPending = false;
        acknowledged = version;
      }
    }
    const { kvs } = await client.get(key);
    const version = Number(kvs[0].version);
    assert.equal(toUtf8(kvs[0].value), String(version), key);
    assert.ok(version === acknowledged || (isPending && version === acknowledged + 1), key);
    client.close();
    return version;
  };
  const workers = Array.from({ length: CLIENTS }, (_, i) => work(i));
  const end = async (): Promise<void> => {
    for (let ends = 0; !isOver && ends < ENDS; ends++) {
      // Not before every client has gone on since the end before.
      const before = [...written];
      await pause(PAUSE_MS);
      while (!isOver && written.some((count, i) => count === before[i])) await pause(10);
      const [first] = threads.running;
      await first.terminate();
    }
  };
  // A client that fails ends the test.
  await Promise.race([end(), Promise.all(workers)]).finally(() => {
    isOver = true;
  });
  const counts = await Promise.all(workers);
  threads.stop();
  await pauses.stop();
  const stoodMs = pauses.longestMs;
  t.diagnostic(`${counts.reduce((sum, one) => sum + one)} writes, ${lost} calls cut off`);
  t.diagnostic(`the longest other call took ${longestMs.toFixed(0)} ms`);
  t.diagnostic(`the machine stood for ${stoodMs.toFixed(0)} ms`);
  if (IS_SOAK) assert.ok(longestMs <= MAX_CALL_MS + stoodMs, "a call of another front-end stalled");
  assert.ok(Math.min(...counts) > ENDS, counts.join());
  assert.ok(lost > 0, "some calls met the end of their front-end");
});
