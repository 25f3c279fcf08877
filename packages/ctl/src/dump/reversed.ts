/**
 * Yields the records of a bucket in reverse, as etcd-dump-db prints them. Stores are read forwards
 * only: a first pass notes the first key of each window of records, then the windows are read in
 * reverse.
 */
import type { BucketRecord, BucketSource } from "./bucket-source.ts";

/** Most bytes of records in memory, except for a single larger record. */
export const WINDOW_BYTES = 32 * 1024 * 1024;

/** @param windowBytes for tests */
export async function* reversedRecords(
  source: BucketSource,
  bucket: string,
  windowBytes = WINDOW_BYTES,
): AsyncGenerator<BucketRecord> {
  for (const { from, count } of (await windowsOf(source, bucket, windowBytes)).reverse()) {
    const window: BucketRecord[] = [];
    for await (const slice of source.records(bucket, from)) {
      window.push(...slice.slice(0, count - window.length));
      if (window.length === count) break;
    }
    yield* window.reverse();
  }
}

interface Window {
  readonly from: Uint8Array;
  readonly count: number;
}

async function windowsOf(
  source: BucketSource,
  bucket: string,
  windowBytes: number,
): Promise<Window[]> {
  const windows: Window[] = [];
  let from: Uint8Array | undefined;
  let count = 0;
  let sizeBytes = 0;
  for await (const slice of source.records(bucket)) {
    for (const [key, value] of slice) {
      const recordBytes = key.length + value.length;
      if (from !== undefined && sizeBytes + recordBytes > windowBytes) {
        windows.push({ from, count });
        from = undefined;
      }
      if (from === undefined) {
        from = key.slice();
        count = 0;
        sizeBytes = 0;
      }
      count++;
      sizeBytes += recordBytes;
    }
  }
  if (from !== undefined) windows.push({ from, count });
  return windows;
}
