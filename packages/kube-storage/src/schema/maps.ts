/**
 * Objects that are maps, with the order in which Go writes them, and objects that are being made.
 */

export type MutableObject = Record<string, unknown>;

/** Sets a field, also one that is called "__proto__". */
export function setField(target: MutableObject, field: string, value: unknown): void {
  if (field !== "__proto__") target[field] = value;
  else
    Object.defineProperty(target, field, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
}

const SURROGATE = /[\ud800-\udfff]/;

/** The keys of a map in the order of their bytes, as Go writes maps. */
export function sortedKeys(map: object): string[] {
  const keys = Object.keys(map);
  // Without surrogates the order of UTF-16 is that of bytes, and sorting is built in.
  return keys.some((key) => SURROGATE.test(key)) ? keys.sort(compareUtf8) : keys.sort();
}

/** A map with its keys in the order of their bytes. */
export function sortedMap(map: MutableObject): MutableObject {
  let before = "";
  let isSorted = true;
  for (const key in map) {
    isSorted = compareUtf8(before, key) <= 0;
    if (!isSorted) break;
    before = key;
  }
  if (isSorted) return map;
  const sorted: MutableObject = {};
  for (const key of sortedKeys(map)) setField(sorted, key, map[key]);
  return sorted;
}

/** The order of the texts' UTF-8 bytes: that of their code points. */
export function compareUtf8(a: string, b: string): number {
  if (!SURROGATE.test(a) && !SURROGATE.test(b)) return a < b ? -1 : a === b ? 0 : 1;
  for (let at = 0; at < a.length && at < b.length; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left === right) continue;
    // A surrogate stands for a code point above all others.
    const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff;
    return isHigh(left) !== isHigh(right) ? (isHigh(left) ? 1 : -1) : left - right;
  }
  return a.length - b.length;
}

/** The fields of an object before it is made. */
export interface FieldValues {
  readonly names: readonly string[];
  get(field: string): unknown;
  set(field: string, value: unknown): void;
  /** Sets a field that is absent or, unless it is a pointer in Go, "" or 0. */
  setMissing(field: string, value: unknown): void;
}

/** Sets the defaults of one type. */
export type Defaulter = (fields: FieldValues) => void;
