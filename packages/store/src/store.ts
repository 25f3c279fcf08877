/**
 * The replicated state of one member: keys with their history, leases, alarms, and the membership.
 * It changes only by applied entries, and never reads a clock, a random number or the network.
 *
 *     const store = await Store.open(keyspaces, dir, options);
 *     const applied = store.apply(entry);      // in index order, without a gap
 *     store.range(request);                    // reads the applied state
 *     await store.flush();                     // everything applied so far is durable
 *     await store.close({ flush: true });
 */
import type { Disk, KeyspaceOpener } from "@quorate/host";
import type { raftpb } from "@quorate/proto";
import { ALL_AWAITED, type AppliedEntry, applyRequest, type Callers, isSteps } from "./apply.ts";
import { AuthState } from "./auth/auth-state.ts";
import { Alarms } from "./backend/alarms.ts";
import {
  Backend,
  type BackendSnapshot,
  Bucket,
  bucketRange,
  type LiveSizes,
} from "./backend/backend.ts";
import type { StoreBounds } from "./backend/bounds.ts";
import { currentDirectory } from "./backend/directories.ts";
import { StoreDamageError } from "./backend/errors.ts";
import { assert, violated } from "./backend/invariants.ts";
import {
  LiveBytes,
  type Position,
  readFollowsEtcd,
  readPosition,
  readStorageVersion,
  STORAGE_VERSION,
  writeFollowsEtcd,
  writePosition,
  writeStorageVersion,
} from "./backend/meta.ts";
import { runSteps, type Steps } from "./backend/steps.ts";
import { type EtcdSnapshot, exportEtcdFile, type Sha256 } from "./etcd-file/export.ts";
import { encodeV2Members } from "./etcd-file/v2-members.ts";
import { Lessor } from "./lease/lessor.ts";
import { type OpenFiles, openTables } from "./level-files/records.ts";
import { Membership, membershipIn } from "./membership/membership.ts";
import { Mvcc } from "./mvcc/index.ts";
import type { ApplyState } from "./requests/request-record.ts";
import { encodeSnapshot } from "./snapshot-stream.ts";

export interface StoreOptions {
  /** Called with the number of records read while the index is rebuilt at open. */
  readonly onProgress?: ((records: number) => void) | undefined;
  /**
   * Maximum keys in one step of applying an entry; STEP_KEYS by default. Smaller in tests and
   * simulations that need many steps.
   */
  readonly stepKeys?: number | undefined;
  /** Changes of one batch to the backend; MAX_PENDING_OPS by default. At least 1. */
  readonly batchOps?: number | undefined;
  /** How much is done at a time; STORE_BOUNDS by default. */
  readonly bounds?: StoreBounds | undefined;
  /**
   * Where the store's files are, if they are LevelDB's: the index is rebuilt from them, which takes
   * a third of the time. Their checksums must have been compared before.
   */
  readonly disk?: Disk | undefined;
  /** A new store follows etcd's rules: its cluster has members of etcd. */
  readonly followsEtcd?: boolean | undefined;
  /**
   * The least time to live of a lease where etcd's rules hold: there each member raises it when it
   * applies the grant. 0 by default.
   */
  readonly minLeaseTtlSeconds?: number | undefined;
  /** Computes SHA-256 for snapshot files; by default in JavaScript, at a tenth of the speed. */
  readonly sha256?: (() => Sha256) | undefined;
}

/** The whole state at one position, to be streamed. It must be closed. */
export interface StoreSnapshot {
  readonly position: Position;
  /** Estimated length of the stream. */
  readonly sizeEstimateBytes: number;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** The same as a database file for a member of etcd; to be called once. */
  etcdFile(): Promise<EtcdMemberFile>;
  close(): Promise<void>;
}

