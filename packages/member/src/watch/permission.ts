/**
 * Whether a watch may take events. Permissions change while watches run; each change is counted,
 * and a watch remembers the count at which it was last known to be permitted.
 */
import type { KeyRange } from "@quorate/store";
import type { Watcher } from "./watcher.ts";

/** The client that a stream's watches belong to. */
export interface StreamClient {
  /** Key of fairness; "" for this member, whose own watches are bounded where they are made. */
  readonly client: string;
  /** Resolves when the client's identity is known; undefined: now. */
  ready(): Promise<void> | undefined;
  /** Why it may not watch a range, in the words of cancel_reason; undefined: it may. */
  forbids(range: KeyRange): string | undefined;
  /** The same for a watch that was made before. */
  revoked(range: KeyRange): string | undefined;
}

/**
 * Looks up whether the watch is permitted after `changes` changes. A watch that was once forbidden
 * stays so: it has missed events.
 */
export function checkPermission(
  watcher: Watcher<unknown>,
  client: StreamClient,
  changes: number,
): boolean {
  watcher.forbidden ??= client.revoked(watcher.range);
  watcher.permissions = changes;
  return watcher.forbidden === undefined;
}

/**
 * Whether a watch may take an event. What was written after a permission ended is not for it, even
 * if the same turn of the event loop brought both and the watch is not ended yet.
 */
export function mayTake(watcher: Watcher<unknown>, client: StreamClient, changes: number): boolean {
  if (watcher.permissions === changes && watcher.forbidden === undefined) return true;
  return checkPermission(watcher, client, changes);
}
