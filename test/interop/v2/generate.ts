/**
 * Random requests of the v2 API. A few names meet often; indexes are given as places in the history
 * of the writes, because each server counts on its own.
 */
import { pick } from "../../support/random.ts";
import type { V2Request } from "./target.ts";

/** What generating needs of randomness. */
export interface Dice {
  /** From 0 up to `n`, without it. */
  below(n: number): number;
}

/** A request whose indexes are still to be filled in. */
export interface Draft {
  readonly method: V2Request["method"];
  readonly path: string;
  readonly fields: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Fields as they are, behind the others. */
  readonly raw?: string | undefined;
  /** The index of a field: so many writes ago, or far in the future. */
  readonly indexes: Readonly<Record<string, number>>;
  readonly inBody: boolean;
}

const NAMES = ["a", "b", "c", "_h", "é", "x y", "a.b", "a-b", "q", "0", "\u{1f600}"];
const VALUES = [
  "",
  "one",
  "two",
  "bar",
  '<&>"\\',
  "é\u2028",
  "a=b&c",
  " ",
  "日本",
  "\u0000\u0001\n",
];
const FLAGS = ["true", "false", "1", "0", "T", "yes", ""];
/** Requests that are wrong in one way each. */
const RAW = [
  "prevIndex=x",
  "waitIndex=-1",
  "recursive=maybe",
  "sorted=2",
  "dir=x",
  "quorum=x",
  "stream=x",
  "wait=x",
  "prevValue=",
  "noValueOnSuccess=x",
  "ttl=x",
  "ttl=-1",
  "ttl=1.5",
  "prevExist=x",
  "refresh=x",
  "refresh=true",
  "refresh=true&value=1&ttl=100",
  "value=%zz",
  "value=1;2",
  "%",
  "prevIndex=18446744073709551616",
  "ttl=",
  "value=1&value=2",
  "=1",
];

function pathOf(dice: Dice): string {
  const depth = dice.below(12) === 0 ? 0 : 1 + dice.below(3);
  const names = Array.from({ length: depth }, () => pick(dice, NAMES.slice(0, 4 + dice.below(8))));
  const path = names.map((name) => `/${encodeURIComponent(name)}`).join("");
  return `/v2/keys${path}${dice.below(15) === 0 ? "/" : ""}`;
}

/** A request. */
export function draft(dice: Dice): Draft {
  const path = pathOf(dice);
  const one = methodOf(dice);
  const indexes: Record<string, number> = {};
  const fields: Record<string, string | number | boolean | undefined> = {};
  const maybe = (chances: number, name: string, value: () => string | number | boolean) => {
    if (dice.below(chances) === 0) fields[name] = value();
  };
  if (one === "GET" || one === "HEAD") {
    maybe(2, "recursive", () => true);
    fields["sorted"] = true;
    maybe(3, "quorum", () => pick(dice, FLAGS));
  } else if (one === "DELETE") {
    maybe(3, "dir", () => true);
    maybe(4, "recursive", () => true);
    maybe(6, "prevValue", () => pick(dice, VALUES));
    if (dice.below(6) === 0) indexes["prevIndex"] = dice.below(5);
  } else {
    maybe(2, "value", () => pick(dice, VALUES));
    maybe(4, "dir", () => pick(dice, FLAGS.slice(0, 5)));
    maybe(5, "ttl", () => 100 + dice.below(1000));
    maybe(8, "noValueOnSuccess", () => true);
    if (one === "PUT") {
      maybe(5, "prevExist", () => dice.below(2) === 0);
      maybe(6, "prevValue", () => pick(dice, VALUES));
      if (dice.below(6) === 0) indexes["prevIndex"] = dice.below(5);
      maybe(10, "refresh", () => true);
    }
  }
  const raw = dice.below(12) === 0 ? pick(dice, RAW) : undefined;
  return { method: one, path, fields, raw, indexes, inBody: dice.below(2) === 0 };
}

function methodOf(dice: Dice): V2Request["method"] {
  const roll = dice.below(20);
  if (roll < 8) return "PUT";
  if (roll < 13) return "GET";
  if (roll < 16) return "DELETE";
  return roll < 19 ? "POST" : "HEAD";
}

/** A wait for what a write has done already: so it ends at once. */
export function waitDraft(dice: Dice): Draft {
  const fields = { wait: true, recursive: dice.below(2) === 0 };
  return {
    method: "GET",
    path: pathOf(dice),
    fields,
    inBody: false,
    indexes: { waitIndex: dice.below(12) },
  };
}

/** The request for one server. @param indexOf the server's index of so many writes ago */
export function requestOf(one: Draft, indexOf: (ago: number) => number): V2Request {
  const indexes = Object.entries(one.indexes).map(([name, ago]) => [name, indexOf(ago)]);
  const text = [formText({ ...one.fields, ...Object.fromEntries(indexes) }), one.raw ?? ""]
    .filter((part) => part !== "")
    .join("&");
  const hasBody = one.inBody && (one.method === "PUT" || one.method === "POST");
  const { method, path } = one;
  return { method, path, query: hasBody ? "" : text, body: hasBody ? text : undefined };
}

function formText(fields: Draft["fields"]): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`)
    .join("&");
}