/** What a member of etcd takes over from another. */
export interface EtcdMemberFile {
  /** The data of the snapshot's message: the membership, which etcd before 3.7 takes from there. */
  readonly data: Uint8Array;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Etcd notes the version of its database from this version of the cluster on. */
const FIRST_STORAGE_VERSION = [3, 6] as const;

async function memberFile(
  snapshot: BackendSnapshot,
  confState: raftpb.ConfState,
  path: string,
): Promise<EtcdMemberFile> {
  const membership = await membershipIn(snapshot, path);
  const [major = 0, minor = 0] = (membership.clusterVersion ?? "").split(".").map(Number);
  const [firstMajor, firstMinor] = FIRST_STORAGE_VERSION;
  const isNoted = major > firstMajor || (major === firstMajor && minor >= firstMinor);
  const file = await exportEtcdFile(snapshot, confState, {
    storageVersion: isNoted ? membership.clusterVersion : undefined,
    isOfCluster: true,
    hasChecksum: false,
    isWanted: () => true,
  });
  return { data: encodeV2Members(membership), chunks: file.chunks() };
}

/** The parts of a store, read from one backend. */
interface StoreParts {
  readonly lessor: Lessor;
  readonly mvcc: Mvcc;
  readonly membership: Membership;
  readonly alarms: Alarms;
  readonly auth: AuthState;
  readonly liveBytes: LiveBytes;
}

export class Store {
  readonly mvcc: Mvcc;
  readonly membership: Membership;
  readonly lessor: Lessor;
  readonly alarms: Alarms;
  /** Users and roles. */
  readonly auth: AuthState;
  readonly #liveBytes: LiveBytes;
  readonly #backend: Backend;
  readonly #path: string;
  readonly #options: StoreOptions;
  #position: Position;
  /** The index in the last batch that is being written or on disk, and the configuration. */
  #writtenIndex: number;
  #writtenConf: raftpb.ConfState | undefined;
  /**
   * The store's revision before the entry that is being applied in steps; undefined if there is
   * none.
   */
  #revisionBefore: number | undefined;

  /** What the entry that is being applied changes, and its index. */
  readonly #applied: ApplyState & { index: number };

