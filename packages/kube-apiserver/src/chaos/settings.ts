/**
 * What --chaos says: which faults, how often, for whom.
 *
 *     seed=7,stale-lists=0.3,watch-delay=0.5:2s,gone=0.1,conflicts=0.1,cuts=0.05,agent=manager
 */
import { parseDuration } from "@quorate/host";

export interface ChaosSettings {
  /** A whole number: the same one leads to the same decisions. */
  readonly seed: number;
  /** Clients whose User-Agent has this text; "": all. */
  readonly agent: string;
  /** Requests for these resources alone, by their plurals; none: for all. */
  readonly resources: readonly string[];
  /** So many faults at most; afterwards the server is as without them. */
  readonly faults: number;
  /** The part of lists with resourceVersion=0 that show an earlier state; 0 to 1, as all rates. */
  readonly staleLists: number;
  /** The part of a watch's events before which the watch stands still, and for how long at most. */
  readonly watchDelay: { readonly rate: number; readonly maxMs: number };
  /** The part of watches that are told their resourceVersion is too old. */
  readonly gone: number;
  /** The part of updates before which another write of the object comes. */
  readonly conflicts: number;
  /** The part of requests that are cut off before anything is done, and of watches on their way. */
  readonly cuts: number;
  /** The part of writes that are done, and whose answers are lost. */
  readonly crashAfterWrites: number;
}

export const MAX_WATCH_DELAY_MS = 60_000;
export const MAX_FAULTS = 1_000_000;
/** Of delays, where the setting has none. */
const DELAY_RATE = 0.25;

export const NO_CHAOS: ChaosSettings = {
  seed: 0,
  agent: "",
  resources: [],
  faults: 1000,
  staleLists: 0,
  watchDelay: { rate: 0, maxMs: 0 },
  gone: 0,
  conflicts: 0,
  cuts: 0,
  crashAfterWrites: 0,
};

type Read = (text: string, name: string) => Partial<ChaosSettings>;

const READERS: Readonly<Record<string, Read>> = {
  seed: (text, name) => ({ seed: whole(text, name, Number.MAX_SAFE_INTEGER) }),
  agent: (agent) => ({ agent }),
  resources: (text) => ({ resources: text.split("+") }),
  faults: (text, name) => ({ faults: whole(text, name, MAX_FAULTS) }),
  "stale-lists": (text, name) => ({ staleLists: rate(text, name) }),
  "watch-delay": (text, name) => ({ watchDelay: delay(text, name) }),
  gone: (text, name) => ({ gone: rate(text, name) }),
  conflicts: (text, name) => ({ conflicts: rate(text, name) }),
  cuts: (text, name) => ({ cuts: rate(text, name) }),
  "crash-after-writes": (text, name) => ({ crashAfterWrites: rate(text, name) }),
};

/**
 * The settings of a text such as "seed=7,cuts=0.1".
 * Throws Error with a text for the operator, which names the settings that there are.
 */
export function chaosSettingsOf(text: string): ChaosSettings {
  const given = text.split(",").map((part): [string, string] => {
    const at = part.indexOf("=");
    return at < 0 ? [part.trim(), ""] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
  });
  let settings = NO_CHAOS;
  const seen = new Set<string>();
  for (const [name, value] of given) {
    const read = Object.hasOwn(READERS, name) ? READERS[name] : undefined;
    if (read === undefined || value === "" || seen.has(name)) {
      const why =
        read !== undefined ? (value === "" ? "has no value" : "is there twice") : "is unknown";
      const names = Object.keys(READERS).join(", ");
      throw new Error(`${JSON.stringify(name)} ${why}; settings are name=value of ${names}`);
    }
    seen.add(name);
    settings = { ...settings, ...read(value, name) };
  }
  if (!seen.has("seed")) throw new Error("seed is missing: a run is repeated by it, as in seed=7");
  return settings;
}

function whole(text: string, name: string, max: number): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= max) return value;
  throw new Error(`${name} is ${JSON.stringify(text)}; it must be a whole number up to ${max}`);
}

function rate(text: string, name: string): number {
  const value = /^(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})$/.test(text) ? Number(text) : Number.NaN;
  if (value <= 1) return value;
  throw new Error(`${name} is ${JSON.stringify(text)}; it must be a part from 0 to 1, such as 0.2`);
}

function delay(text: string, name: string): ChaosSettings["watchDelay"] {
  const [first = "", second] = text.split(":", 2);
  const maxMs = parseDuration(second ?? first);
  if (typeof maxMs !== "number" || maxMs < 1 || maxMs > MAX_WATCH_DELAY_MS)
    throw new Error(
      `${name} is ${JSON.stringify(text)}; it must be DURATION or RATE:DURATION, from 1ms to 60s`,
    );
  return { rate: second === undefined ? DELAY_RATE : rate(first, name), maxMs };
}
