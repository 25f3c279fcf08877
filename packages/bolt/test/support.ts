/** Database files for tests. */
import assert from "node:assert/strict";
import { BoltFile, type BoltRecord, boltOutput } from "@quorate/bolt";
import type { Disk } from "@quorate/host";

export type Buckets = Readonly<Record<string, readonly BoltRecord[]>>;

/** A key that sorts by its number. */
export function keyOf(n: number, lengthBytes = 17): Uint8Array {
  const key = new Uint8Array(lengthBytes).fill(0x6b);
  new DataView(key.buffer).setBigUint64(0, BigInt(n));
  return key;
}

export function bytesOf(lengthBytes: number): Uint8Array {
  return new Uint8Array(lengthBytes).fill(0x76);
}

export async function* sliced(
  records: readonly BoltRecord[],
  count = 100,
): AsyncGenerator<readonly BoltRecord[]> {
  for (let at = 0; at < records.length; at += count) yield records.slice(at, at + count);
}

/** Writes a file. */
export async function save(disk: Disk, path: string, buckets: Buckets): Promise<void> {
  const output = await boltOutput(
    Object.entries(buckets).map(([name, records]) => ({ name, scan: () => sliced(records) })),
  );
  const file = disk.open(path, "create");
  let at = 0;
  for await (const chunk of output.chunks()) {
    file.write([chunk], at);
    at += chunk.length;
  }
  file.close();
}

/** All records of a file. */
export function readBack(disk: Disk, path: string): Record<string, BoltRecord[]> {
  const file = BoltFile.open(disk, path);
  try {
    return Object.fromEntries(
      file.bucketNames.map((name) => {
        const records = [...file.records(name)].flat();
        assert.deepEqual(file.lastKey(name), records.at(-1)?.[0]);
        return [name, records];
      }),
    );
  } finally {
    file.close();
  }
}
