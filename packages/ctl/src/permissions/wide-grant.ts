/**
 * Grants that are wider than they look. Keys compare as bytes, and nothing in a key is a separator:
 * that is what surprises those who think of directories.
 */
import { fromLatin1, toLatin1 } from "@quorate/proto";
import { rangeText } from "./range-text.ts";
import { type KeyRange, keyRange } from "./verdict.ts";

/**
 * What is to be known of a grant, a sentence each; empty for one that is what it looks like.
 * @param prefixEnd the client library's: the end of the range of keys with a prefix
 */
export function widthWarnings(
  grant: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array },
  prefixEnd: (key: Uint8Array) => Uint8Array,
): string[] {
  if (grant.rangeEnd.length === 0) return [];
  const range = keyRange(grant.key, grant.rangeEnd);
  const shown = rangeText(range, prefixEnd);
  const { key, end } = range;
  if (end === undefined) {
    if (key === "\0") return ["the grant covers every key, those of other applications too"];
    return [`the grant has an open end: it covers ${shown}, whatever the keys begin with`];
  }
  const ownEnd = toLatin1(prefixEnd(fromLatin1(key)));
  if (end === ownEnd) return prefixWarnings(key, shown);
  if (ownEnd === "\0" || end < ownEnd) return [];
  return [
    `the grant covers all keys in ${shown}, not only those that begin with ${quoted(key)}: ` +
      `${quoted(example(range, ownEnd))} is one of them`,
  ];
}

/** A prefix that ends within a word is that of other words, too. */
function prefixWarnings(key: string, shown: string): string[] {
  if (!/[A-Za-z0-9]$/.test(key)) return [];
  return [
    `the grant covers ${shown}: ${quoted(`${key}2`)} is one of them as well as ` +
      `${quoted(`${key}/a`)}; end the prefix with a separator where that is not meant`,
  ];
}

/** A key of the range that does not begin with its first key. */
function example({ key, end }: KeyRange, ownEnd: string): string {
  // Between the end of the keys that begin with `key` and the end of the range, if there are any.
  return end === undefined || ownEnd < end ? ownEnd : key;
}

function quoted(key: string): string {
  // As range-text shows it.
  return rangeText({ key, end: `${key}\0` }, (bytes) => bytes);
}
