/** Protobuf's varints: seven bits a byte, the lowest first, the top bit set on all but the last. */

/** Bytes of the varint of a safe integer of 0 or more. */
export function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) size++;
  return size;
}

/**
 * Writes a safe integer of 0 or more at `at`, where `bytes` must have space for it.
 * @returns the offset behind it
 */
export function putVarint(bytes: Uint8Array, at: number, value: number): number {
  let rest = value;
  let end = at;
  // Shifts take 32 bits, so larger values lose their first groups by division.
  for (; rest > 0xffff_ffff; rest = Math.floor(rest / 128)) bytes[end++] = (rest % 128) | 0x80;
  for (; rest > 0x7f; rest >>>= 7) bytes[end++] = (rest & 0x7f) | 0x80;
  bytes[end++] = rest;
  return end;
}
