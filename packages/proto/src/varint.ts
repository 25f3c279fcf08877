/** Varints of protobuf for encoders that write a message's bytes themselves. */

const TWO_31 = 0x8000_0000;

/** The bytes that a safe integer of 0 or more takes as a varint. */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++;
  return bytes;
}

/** Writes a safe integer of 0 or more at `position` and returns the position behind it. */
export function putVarint(target: Uint8Array, position: number, value: number): number {
  let at = position;
  let rest = value;
  while (rest >= TWO_31) {
    target[at++] = (rest % 0x80) | 0x80;
    rest = Math.floor(rest / 0x80);
  }
  while (rest > 0x7f) {
    target[at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  target[at++] = rest;
  return at;
}
