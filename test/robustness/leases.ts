/**
 * Owners of leases: each takes one, hangs a key of its own on it, keeps it alive for a while and
 * looks whether the key is there, and then revokes it or lets it expire.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "@quorate/host";
import { LeaseService } from "@quorate/proto";
import type { Line } from "./recorder.ts";
import { RecordingClient, type Shared } from "./workload.ts";

const { LeaseGrant, LeaseKeepAlive, LeaseRevoke } = LeaseService.methods;

const MIN_TTL_SECONDS = 2;
const MORE_TTL_SECONDS = 4;
const BACK_OFF_MS = 300;
const MAX_KEEP_ALIVES = 8;

/** Lives until the round's clients are stopped. */
export async function liveAsLeaseOwner(
  name: string,
  shared: Shared,
  random: Random,
): Promise<void> {
  const { running } = shared;
  const client = new RecordingClient(name, shared, random.below(running.nodes.length));
  try {
    for (let turn = 0; !shared.stopped; turn++) {
      const went = await oneLease(client, shared, random, `m/${name}.${turn}`);
      if (!went) await delay(BACK_OFF_MS);
      if (!went || random.below(4) === 0) client.moveTo(random.below(running.nodes.length));
    }
  } finally {
    client.close();
  }
}

/** The life of a lease; false if something failed. */
async function oneLease(
  client: RecordingClient,
  shared: Shared,
  random: Random,
  key: string,
): Promise<boolean> {
  const { recorder, pace, running } = shared;
  const renewals: { calledMs: number; ttlMs: number }[] = [];
  const nowMs = (): number => recorder.now() / 1000;
  const asked = MIN_TTL_SECONDS + random.below(MORE_TTL_SECONDS);
  const grantedMs = nowMs();
  const granted = await client.client
    .call(LeaseGrant, { TTL: asked, ID: 0n }, pace.callLimitMs)
    .catch(() => undefined);
  if (granted === undefined) return false;
  renewals.push({ calledMs: grantedMs, ttlMs: Number(granted.TTL) * 1000 });
  const put = await client.call({
    kind: "put",
    key,
    value: `${key}.value`,
    lease: `${granted.ID}`,
  });
  let isFine = put.kind === "answered";
  let revokeCalledMs: number | undefined;
  for (let left = random.below(MAX_KEEP_ALIVES); isFine && left > 0 && !shared.stopped; left--) {
    await delay((asked * 1000) / 3);
    const calledMs = nowMs();
    const kept = await client.client
      .callStream(LeaseKeepAlive, { ID: granted.ID }, pace.callLimitMs)
      .catch(() => undefined);
    if (kept === undefined) {
      // Another member may know more.
      client.moveTo(random.below(running.nodes.length));
      continue;
    }
    if (Number(kept.TTL) <= 0) break;
    recorder.counts.keepAlives++;
    renewals.push({ calledMs, ttlMs: Number(kept.TTL) * 1000 });
    isFine = (await client.call({ kind: "range", key, end: "" })).kind === "answered";
  }
  if (isFine && random.below(2) === 0) {
    revokeCalledMs = nowMs();
    const revoked = await client.client
      .call(LeaseRevoke, { ID: granted.ID }, pace.callLimitMs)
      .catch(() => undefined);
    if (revoked !== undefined) await client.call({ kind: "range", key, end: "" });
  }
  const line: Line = {
    t: "lease",
    name: `${granted.ID}`,
    key,
    wasPut: put.kind === "answered",
    renewals,
    revokeCalledMs,
  };
  recorder.write(line);
  return isFine;
}
