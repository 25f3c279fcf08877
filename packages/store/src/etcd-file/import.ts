/**
 * Creates a member's store from etcd's database file: its keys with their history, leases, users,
 * roles and alarms; with a new membership and a position in a new log, or with the file's own.
 */
import { BoltFile } from "@quorate/bolt";
import type { Disk, Keyspace, KeyspaceOpener, KeyspaceWrite } from "@quorate/host";
import {
  concat,
  idToHex,
  KeyValue,
  leasepb,
  type MessageType,
  type raftpb,
  readU64BE,
  toHex,
  toLatin1,
  WireError,
} from "@quorate/proto";
import { Backend, Bucket } from "../backend/backend.ts";
import { currentDirectory } from "../backend/directories.ts";
import { type Position, writeFollowsEtcd, writePosition } from "../backend/meta.ts";
import { decodeRevision, encodeRevision } from "../backend/revision.ts";
import { leaseKey } from "../lease/lessor.ts";
import type { Member } from "../membership/member.ts";
import { putMember } from "../membership/membership.ts";
import { FINISHED_COMPACT, SCHEDULED_COMPACT } from "../mvcc/state.ts";
import { addLaterUsers, disableAuth, type LaterUsers } from "./later-users.ts";
import {
  CARRIED_BUCKETS,
  CLUSTER_BUCKETS,
  EtcdFileError,
  FILE_BUCKETS,
  type FileBucket,
  metaOfFile,
  positionOfFile,
} from "./schema.ts";

/** Records are written in batches of about this size. */
const BATCH_BYTES = 4 * 1024 * 1024;
/** Bytes of a record besides its key and value, for measuring progress. */
const RECORD_OVERHEAD_BYTES = 16;

/** A new cluster for which a store is created. */
export interface NewCluster {
  readonly members: readonly Member[];
  /** Where the new log begins. */
  readonly position: Position;
}

/** A change that follows those in the file, in the store's form. */
export interface LaterChange {
  readonly main: number;
  readonly sub: number;
  readonly deleted: boolean;
  /** The encoded mvccpb.KeyValue. */
  readonly record: Uint8Array;
}

/** The history after the file was taken. */
export interface LaterHistory {
  /** The changes in order, in slices. */
  changes(): Iterable<readonly LaterChange[]>;
  /**
   * Called after all changes.
   * @param inFile the leases in the file, with their times to live in seconds
   * @param inUse the leases that keys are attached to, which must be in the result
   * @returns the leases after the changes, with their times to live in seconds
   */
  leases(
    inFile: ReadonlyMap<bigint, number>,
    inUse: ReadonlySet<bigint>,
  ): ReadonlyMap<bigint, number>;
  /** Called after all changes: users and roles, where they are known. */
  users?(): LaterUsers | undefined;
  /** Called with the users that have no password that fits. */
  withoutPassword?(users: readonly string[]): void;
}

export interface ImportOptions {
  /**
   * Added to the newest revision, and all before it declared compacted, so that no client sees a
   * revision twice; 0: neither.
   */
  readonly bumpRevision?: number | undefined;
  /** Users and roles are kept, and not enforced. */
  readonly disablesAuth?: boolean | undefined;
  /** Called with the bytes processed so far, and those of the whole file. */
  readonly onProgress?: ((bytes: number, totalBytes: number) => void) | undefined;
  readonly later?: LaterHistory | undefined;
}

