/**
 * The buckets of a stopped member's store, or of a database or snapshot file of etcd's: the same
 * names and records either way.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { BoltFile } from "@quorate/bolt";
import { DiskError, type Keyspace } from "@quorate/host";
import { levelKeyspaces, nodeDisk } from "@quorate/host/node";
import { FILE_BUCKETS } from "@quorate/store";
import { Exit, ExitCode } from "../io.ts";
import { keyspaceDirectory, plainPath } from "../offline/data-dir.ts";

export type BucketRecord = readonly [key: Uint8Array, value: Uint8Array];

export interface BucketSource {
  /** The file or the store's directory. */
  readonly path: string;
  readonly kind: "bolt" | "level";
  /** Ascending. */
  readonly bucketNames: readonly string[];
  /** The records of a bucket in key order, from a key on, in slices. */
  records(bucket: string, from?: Uint8Array): AsyncGenerator<readonly BucketRecord[]>;
  close(): Promise<void>;
}

/** Interval between attempts to open a locked store. */
const RETRY_MS = 100;

/**
 * Opens the store at `path`: a bbolt file, a data directory of etcd or Quorate, or a store's
 * directory.
 * @param timeoutMs how long to wait while a running member has it locked
 * @throws Exit if there is none; DiskError, BoltDamageError
 */
export async function openSource(path: string, timeoutMs: number): Promise<BucketSource> {
  const file = boltPath(path);
  if (file !== undefined) return boltSource(BoltFile.open(nodeDisk, file));
  const dir = keyspaceDirectory(path);
  if (nodeDisk.stat(`${dir}/CURRENT`)?.kind !== "file") {
    throw new Exit(
      ExitCode.error,
      `${path} is neither a database file nor a data directory: it has no member/store/db and no member/snap/db`,
    );
  }
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      return levelSource(dir, await levelKeyspaces.open(dir, { create: false }));
    } catch (error) {
      if (!(error instanceof DiskError) || error.code !== "Locked" || performance.now() >= endMs)
        throw error;
      await sleep(RETRY_MS);
    }
  }
}

/** The path of the bbolt file at or in `path`, if there is one. */
export function boltPath(path: string): string | undefined {
  const clean = plainPath(path);
  if (nodeDisk.stat(clean)?.kind === "file") return clean;
  const inside = `${clean}/member/snap/db`;
  return nodeDisk.stat(inside)?.kind === "file" ? inside : undefined;
}

function boltSource(file: BoltFile): BucketSource {
  return {
    path: file.path,
    kind: "bolt",
    bucketNames: file.bucketNames,
    async *records(bucket, from) {
      for (const slice of file.records(bucket)) {
        const rest =
          from === undefined ? slice : slice.filter(([key]) => Buffer.compare(key, from) >= 0);
        if (rest.length > 0) yield rest;
      }
    },
    close: async () => file.close(),
  };
}

function levelSource(path: string, keyspace: Keyspace): BucketSource {
  const prefixes: Readonly<Record<string, number>> = FILE_BUCKETS;
  return {
    path,
    kind: "level",
    bucketNames: Object.keys(FILE_BUCKETS).sort(),
    async *records(bucket, from) {
      const prefix = prefixes[bucket];
      if (prefix === undefined) return;
      const first = Uint8Array.of(prefix, ...(from ?? []));
      for await (const slice of keyspace.scan({ from: first, to: Uint8Array.of(prefix + 1) })) {
        yield slice.map(([key, value]): BucketRecord => [key.subarray(1), value]);
      }
    },
    close: () => keyspace.close(),
  };
}
