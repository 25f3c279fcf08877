/** The status of a snapshot file, as in "etcdutl snapshot status". */
import { BoltFile } from "@quorate/bolt";
import type { Disk } from "@quorate/host";
import { crc32c, fromUtf8, KeyValue, toHex, toLatin1, toUtf8, WireError } from "@quorate/proto";
import type { Position } from "../backend/meta.ts";
import { decodeRevision } from "../backend/revision.ts";
import { decodeMembers, type Member } from "../membership/member.ts";
import { EtcdFileError, metaOfFile, positionOfFile } from "./schema.ts";

export interface EtcdFileStatus {
  /** CRC-32C over all buckets and their names, as etcd computes it. */
  readonly hash: number;
  readonly revision: number;
  /** Keys that exist at that revision. */
  readonly keys: number;
  /** Bytes of the database. */
  readonly sizeBytes: number;
  /** The version of etcd that wrote it; empty below 3.6. */
  readonly version: string;
}

/**
 * Reads a snapshot file, or a database file, from end to end; holds the names of its keys in
 * memory. @throws BoltDamageError, EtcdFileError, DiskError
 */
export function etcdFileStatus(disk: Disk, path: string): EtcdFileStatus {
  const file = BoltFile.open(disk, path);
  try {
    const version = metaOfFile(file).get("storageVersion");
    const existing = new Set<string>();
    let revision = 0;
    let hash = 0;
    for (const name of file.bucketNames) {
      hash = crc32c(hash, fromUtf8(name));
      for (const slice of file.records(name)) {
        for (const [key, value] of slice) {
          hash = crc32c(crc32c(hash, key), value);
          if (name !== "key") continue;
          const at = decodeRevision(key);
          if (at === undefined)
            throw new EtcdFileError(
              path,
              `bucket key, key ${toHex(key)}: the key is not a revision`,
            );
          revision = at.main;
          const changed = keyOf(path, key, value);
          if (at.tombstone) existing.delete(changed);
          else existing.add(changed);
        }
      }
    }
    return {
      hash,
      revision,
      keys: existing.size,
      sizeBytes: file.sizeBytes,
      version: version === undefined ? "" : toUtf8(version),
    };
  } finally {
    file.close();
  }
}

/**
 * The newest revision of a file, without reading all of it. @throws BoltDamageError, EtcdFileError,
 * DiskError
 */
export function etcdFileRevision(disk: Disk, path: string): number {
  const file = BoltFile.open(disk, path);
  try {
    const scheduled = metaOfFile(file).get("scheduledCompactRev");
    const last = file.lastKey("key");
    const revisions = [last, scheduled].map(
      (key) => (key === undefined ? undefined : decodeRevision(key))?.main ?? 1,
    );
    return Math.max(...revisions);
  } finally {
    file.close();
  }
}

/** What a database says of the cluster whose member it is of. */
export interface EtcdFileCluster {
  readonly position: Position;
  /** The version to which the cluster is being downgraded; undefined if it is not. */
  readonly downgrade: string | undefined;
  /**
   * The members in the bucket of that name. A database of etcd 3.5 may have some that the cluster
   * removed long ago: its members read their list from their v2 store.
   */
  readonly members: readonly Member[];
}

/**
 * Reads that without reading all of the file. @throws BoltDamageError, EtcdFileError (also for a
 * file of etcd 3.4 or before), DiskError
 */
export function etcdFileCluster(disk: Disk, path: string): EtcdFileCluster {
  const file = BoltFile.open(disk, path);
  try {
    const position = positionOfFile(path, metaOfFile(file));
    let downgrade: string | undefined;
    for (const slice of file.records("cluster")) {
      for (const [key, value] of slice) {
        if (toLatin1(key) !== "downgrade") continue;
        const info = downgradeInfo(path, toUtf8(value));
        if (info["enabled"] === true) downgrade = String(info["target-version"]);
      }
    }
    return { position, downgrade, members: storedMembers(path, file) };
  } finally {
    file.close();
  }
}

function storedMembers(path: string, file: BoltFile): Member[] {
  const texts: string[] = [];
  for (const slice of file.records("members"))
    for (const [, value] of slice) texts.push(toUtf8(value));
  try {
    return decodeMembers(fromUtf8(`[${texts.join(",")}]`));
  } catch (error) {
    throw new EtcdFileError(path, `bucket members: ${(error as Error).message}`);
  }
}

function downgradeInfo(path: string, text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch (error) {
    throw new EtcdFileError(path, `bucket cluster, key downgrade: ${(error as Error).message}`);
  }
}

function keyOf(path: string, at: Uint8Array, value: Uint8Array): string {
  try {
    return toLatin1(KeyValue.decode(value).key);
  } catch (error) {
    if (error instanceof WireError)
      throw new EtcdFileError(
        path,
        `bucket key, key ${toHex(at)}: the record does not decode: ${error.message}`,
      );
    throw error;
  }
}
