/** Elements of DER (X.690), found without copies. What they hold is the reader's to know. */

const LONG_LENGTH = 0x80;
const LONGEST_LENGTH_BYTES = 4;

export interface DerElement {
  readonly tag: number;
  /** Of what it holds. */
  readonly start: number;
  readonly end: number;
}

/** The element that begins at `at`; undefined where none ends at `limit` or before. */
export function derElementAt(
  der: Uint8Array,
  at: number,
  limit: number = der.length,
): DerElement | undefined {
  const tag = der[at];
  let length = der[at + 1];
  let start = at + 2;
  if (tag === undefined || length === undefined) return undefined;
  if (length >= LONG_LENGTH) {
    const count = length - LONG_LENGTH;
    // 0 is a length that is not said, which DER has not.
    if (count === 0 || count > LONGEST_LENGTH_BYTES) return undefined;
    length = 0;
    for (let i = 0; i < count; i++) length = length * 256 + (der[start + i] ?? 0);
    start += count;
  }
  const end = start + length;
  return end <= limit ? { tag, start, end } : undefined;
}

/** All elements that stand one after the other; undefined where they do not end at the end. */
export function derElements(
  der: Uint8Array,
  start = 0,
  end: number = der.length,
): DerElement[] | undefined {
  const found: DerElement[] = [];
  for (let at = start; at < end; ) {
    const element = derElementAt(der, at, end);
    if (element === undefined) return undefined;
    found.push(element);
    at = element.end;
  }
  return found;
}
