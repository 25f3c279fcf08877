/** Settings below config/, one key each, with JSON values. */
import { type Client, json } from "@quorate/client";

export interface Settings {
  readonly logLevel: string;
  readonly maxConnections: number;
}

const DEFAULTS: Settings = { logLevel: "info", maxConnections: 100 };

/** Applies the settings at first and after each change, until the signal is aborted. */
export async function liveSettings(
  client: Client,
  apply: (settings: Settings) => void,
  signal: AbortSignal,
): Promise<void> {
  const set = new Map<string, unknown>();
  let isSynced = false;
  const changes = client.namespace("config/", json<unknown>()).follow({
    // Where the history is gone, read again: what has changed is applied.
    onCompacted: "resync",
    signal,
  });
  try {
    for await (const change of changes) {
      if (change.kind === "put") set.set(change.key, change.value);
      else if (change.kind === "delete") set.delete(change.key);
      else isSynced = true;
      if (isSynced) apply({ ...DEFAULTS, ...Object.fromEntries(set) });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
