/** The options of a log. */
import type { Clock, Logger } from "@quorate/host";
import { SEGMENT_BYTES } from "./format.ts";
import { assert } from "./invariants.ts";

/** Where the work of a log is counted. */
export interface WalMeasures {
  /** The duration of each sync of a segment, in seconds. */
  readonly syncSeconds: { observe(seconds: number): void };
  /** The duration of each write; the first records of a new segment are not timed. */
  readonly writeSeconds: { observe(seconds: number): void };
  readonly writtenBytes: { value: number };
}

export interface WalOptions {
  /** Times writes and syncs. */
  readonly clock: Clock;
  /** Size at which a segment is closed, a multiple of 8; 64,000,000 by default. */
  readonly segmentBytes?: number | undefined;
  readonly logger?: Logger;
  readonly measures?: WalMeasures | undefined;
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
