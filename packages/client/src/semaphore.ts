/** A lock that a number of sessions hold at a time, in the order in which they came. */
import { check, INTEGER, TEXT } from "@quorate/host";
import type { WaitOptions } from "./call-options.ts";
import type { Client } from "./client.ts";
import { acquire, type Lock } from "./lock.ts";
import type { Session } from "./session.ts";

/**
 * Waits for one of `permits` permits; all who use the name have to say the same number. As
 * lockNamed(). A session has one permit of a name. Rejects with RangeError below one permit.
 */
export async function semaphorePermit(
  client: Client,
  session: Session,
  name: string,
  permits: number,
  options: WaitOptions = {},
): Promise<Lock> {
  check("semaphorePermit", "name", name, TEXT);
  check("semaphorePermit", "permits", permits, INTEGER);
  if (permits < 1) throw new RangeError("semaphorePermit: permits must be 1 at least");
  return acquire(client, session, { name, behind: `${name}/`, permits }, options);
}