/** Writes records in synced batches. */
class Batches {
  readonly #keyspace: Keyspace;
  #batch: KeyspaceWrite[] = [];
  #bytes = 0;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
  }

  async put(bucket: Bucket, key: Uint8Array, value: Uint8Array | undefined): Promise<void> {
    this.#batch.push({ key: concat([new Uint8Array([bucket]), key]), value });
    this.#bytes += key.length + (value?.length ?? 0);
    if (this.#bytes >= BATCH_BYTES) await this.end();
  }

  async end(): Promise<void> {
    if (this.#batch.length > 0) await this.#keyspace.write(this.#batch);
    this.#batch = [];
    this.#bytes = 0;
  }
}

/**
 * Creates the store in the directory `storeDir`, which must not contain one. It is durable when the
 * promise resolves; a failure leaves nothing there.
 * @param cluster "same": the file's own members, and its place in their log; the store follows
 * etcd's rules then, unless its member is the only one
 * @throws BoltDamageError, EtcdFileError, DiskError
 */
export async function importEtcdFile(
  deps: { readonly disk: Disk; readonly keyspaces: KeyspaceOpener },
  path: string,
  storeDir: string,
  cluster: NewCluster | "same",
  options: ImportOptions = {},
): Promise<void> {
  const directory = currentDirectory(storeDir);
  if (deps.disk.stat(directory) !== undefined) throw new Error(`${directory} exists already`);
  const file = BoltFile.open(deps.disk, path);
  try {
    const meta = metaOfFile(file);
    const marks = marksOf(path, meta);
    const { members, position }: NewCluster =
      cluster === "same" ? { members: [], position: positionOfFile(path, meta) } : cluster;
    if (cluster === "same") checkMembers(file, position.confState);
    const keyspace = await deps.keyspaces.open(directory, { create: true });
    try {
      const inFile = await copyBuckets(
        file,
        keyspace,
        cluster === "same" ? [...CLUSTER_BUCKETS, ...CARRIED_BUCKETS] : CARRIED_BUCKETS,
        marks.scheduled,
        options.onProgress ?? (() => {}),
      );
      const newest =
        options.later === undefined
          ? inFile
          : await addLater(keyspace, options.later, inFile, path);
      if (options.disablesAuth === true) await disableAuth(keyspace);
      const bump = options.bumpRevision ?? 0;
      await finish(
        keyspace,
        { members, position },
        bump > 0 ? { ...marks, scheduled: Math.max(newest, marks.scheduled) + bump } : marks,
        cluster === "same" && !isAlone(position.confState),
      );
    } finally {
      await keyspace.close();
    }
    deps.disk.syncDir(directory);
    deps.disk.syncDir(storeDir);
  } catch (error) {
    deps.disk.remove(directory);
    throw error;
  } finally {
    file.close();
  }
}

/**
 * Writes the state in a database file of a member of etcd into an empty keyspace, with the
 * membership of its cluster; all is durable when it resolves.
 * @param position where the file stands in the log
 * @throws BoltDamageError; EtcdFileError, also for a file of another position or membership
 */
export async function copyMemberFile(
  file: BoltFile,
  keyspace: Keyspace,
  position: Position,
): Promise<void> {
  const meta = metaOfFile(file);
  const record = meta.get("consistent_index");
  const index = record?.length === 8 ? readU64BE(record) : 0;
  // Entries without an effect on it may follow, and not be noted in the file.
  if (index > position.index)
    throw new EtcdFileError(
      file.path,
      `it holds the state at index ${index}, announced was ${position.index}`,
    );
  checkMembers(file, position.confState);
  const marks = marksOf(file.path, meta);
  const names = [...CLUSTER_BUCKETS, ...CARRIED_BUCKETS];
  await copyBuckets(file, keyspace, names, marks.scheduled, () => {});
  await finish(keyspace, { members: [], position }, marks, true);
}

const isAlone = ({ voters, votersOutgoing, learners }: raftpb.ConfState): boolean =>
  voters.length + votersOutgoing.length + learners.length === 1;

/** A file's members are those of the configuration. */
function checkMembers(
  file: BoltFile,
  { voters, votersOutgoing, learners }: raftpb.ConfState,
): void {
  const configured = new Set([...voters, ...votersOutgoing, ...learners].map(idToHex));
  for (const slice of file.records("members")) {
    for (const [key] of slice) {
      const id = toLatin1(key);
      if (configured.delete(id)) continue;
      throw new EtcdFileError(
        file.path,
        `the member ${id} is in the database and not in the cluster's configuration ` +
          "(etcd-io/etcd issue 19557): remove and add it again",
      );
    }
  }
  const [missing] = configured;
  if (missing !== undefined)
    throw new EtcdFileError(file.path, `the member ${missing} is missing in the database`);
}

interface Marks {
  /** 0: never. */
  readonly scheduled: number;
  readonly finished: number;
}

function marksOf(path: string, meta: ReadonlyMap<string, Uint8Array>): Marks {
  const mark = (name: Uint8Array): number => {
    const text = String.fromCharCode(...name);
    const bytes = meta.get(text);
    if (bytes === undefined) return 0;
    const revision = decodeRevision(bytes);
    if (revision === undefined)
      throw new EtcdFileError(path, `bucket meta, key ${text}: ${toHex(bytes)} is not a revision`);
    return revision.main;
  };
  return { scheduled: mark(SCHEDULED_COMPACT), finished: mark(FINISHED_COMPACT) };
}

/** Returns the newest revision. */
async function copyBuckets(
  file: BoltFile,
  keyspace: Keyspace,
  names: readonly FileBucket[],
  scheduled: number,
  onProgress: (bytes: number, totalBytes: number) => void,
): Promise<number> {
  const batches = new Batches(keyspace);
  let newest = 1;
  let bytes = 0;
  for (const name of names) {
    for (const slice of file.records(name)) {
      for (const [key, value] of slice) {
        bytes += key.length + value.length + RECORD_OVERHEAD_BYTES;
        if (name === "key") {
          const revision = decodeRevision(key);
          if (revision === undefined)
            throw new EtcdFileError(
              file.path,
              `bucket key, key ${toHex(key)}: the key is not a revision`,
            );
          newest = revision.main;
          // etcdutl's --bump-revision leaves this record to raise the newest revision; here the
          // compact revision does that.
          if (value.length === 0 && revision.main <= scheduled) continue;
        }
        await batches.put(FILE_BUCKETS[name], key, value);
      }
      onProgress(Math.min(bytes, file.sizeBytes), file.sizeBytes);
    }
  }
  await batches.end();
  onProgress(file.sizeBytes, file.sizeBytes);
  return newest;
}

/** Adds the history after the file at `path` was taken; returns the newest revision. */
async function addLater(
  keyspace: Keyspace,
  later: LaterHistory,
  newestInFile: number,
  path: string,
): Promise<number> {
  const batches = new Batches(keyspace);
  let newest = newestInFile;
  for (const slice of later.changes()) {
    for (const { main, sub, deleted, record } of slice) {
      newest = main;
      await batches.put(Bucket.key, encodeRevision(main, sub, deleted), record);
    }
  }
  await batches.end();
  const inFile = await leasesIn(keyspace, path);
  const leases = later.leases(inFile, await leasesInUse(keyspace, path));
  for (const id of inFile.keys())
    if (!leases.has(id)) await batches.put(Bucket.lease, leaseKey(id), undefined);
  for (const [id, ttlSeconds] of leases) {
    if (inFile.get(id) === ttlSeconds) continue;
    await batches.put(
      Bucket.lease,
      leaseKey(id),
      leasepb.Lease.encode({ ID: id, TTL: ttlSeconds, RemainingTTL: 0 }),
    );
  }
  const users = later.users?.();
  const put = batches.put.bind(batches);
  const strange = users === undefined ? undefined : await addLaterUsers(keyspace, users, put);
  await batches.end();
  if (strange !== undefined) later.withoutPassword?.(strange);
  return newest;
}

/** A record of the file. @throws EtcdFileError */
function decodeOf<T>(
  path: string,
  bucket: string,
  type: MessageType<T>,
  [key, value]: readonly [Uint8Array, Uint8Array],
): T {
  try {
    return type.decode(value);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    const name = toHex(key.subarray(1));
    throw new EtcdFileError(path, `bucket ${bucket}, key ${name}: ${error.message}`);
  }
}

async function leasesIn(keyspace: Keyspace, path: string): Promise<Map<bigint, number>> {
  const leases = new Map<bigint, number>();
  for await (const slice of keyspace.scan({
    from: new Uint8Array([Bucket.lease]),
    to: new Uint8Array([Bucket.lease + 1]),
  })) {
    for (const record of slice) {
      const { ID, TTL } = decodeOf(path, "lease", leasepb.Lease, record);
      leases.set(ID, TTL);
    }
  }
  return leases;
}

/** The leases that the last values of keys are attached to. */
async function leasesInUse(keyspace: Keyspace, path: string): Promise<Set<bigint>> {
  const leaseOf = new Map<string, bigint>();
  for await (const slice of keyspace.scan({
    from: new Uint8Array([Bucket.key]),
    to: new Uint8Array([Bucket.key + 1]),
  })) {
    for (const record of slice) {
      const { key, lease } = decodeOf(path, "key", KeyValue, record);
      if (lease !== 0n) leaseOf.set(toLatin1(key), lease);
      else if (leaseOf.size > 0) leaseOf.delete(toLatin1(key));
    }
  }
  return new Set(leaseOf.values());
}

/**
 * The records that complete the store: written last, in one batch.
 * @param followsEtcd whether the members of etcd's cluster may go on beside it
 */
async function finish(
  keyspace: Keyspace,
  cluster: NewCluster,
  marks: Marks,
  followsEtcd: boolean,
): Promise<void> {
  const backend = new Backend(keyspace);
  if (followsEtcd) writeFollowsEtcd(backend);
  if (marks.scheduled > 0)
    backend.put(Bucket.meta, SCHEDULED_COMPACT, encodeRevision(marks.scheduled, 0, false));
  if (marks.finished > 0)
    backend.put(Bucket.meta, FINISHED_COMPACT, encodeRevision(marks.finished, 0, false));
  for (const member of cluster.members) putMember(backend, member);
  writePosition(backend, cluster.position);
  await backend.flush();
}