  private constructor(
    backend: Backend,
    path: string,
    parts: StoreParts,
    position: Position,
    options: StoreOptions,
  ) {
    this.#backend = backend;
    this.#options = options;
    this.#path = path;
    this.lessor = parts.lessor;
    this.mvcc = parts.mvcc;
    this.membership = parts.membership;
    this.alarms = parts.alarms;
    this.auth = parts.auth;
    this.#liveBytes = parts.liveBytes;
    const { mvcc, membership, lessor: leases, alarms, auth } = parts;
    this.#applied = { mvcc, membership, leases, alarms, auth, index: position.index };
    this.#position = position;
    this.#writtenIndex = position.index;
    backend.liveSizes = () => this.writtenSizes;
    backend.beforeFlush = () => {
      const before = this.#revisionBefore;
      assert(before === undefined || before === this.mvcc.currentRevision, "STORE-10");
      // Compaction drops records without an entry: its batches change only the sum.
      if (backend.pendingOps > 0 || this.#writtenIndex !== this.#position.index)
        this.#liveBytes.write(backend, this.#position.index);
      if (this.#writtenIndex === this.#position.index) return;
      this.#writtenIndex = this.#position.index;
      writePosition(backend, this.#position, this.#writtenConf);
      this.#writtenConf = this.#position.confState;
    };
  }

  /** Opens the store in `dir`, or creates an empty one. Throws StoreDamageError and DiskError. */
  static async open(
    keyspaces: KeyspaceOpener,
    dir: string,
    options: StoreOptions = {},
  ): Promise<Store> {
    const path = currentDirectory(dir);
    const backend = new Backend(
      await keyspaces.open(path, { create: true }),
      options.batchOps,
      options.bounds?.pendingBytes,
    );
    try {
      const meta = (key: Uint8Array) => backend.get(Bucket.meta, key);
      const version = readStorageVersion(meta, path);
      const position = readPosition(meta, path);
      const followsEtcd =
        readFollowsEtcd(meta) || (position.index === 0 && options.followsEtcd === true);
      if (followsEtcd && !readFollowsEtcd(meta)) {
        writeFollowsEtcd(backend);
        await backend.flush();
      }
      const snapshot = await backend.snapshot();
      const liveBytes = new LiveBytes();
      const lessor = await Lessor.open(backend, snapshot, path, liveBytes, options.stepKeys);
      if (followsEtcd) lessor.minTtlSeconds = options.minLeaseTtlSeconds ?? 0;
      const mvcc = await Mvcc.open(
        backend,
        path,
        options.onProgress,
        lessor,
        liveBytes,
        options,
        filesOf(options.disk, path),
      );
      const membership = await Membership.open(backend, snapshot, path);
      membership.check(position.confState, path);
      const alarms = await Alarms.open(backend, snapshot, path);
      const auth = await AuthState.open(
        backend,
        snapshot,
        path,
        options.bounds?.stepUsers,
        followsEtcd,
      );
      await snapshot.close();
      // Every batch with data carries the position. Without it, the log would be applied to that
      // data twice.
      if (position.index === 0 && (mvcc.currentRevision > 1 || membership.members().length > 0)) {
        throw new StoreDamageError(
          path,
          "bucket meta",
          "the position in the log is missing beside data",
        );
      }
      liveBytes.check(backend, position.index, path);
      if (version < STORAGE_VERSION) writeStorageVersion(backend);
      return new Store(
        backend,
        path,
        { lessor, mvcc, membership, alarms, auth, liveBytes },
        position,
        options,
      );
    } catch (error) {
      await backend.close({ flush: false });
      throw error;
    }
  }

  /**
   * Whether entries are applied by etcd's rules where Quorate has others: the state comes from a
   * cluster with members of etcd.
   */
  get followsEtcd(): boolean {
    return this.auth.followsEtcd;
  }

  /** The position of the state: everything up to this index is applied. */
  get position(): Position {
    return this.#position;
  }

  /**
   * Applies a normal entry without a pause: the one after the position.
   * @param callers where none waits for the request, data that only the response needs (ranges,
   * previous values) is not read; the resulting state is the same
   */
  apply(entry: raftpb.Entry, callers?: Callers): AppliedEntry {
    const outcome = this.begin(entry, callers);
    return isSteps(outcome) ? runSteps(outcome) : outcome;
  }

  /**
   * Begins to apply a normal entry, the one after the position. Returns the result, or, for long
   * ones, the steps that apply it. Between two steps the store can be read, flushed, compacted and
   * streamed, all in the state before the entry; no other entry may be applied before the last
   * step. Abandoned steps leave the store unusable: it must be closed. @param callers as for `apply`
   */
  begin(entry: raftpb.Entry, callers: Callers = ALL_AWAITED): AppliedEntry | Steps<AppliedEntry> {
    this.#checkNext(entry);
    const state = this.#applied;
    state.index = entry.index;
    const outcome = applyRequest({ state, callers }, entry.data);
    if (isSteps(outcome)) return this.#finish(entry, outcome);
    this.#position = { index: entry.index, term: entry.term, confState: this.#position.confState };
    return outcome;
  }

  *#finish(entry: raftpb.Entry, steps: Steps<AppliedEntry>): Steps<AppliedEntry> {
    this.#revisionBefore = this.mvcc.currentRevision;
    const applied = yield* steps;
    this.#revisionBefore = undefined;
    this.#position = { index: entry.index, term: entry.term, confState: this.#position.confState };
    return applied;
  }

  /**
   * Applies a configuration change entry. @param confState the configuration after it @param change
   * the change to the membership, undefined for none
   */
  applyConfChange(
    entry: raftpb.Entry,
    change: raftpb.ConfChange | undefined,
    confState: raftpb.ConfState,
  ): void {
    this.#checkNext(entry);
    if (change !== undefined) this.membership.carryOut(change);
    this.#position = { index: entry.index, term: entry.term, confState };
  }

  #checkNext(entry: raftpb.Entry): void {
    const { index } = entry;
    if (this.#revisionBefore !== undefined)
      violated("STORE-9", `entry ${index} is applied while the one before it is not finished`);
    if (index !== this.#position.index + 1) {
      const where = `${this.#position.index} in the store ${this.#path}`;
      violated("STORE-3", `entry ${index} follows ${where}`);
    }
  }

  /** Changes that wait for the next batch. */
  get pendingOps(): number {
    return this.#backend.pendingOps;
  }

  /** True when a flush has changes to write, or a failure to report that another flush met. */
  get needsFlush(): boolean {
    return this.#backend.pendingOps > 0 || this.#backend.hasFailed;
  }

  /** True when a batch should be written now, because it has reached its bound. */
  get isFlushDue(): boolean {
    return this.#backend.isDue;
  }

  /** True when work that can wait, such as compaction, should leave the batches to requests. */
  get isBusy(): boolean {
    return this.#backend.isBusy;
  }

  /** True when nothing more should be applied before a flush has ended. */
  get isFull(): boolean {
    return this.#backend.isFull;
  }

  /** Makes everything applied so far durable; returns its index. A failure is permanent. */
  async flush(): Promise<number> {
    const { index } = this.#position;
    await this.#backend.flush();
    return index;
  }

  /** A view of the whole state, for another member. Entries may be applied while it is streamed. */
  async snapshot(): Promise<StoreSnapshot> {
    const snapshot = await this.#backend.snapshot();
    const position = await this.#positionIn(snapshot);
    return {
      position,
      sizeEstimateBytes: this.sizeOnDiskBytes,
      chunks: encodeSnapshot(snapshot.scanAll()),
      etcdFile: () => memberFile(snapshot, position.confState, this.#path),
      close: () => snapshot.close(),
    };
  }

  /**
   * The whole state as etcd's snapshot file. Entries may be applied while it is measured and sent.
   * @param storageVersion the version written into the file
   * @param isWanted called while it is measured; false ends that with a SnapshotAbandonedError
   */
  async etcdSnapshot(
    storageVersion: string,
    isWanted: () => boolean = () => true,
  ): Promise<EtcdSnapshot> {
    const { disk, sha256 } = this.#options;
    const snapshot = await this.#backend.snapshot(filesOf(disk, this.#path));
    try {
      const { confState } = await this.#positionIn(snapshot);
      const options = { storageVersion, isWanted, sha256 };
      return await exportEtcdFile(snapshot, confState, options);
    } catch (error) {
      await snapshot.close();
      throw error;
    }
  }

  async #positionIn(snapshot: BackendSnapshot): Promise<Position> {
    const records = new Map<string, Uint8Array>();
    for await (const slice of snapshot.scan(Bucket.meta)) {
      for (const [key, value] of slice) records.set(String.fromCharCode(...key), value);
    }
    return readPosition((key) => records.get(String.fromCharCode(...key)), this.#path);
  }

  /** Bytes of the store's files. */
  get sizeOnDiskBytes(): number {
    return this.#backend.sizeOnDiskBytes();
  }

  /**
   * The size that members report, as clients and alerts of etcd's compare it with the quota: the
   * files', which compression keeps small, or what the quota counts if that is more.
   */
  get sizeBytes(): number {
    return Math.max(this.sizeOnDiskBytes, this.quotaBytes);
  }

  /** Bytes of the records of keys, history included, and leases. */
  get liveBytes(): number {
    return this.#liveBytes.bytes;
  }

  /** The records of keys, history included, and leases in the last batch. */
  get writtenSizes(): LiveSizes {
    return this.#liveBytes.written;
  }

  /**
   * The size that the quota limits: the records, and the keys once more, because the index has them
   * in memory.
   */
  get quotaBytes(): number {
    return this.#liveBytes.bytes + this.mvcc.keyBytes;
  }

  /**
   * Rewrites the files to reclaim the space of removed records; resolves when that is done. Other
   * work continues meanwhile.
   */
  reclaim(): Promise<void> {
    return this.#backend.compactAll();
  }

  close(options: { flush: boolean }): Promise<void> {
    return this.#backend.close(options);
  }
}

/** What opens the files of the bucket key, where the store's disk can be read. */
function filesOf(disk: Disk | undefined, path: string): OpenFiles | undefined {
  return disk && (() => openTables(disk, path, bucketRange(Bucket.key)));
}
