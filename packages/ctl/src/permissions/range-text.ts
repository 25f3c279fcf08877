/** Ranges of keys as people read them, and as they type them. */

import type { Flags, Invocation } from "@quorate/cli";
import { badArguments, boolFlag, type Exit } from "@quorate/cli";
import { fromLatin1, fromUtf8, quoteBytes, toLatin1 } from "@quorate/proto";
import type { KeyRange } from "./verdict.ts";

/** The flags of commands that take a key, a prefix or a range. */
export const rangeFlags: Flags = {
  prefix: boolFlag("all keys that begin with the key"),
  "from-key": boolFlag("all keys from the key on, compared as bytes"),
};

type PrefixEnd = (key: Uint8Array) => Uint8Array;

/**
 * The range of a permission from a command line. A zero byte as its end means all keys from the key
 * on, no end means the key alone. Throws Exit in etcdctl's words.
 */
export function permissionRange(
  { flags }: Pick<Invocation, "flags">,
  [key, end]: readonly [key: string, end: string | undefined],
  prefixEnd: PrefixEnd,
): { key: Uint8Array; rangeEnd: Uint8Array } {
  const prefix = flags.bool("prefix");
  const fromKey = flags.bool("from-key");
  const refuse = (text: string): Exit => badArguments(text);
  const everything = new Uint8Array(1);
  const nothing = new Uint8Array(0);
  const exclusive = "--from-key and --prefix flags are mutually exclusive";
  if (key === "") {
    if (prefix && fromKey) throw refuse(exclusive);
    return { key: everything, rangeEnd: prefix || fromKey ? everything : nothing };
  }
  const start = fromUtf8(key);
  if (end === undefined) {
    if (prefix && fromKey) throw refuse(exclusive);
    return { key: start, rangeEnd: prefix ? prefixEnd(start) : fromKey ? everything : nothing };
  }
  if (prefix) throw refuse("unexpected endkey argument with --prefix flag");
  if (fromKey) throw refuse("unexpected endkey argument with --from-key flag");
  return { key: start, rangeEnd: fromUtf8(end) };
}

/** A key in quotes, or a range: `[a, c)`, `[p/, p0) (prefix p/)`, `every key`. */
export function rangeText({ key, end }: KeyRange, prefixEnd: PrefixEnd): string {
  if (end === `${key}\0`) return shown(key);
  if (end === undefined) return key === "\0" ? "every key" : `every key from ${shown(key)} on`;
  const isPrefix = toLatin1(prefixEnd(fromLatin1(key))) === end;
  return isPrefix ? `every key with prefix ${shown(key)}` : `[${shown(key)}, ${shown(end)})`;
}

function shown(key: string): string {
  return quoteBytes(fromLatin1(key));
}
