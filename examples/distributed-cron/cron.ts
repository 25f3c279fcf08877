/**
 * A task that runs once at each time, whichever program runs it: the first that makes the key of a
 * time. Where that program dies in the middle, the task is not run again before the next time.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, compareVersion, opPut } from "@quorate/client";

/** Whether this program is to run a task at this time; true for one of all that ask. */
export async function claimTime(
  client: Client,
  task: string,
  timeMs: number,
  keepSeconds: number,
): Promise<boolean> {
  const key = `cron/${task}/${timeMs}`;
  // The key ends with its lease, so that old times are not kept.
  const { ID: lease } = await client.leases.grant(keepSeconds);
  const { succeeded } = await client.txn({
    compare: [compareVersion(key, "=", 0)],
    success: [opPut(key, "", { lease })],
  });
  if (!succeeded) await client.leases.revoke(lease);
  return succeeded;
}

/** Runs a task every `periodMs` of wall time, until the signal is aborted. */
export async function every(
  client: Client,
  task: string,
  periodMs: number,
  run: (timeMs: number) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  // Programs whose clocks differ by less than a period claim the same time.
  const keepSeconds = Math.ceil((3 * periodMs) / 1000);
  while (!signal.aborted) {
    const timeMs = (Math.floor(Date.now() / periodMs) + 1) * periodMs;
    await sleep(timeMs - Date.now(), undefined, { signal }).catch(() => {});
    if (!signal.aborted && (await claimTime(client, task, timeMs, keepSeconds))) await run(timeMs);
  }
}
