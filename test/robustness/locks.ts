/**
 * Owners of locks: each takes a lease and waits with it for one lock, keeps it for a while, and
 * lets it go or lets the lease end. No two may have a lock at one time.
 *
 * A lock is a key of its own for each owner, below the lock's name, put once on the owner's lease:
 * in the history it is a write of unknown outcome, because the answer does not say its revision.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "@quorate/host";
import { fromLatin1, LeaseService, LockService } from "@quorate/proto";
import { RecordingClient, type Shared } from "./workload.ts";

const { LeaseGrant, LeaseKeepAlive, LeaseRevoke } = LeaseService.methods;
const { Lock, Unlock } = LockService.methods;

const TTL_SECONDS = 4;
const MAX_KEEP_ALIVES = 3;
const BACK_OFF_MS = 300;
const LOCKS = ["m/lock-a", "m/lock-b"] as const;

/** Lives until the round's clients are stopped. */
export async function liveAsLockOwner(name: string, shared: Shared, random: Random): Promise<void> {
  const { running } = shared;
  const client = new RecordingClient(name, shared, random.below(running.nodes.length));
  try {
    while (!shared.stopped) {
      const went = await oneLock(client, shared, random);
      if (!went) await delay(BACK_OFF_MS);
      if (!went || random.below(4) === 0) client.moveTo(random.below(running.nodes.length));
    }
  } finally {
    client.close();
  }
}

/** One lock, from the lease to its end; false if something failed. */
async function oneLock(client: RecordingClient, shared: Shared, random: Random): Promise<boolean> {
  const { recorder, pace } = shared;
  const nowMs = (): number => recorder.now() / 1000;
  const calls = client.client;
  const grantedMs = nowMs();
  const granted = await calls
    .call(LeaseGrant, { TTL: TTL_SECONDS, ID: 0n }, pace.callLimitMs)
    .catch(() => undefined);
  if (granted === undefined) return false;
  const { ID } = granted;
  const ttlMs = Number(granted.TTL) * 1000;
  const renewals = [{ calledMs: grantedMs, ttlMs }];
  const lock = LOCKS[random.below(LOCKS.length)]!;
  const key = `${lock}/${ID.toString(16)}`;
  const calledAt = recorder.now();
  const locked = await calls
    .call(Lock, { name: fromLatin1(lock), lease: ID }, pace.callLimitMs)
    .then(
      () => true,
      () => false,
    );
  const returnedAt = recorder.now();
  recorder.write({
    t: "op",
    client: client.name,
    member: client.member,
    request: { kind: "put", key, value: "", lease: `${ID}` },
    serializable: false,
    atRevision: 0,
    calledAt,
    returnedAt,
    outcome: { kind: "unknown", error: "the answer of a lock has no revision of its own" },
  });
  // A member takes back what nobody waits for any more.
  let revokeCalledMs: number | undefined = locked ? undefined : calledAt / 1000;
  if (locked) {
    for (let left = random.below(MAX_KEEP_ALIVES); left > 0 && !shared.stopped; left--) {
      await delay(random.below(TTL_SECONDS * 300));
      const calledMs = nowMs();
      const kept = await calls
        .callStream(LeaseKeepAlive, { ID }, pace.callLimitMs)
        .catch(() => undefined);
      if (kept === undefined || Number(kept.TTL) <= 0) break;
      recorder.counts.keepAlives++;
      renewals.push({ calledMs, ttlMs: Number(kept.TTL) * 1000 });
    }
    revokeCalledMs = nowMs();
    const surelyMs = Math.max(...renewals.map((one) => one.calledMs + one.ttlMs));
    const untilMs = Math.min(revokeCalledMs, surelyMs);
    recorder.write({ t: "lock", name: lock, owner: key, fromMs: returnedAt / 1000, untilMs });
    recorder.counts.locks++;
    await calls.call(Unlock, { key: fromLatin1(key) }, pace.callLimitMs).catch(() => {});
  }
  await calls.call(LeaseRevoke, { ID }, pace.callLimitMs).catch(() => {});
  recorder.write({ t: "lease", name: `${ID}`, key, wasPut: locked, renewals, revokeCalledMs });
  return locked;
}
