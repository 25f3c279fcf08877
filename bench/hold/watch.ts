/** A watch of all keys from the first revision on, with what they were before each change. */
import { Event, KeyValue } from "@quorate/proto";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";
import { WatchClient } from "../../test/support/watch.ts";

/**
 * Resolves when the watch at host:port has brought the revision that the store had at its start.
 * Rejects after `limitMs`.
 */
export function watchAll(
  address: string,
  identity: ClientIdentity,
  limitMs: number,
): Promise<void> {
  const client = new WatchClient(address, {}, identity);
  let goal: number | undefined;
  return new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error("the watch brought too little in time")),
      limitMs,
    );
    const end = (): void => {
      clearTimeout(timer);
      resolve();
    };
    client.onEnd = (status) => {
      clearTimeout(timer);
      reject(new Error(`the watch ended: ${status.details}`));
    };
    client.onResponse = (response) => {
      if (response.created) goal = response.header!.revision;
      if (response.canceled) reject(new Error(`the watch was canceled: ${response.cancelReason}`));
      const last = response.events.at(-1);
      if (
        goal !== undefined &&
        last !== undefined &&
        KeyValue.decode(Event.decode(last).kv!).modRevision >= goal
      )
        end();
    };
    client.create({
      key: new Uint8Array(1),
      rangeEnd: new Uint8Array(1),
      startRevision: 2,
      prevKv: true,
      fragment: true,
    });
  }).finally(() => client.close());
}
