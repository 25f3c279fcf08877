/** Objects that are maps, with the order in which Go writes them. */

export type MutableObject = Record<string, unknown>;

/** Sets a field, also one that is called "__proto__". */
export function put(target: MutableObject, field: string, value: unknown): void {
  if (field !== "__proto__") target[field] = value;
  else
    Object.defineProperty(target, field, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
}

/** A map with its keys in the order of their bytes, as Go writes maps. */
export function sortedMap(map: MutableObject): MutableObject {
  const keys = Object.keys(map);
  if (keys.every((key, at) => at === 0 || compareUtf8(keys[at - 1], key) <= 0)) return map;
  const sorted: MutableObject = {};
  for (const key of keys.sort(compareUtf8)) put(sorted, key, map[key]);
  return sorted;
}

/** The order of the texts' UTF-8 bytes: that of their code points. */
export function compareUtf8(a: string, b: string): number {
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
