/** One of many programs leads. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, campaign } from "@quorate/client";

const TTL_SECONDS = 5;
const PAUSE_MS = 1000;

/**
 * Campaigns, and works while this program leads; again and again until `stop` is aborted. The work
 * is to end when its signal is aborted: another program may lead then. What it writes elsewhere
 * needs the token, with which a store refuses an earlier leader.
 */
export async function lead(
  client: Client,
  election: string,
  name: string,
  work: (signal: AbortSignal, token: number) => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) {
    try {
      await using session = await client.session({ ttlSeconds: TTL_SECONDS, signal: stop });
      await using leadership = await campaign(client, session, election, name, { signal: stop });
      await work(AbortSignal.any([leadership.signal, stop]), leadership.token);
    } catch (error) {
      if (stop.aborted) return;
      console.error(`${name}: the leadership is over:`, error);
      await sleep(PAUSE_MS, undefined, { signal: stop }).catch(() => {});
    }
  }
}
