/** Frames that a server sends (RFC 6455 section 5.2): whole messages, without a mask. */

export const Opcode = { Text: 1, Binary: 2, Close: 8, Ping: 9, Pong: 10 } as const;
export type Opcode = (typeof Opcode)[keyof typeof Opcode];

/** Most bytes of a control frame's payload (section 5.5). */
export const MAX_CONTROL_BYTES = 125;

/** The header of a frame with so many bytes of payload. */
export function frameHeader(opcode: Opcode, sizeBytes: number): Buffer {
  if (sizeBytes <= MAX_CONTROL_BYTES) return Buffer.of(0x80 | opcode, sizeBytes);
  if (sizeBytes < 0x1_0000) {
    const header = Buffer.allocUnsafe(4);
    header[0] = 0x80 | opcode;
    header[1] = 126;
    header.writeUInt16BE(sizeBytes, 2);
    return header;
  }
  const header = Buffer.alloc(10);
  header[0] = 0x80 | opcode;
  header[1] = 127;
  header.writeUIntBE(sizeBytes, 4, 6);
  return header;
}

/** The payload of a close frame (section 5.5.1); the reason is cut to fit. */
export function closePayload(code: number, reason: string): Buffer {
  const text = Buffer.from(reason).subarray(0, MAX_CONTROL_BYTES - 2);
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(code, 0);
  payload.set(text, 2);
  return payload;
}
