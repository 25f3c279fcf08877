/**
 * A lock that many readers or one writer hold at a time, in the order in which they came. The keys
 * are those of RWMutex of etcd's recipes for Go (client/v3/experimental/recipes/rwmutex.go), so
 * both kinds of program wait for one another.
 */
import { check, TEXT } from "@quorate/host";
import type { WaitOptions } from "./call-options.ts";
import type { Client } from "./client.ts";
import { acquire, type Lock } from "./lock.ts";
import type { Session } from "./session.ts";

/** Waits until no writer that came before is left. As lockNamed(). A session has one of a name. */
export async function readLock(
  client: Client,
  session: Session,
  name: string,
  options: WaitOptions = {},
): Promise<Lock> {
  check("readLock", "name", name, TEXT);
  return acquire(client, session, { name: `${name}/read`, behind: `${name}/write/` }, options);
}

/** Waits until nobody that came before is left. As lockNamed(). A session has one of a name. */
export async function writeLock(
  client: Client,
  session: Session,
  name: string,
  options: WaitOptions = {},
): Promise<Lock> {
  check("writeLock", "name", name, TEXT);
  return acquire(client, session, { name: `${name}/write`, behind: `${name}/` }, options);
}
