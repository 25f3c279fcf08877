/** The options of a log. */
import type { Clock, Logger } from "@quorate/host";
import { SEGMENT_BYTES } from "./format.ts";
import { assert } from "./invariants.ts";

export interface WalOptions {
  /** Measures the syncs. */
  readonly clock: Clock;
  /** Size at which a segment is closed, a multiple of 8; 64,000,000 by default. */
  readonly segmentBytes?: number | undefined;
  readonly logger?: Logger;
  /** Called after each sync of a segment with its duration. */
  readonly onSync?: (durationMs: number) => void;
  /**
   * Called after each write with its size and duration; for the first records of a new segment
   * without the duration.
   */
  readonly onWrite?: (sizeBytes: number, durationMs?: number) => void;
}

/** The size at which a segment is closed; its range is checked. */
export function segmentBytesOf(options: WalOptions): number {
  const segmentBytes = options.segmentBytes ?? SEGMENT_BYTES;
  assert(
    Number.isSafeInteger(segmentBytes) && segmentBytes > 0 && segmentBytes % 8 === 0,
    "WAL-4",
    `a segment of ${segmentBytes} bytes`,
  );
  return segmentBytes;
}
