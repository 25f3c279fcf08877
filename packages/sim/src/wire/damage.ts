/**
 * A byte that changes on its way. The frames between members have no checksum of their own: members
 * that use TLS rely on that of each TLS record, members without TLS on TCP's. So:
 *
 *   sealed   any byte changes, and TLS ends the connection before anything of the record is read
 *   bare     there is no TLS, TCP's checksum let the change pass, and it strikes where the frames
 *            themselves have a check: the stream of a DATA frame, or a length beyond the longest
 *            message
 *
 * A bare change anywhere else cannot be distinguished from another message, by any program;
 * docs/operate/operations.md asks for TLS between members.
 */
import type { Random } from "@quorate/host";

/**
 * Offset of the stream's number in the head of an HTTP/2 frame, and of the length of the first
 * message behind that head.
 */
const STREAM_AT = 5;
const LENGTH_AT = 9;

/** Which byte changed, and whether TLS finds it. */
export interface Damage {
  readonly at: number;
  readonly isSealed: boolean;
}

/** Changes a byte. @param headAt where the head of the first DATA frame is */
export function damage(bytes: Uint8Array, headAt: number, random: Random): Damage {
  const isSealed = random.below(2) === 0;
  if (isSealed) {
    const at = random.below(bytes.length);
    bytes[at] ^= 1 + random.below(255);
    return { at, isSealed };
  }
  if (random.below(2) === 0) {
    const at = headAt + STREAM_AT + random.below(4);
    // The first bit of the four bytes is reserved, and means nothing.
    bytes[at] ^= 1 + random.below(127);
    return { at, isSealed };
  }
  const at = headAt + LENGTH_AT;
  // More than 64 MiB.
  bytes[at] |= 0x08 << random.below(5);
  return { at, isSealed };
}
