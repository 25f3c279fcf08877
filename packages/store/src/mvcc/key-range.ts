/** The keys that a request addresses. */
import { toLatin1 } from "@quorate/proto";

/**
 * One key, or the keys from `key` (included) to `to` (excluded; undefined: to the end). Keys are
 * latin1 strings.
 */
export type KeyRange =
  | { readonly single: true; readonly key: string }
  | { readonly single: false; readonly key: string; readonly to: string | undefined };

/**
 * The range of a request: no range_end is the key alone, a single zero byte everything from the key
 * on.
 */
export function keyRange(key: Uint8Array, rangeEnd: Uint8Array): KeyRange {
  const from = toLatin1(key);
  if (rangeEnd.length === 0) return { single: true, key: from };
  return {
    single: false,
    key: from,
    to: rangeEnd.length === 1 && rangeEnd[0] === 0 ? undefined : toLatin1(rangeEnd),
  };
}

/** True if the key is in the range. */
export function inRange(range: KeyRange, key: string): boolean {
  if (range.single) return key === range.key;
  return key >= range.key && (range.to === undefined || key < range.to);
}
