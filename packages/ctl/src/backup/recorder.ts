/**
 * A run of "quoratectl backup run": takes a base snapshot where one is needed, follows the cluster's changes into segment files, and goes
 * on where the run before it ended.
 *
 *     start     read the backup; the same cluster? the same history? -> go on behind the last revision
 *               nothing yet, or history compacted meanwhile          -> a base first, and if there was a backup, a gap that is told
 *     follow    watch -> append -> sync at most a second later; a broken watch is opened again at the next member
 *     beside    leases, hashes, lag, a new segment when one is full, a new base each interval, and then what is too old goes
 */
import { renameSync } from "node:fs";
import {
  applyLeases,
  type BackupRecord,
  baseName,
  type FollowState,
  followState,
  leasesOfBase,
  MAX_LEASES_PER_RECORD,
  prunable,
  type RevisionChange,
  readCatalog,
  SegmentWriter,
} from "@quorate/backup";
import type { Client } from "@quorate/client";
import type { DiskLock } from "@quorate/host";
import { nodeDisk } from "@quorate/host/node";
import { idToHex } from "@quorate/proto";
import { etcdFileRevision } from "@quorate/store";
import { saveSnapshot } from "../commands/snapshot.ts";
import { Exit, ExitCode, type Io } from "../io.ts";
import { ClusterView, type Standing } from "./cluster-view.ts";
import { CompactedAwayError, type FollowedRevision, Follower } from "./follower.ts";

export interface RecorderOptions {
  readonly dir: string;
  /** How long everything stays possible to rebuild; 0: for ever. */
  readonly retainMs: number;
  /** How often a new base is taken; 0: never. */
  readonly intervalMs: number;
  readonly hashIntervalMs: number;
  /** End when all is recorded that had happened at the start. */
  readonly once: boolean;
}

/** How often what is due is looked at; nothing is synced later than this and one sync. */
const TICK_MS = 500;
const LEASE_INTERVAL_MS = 5000;
const PROGRESS_INTERVAL_MS = 60_000;
/** A watch that is behind for so long is opened at another member. */
const MAX_BEHIND_MS = 10_000;
const LAG_INTERVAL_MS = 3000;
/** A base that could not be taken is tried again after this. */
const RETRY_BASE_MS = 60_000;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;
/** A base whose history is compacted before it is followed is taken again, so often. */
const MAX_BASES_IN_A_ROW = 5;

/** Errors of a client that another try cannot mend. */
const FINAL_ERRORS = new Set(["PermissionDenied", "UserEmpty", "AuthFailed", "InvalidAuthToken"]);

export class Recorder {
  readonly #client: Client;
  readonly #view: ClusterView;
  readonly #options: RecorderOptions;
  readonly #io: Io;
  readonly #stop: AbortSignal;
  #segment: SegmentWriter | undefined;
  #clusterId = 0n;
  /** The last revision that was recorded, and when. */
  #last = 0;
  #leases = new Map<bigint, number>();
  #follower: Follower | undefined;
  #syncing: Promise<void> = Promise.resolve();
  #baseTimeMs = 0;
  #behindSinceMs: number | undefined;
  readonly #dueMs = { leases: 0, progress: 0, hash: 0, lag: 0, base: 0 };
  #hashedRevision = 0;
  #failure: unknown;
  #lastChanges: readonly RevisionChange[] | undefined;

  constructor(client: Client, options: RecorderOptions, io: Io, stop: AbortSignal) {
    this.#client = client;
    this.#view = new ClusterView(client);
    this.#options = options;
    this.#io = io;
    this.#stop = stop;
  }

  /** Runs until it is stopped, or with `once` until it is through. Rejects with Exit, ClientError, DiskError, BackupError. */
  async run(): Promise<void> {
    const { dir, once } = this.#options;
    nodeDisk.makeDir(dir);
    const lock: DiskLock = nodeDisk.lock(`${dir}/lock`);
    try {
      const target = await this.#begin();
      await this.#followAlong(once ? target : Number.POSITIVE_INFINITY);
      // The last look, where the cluster still answers.
      await this.#lookAtLeases()
        .then(() => this.#recordHash())
        .catch((error: unknown) => this.#passOver(error));
    } finally {
      await this.#syncing.catch(() => {});
      await this.#segment?.sync().catch((error: unknown) => {
        this.#failure ??= error;
      });
      this.#segment?.close();
      lock.release();
    }
    if (this.#failure !== undefined) throw this.#failure;
    this.#say(`stopped at revision ${this.#last}`);
  }

  #say(text: string): void {
    this.#io.stdout(`${new Date().toISOString()} ${text}\n`);
  }

  /** Finds out where to go on; gives the cluster's revision. */
  async #begin(): Promise<number> {
    const { dir } = this.#options;
    const standing = await this.#view.standing();
    const { clusterId, revision } = standing;
    this.#clusterId = clusterId;
    const catalog = readCatalog(nodeDisk, dir);
    const state = followState(nodeDisk, catalog);
    this.#baseTimeMs = catalog.bases.at(-1)?.timeMs ?? 0;
    if (state === undefined) {
      if (catalog.bases.length > 0) this.#say("there are base snapshots and no segments: a new base is taken");
      await this.#beginChain();
      return revision;
    }
    this.#leases = new Map(state.leases);
    if (await this.#goesOn(state, standing)) {
      this.#last = state.revision;
      this.#beginSegment();
      this.#say(`going on behind revision ${this.#last} of cluster ${idToHex(clusterId)}, which is at ${revision}`);
    } else await this.#gap(state.revision);
    return revision;
  }

  /** Whether the cluster's history is the recorded one and still reaches back to it. Throws Exit where it is another one. */
  async #goesOn(state: FollowState, { clusterId, revision }: Standing): Promise<boolean> {
    const { dir } = this.#options;
    const refuse = (what: string): never => {
      throw new Exit(ExitCode.error, `${dir}: ${what}; begin a new backup in another folder`);
    };
    if (state.clusterId !== clusterId) {
      refuse(`it is the backup of cluster ${idToHex(state.clusterId)}, and this is cluster ${idToHex(clusterId)}`);
    }
    if (revision < state.revision) {
      refuse(`it has revision ${state.revision}, and the cluster is at ${revision}: the cluster was restored from an earlier state`);
    }
    if (state.changes === undefined) return true;
    const same = await this.#view.hasChanges(state.revision, state.changes);
    if (same === false) {
      refuse(`the cluster's revision ${state.revision} is another one than was recorded: the cluster was restored from an earlier state`);
    }
    return same === true;
  }

  async #gap(last: number): Promise<void> {
    await this.#beginChain();
    this.#say(
      `GAP: what happened behind revision ${last} was compacted before it could be recorded; ` +
        `nothing between ${last} and ${this.#last} can be rebuilt (run the backup more often than the cluster compacts)`,
    );
  }

  /** A base, and a segment behind it. */
  async #beginChain(): Promise<void> {
    const { path, revision } = await this.#takeBase();
    this.#last = revision;
    this.#leases = leasesOfBase(nodeDisk, path);
    this.#beginSegment();
  }

  async #takeBase(): Promise<{ path: string; revision: number }> {
    const { dir } = this.#options;
    const incoming = `${dir}/incoming`;
    const { sizeBytes } = await saveSnapshot(this.#client, incoming, this.#io);
    // What is in it happened before that: names have whole seconds.
    const timeMs = Math.ceil(Date.now() / 1000) * 1000;
    const revision = etcdFileRevision(nodeDisk, incoming);
    const path = `${dir}/${baseName(revision, timeMs)}`;
    renameSync(incoming, path);
    nodeDisk.syncDir(dir);
    this.#baseTimeMs = timeMs;
    this.#say(`base snapshot at revision ${revision} (${sizeBytes} bytes)`);
    return { path, revision };
  }

  #beginSegment(): void {
    const { dir } = this.#options;
    const number = this.#segment?.number ?? readCatalogNumber(dir);
    this.#segment?.close();
    const head = { kind: "head", clusterId: this.#clusterId, revision: this.#last, timeMs: Date.now() } as const;
    this.#segment = SegmentWriter.create(nodeDisk, dir, number + 1, head);
    this.#appendLeases(true, this.#leases);
  }

  #append(record: BackupRecord): void {
    this.#segment!.append(record);
  }

  #appendLeases(all: boolean, leases: ReadonlyMap<bigint, number>): void {
    const entries = [...leases];
    const timeMs = Date.now();
    for (let at = 0; at === 0 || at < entries.length; at += MAX_LEASES_PER_RECORD) {
      this.#append({ kind: "leases", timeMs, all: all && at === 0, leases: new Map(entries.slice(at, at + MAX_LEASES_PER_RECORD)) });
    }
  }

  /** Syncs, one after the other; a failure ends the run. */
  #sync(): Promise<void> {
    this.#syncing = this.#syncing.then(() => this.#segment!.sync());
    return this.#syncing;
  }

  /** Follows until `target` is recorded or the run is stopped. */
  async #followAlong(target: number): Promise<void> {
    const end = (): void => this.#follower?.close();
    this.#stop.addEventListener("abort", end);
    const fail = (error: unknown): void => {
      this.#failure ??= error;
      end();
    };
    const beside = Promise.all([this.#syncAlong().catch(fail), this.#tickAlong().catch(fail)]);
    try {
      let pauseMs = FIRST_PAUSE_MS;
      let bases = 0;
      while (!this.#isOver(target)) {
        const before = this.#last;
        try {
          await this.#followOnce(target);
        } catch (error) {
          if (this.#isOver(target)) break;
          if (error instanceof CompactedAwayError) {
            if (++bases > MAX_BASES_IN_A_ROW)
              throw new Exit(ExitCode.error, `the cluster compacts its history faster than it can be recorded`);
            await this.#gap(this.#last);
            continue;
          }
          if (FINAL_ERRORS.has((error as { code?: string }).code ?? "")) throw error;
          if (!(error instanceof Error) || error instanceof Exit || "path" in error) throw error;
          if (pauseMs === FIRST_PAUSE_MS) this.#io.stderr(`Warning: the watch broke at revision ${this.#last}: ${error.message}\n`);
        }
        if (this.#last > before) {
          pauseMs = FIRST_PAUSE_MS;
          bases = 0;
        }
        if (this.#isOver(target)) break;
        await this.#io.sleep(pauseMs);
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      }
    } finally {
      this.#stop.removeEventListener("abort", end);
      this.#isFollowing = false;
      await beside;
    }
  }

  #isFollowing = true;

  #isOver(target: number): boolean {
    return this.#stop.aborted || this.#failure !== undefined || this.#last >= target;
  }

  async #followOnce(target: number): Promise<void> {
    const follower = await Follower.open(this.#client, this.#last);
    this.#follower = follower;
    this.#behindSinceMs = undefined;
    try {
      // While nobody listened the cluster may have been restored from an earlier state.
      const state = { revision: this.#last, clusterId: this.#clusterId, changes: this.#lastChanges, leases: this.#leases };
      if (this.#lastChanges !== undefined) await this.#goesOn(state, await this.#view.standing());
      if (this.#stop.aborted) return;
      for await (const revisions of follower.revisions()) {
        await this.#learnLeases(revisions);
        const timeMs = Date.now();
        for (const { revision, changes } of revisions) {
          this.#append({ kind: "changes", timeMs, revision, changes });
          this.#last = revision;
          this.#lastChanges = changes;
        }
        this.#dueMs.progress = timeMs + PROGRESS_INTERVAL_MS;
        if (this.#segment!.isFull) {
          await this.#sync();
          this.#beginSegment();
        }
        if (this.#isOver(target)) return;
      }
    } finally {
      this.#follower = undefined;
      follower.close();
    }
  }

  /** Leases are written before the changes that put keys on them. */
  async #learnLeases(revisions: readonly FollowedRevision[]): Promise<void> {
    const unknown = new Set(revisions.flatMap(({ leases }) => leases).filter((id) => !this.#leases.has(id)));
    if (unknown.size === 0) return;
    this.#noteLeases(await this.#view.timesToLive([...unknown]));
  }

  #noteLeases(changed: ReadonlyMap<bigint, number>): void {
    if (changed.size === 0) return;
    applyLeases(this.#leases, { all: false, leases: changed });
    this.#appendLeases(false, changed);
  }

  /** Makes durable what was recorded, until the following is over. */
  async #syncAlong(): Promise<void> {
    while (this.#isFollowing) {
      await this.#io.sleep(TICK_MS);
      await this.#sync();
    }
  }

  /** What is due beside the changes, until the following is over. */
  async #tickAlong(): Promise<void> {
    while (this.#isFollowing && !this.#stop.aborted) {
      await this.#io.sleep(TICK_MS);
      if (!this.#isFollowing) return;
      try {
        await this.#tick(Date.now());
      } catch (error) {
        this.#passOver(error);
      }
    }
  }

  /** A cluster that cannot be asked at the moment is asked again later; what else is wrong ends the run. */
  #passOver(error: unknown): void {
    if (!(error instanceof Error) || error.name !== "ClientError") throw error;
  }

  async #tick(nowMs: number): Promise<void> {
    const { intervalMs, hashIntervalMs, retainMs, dir } = this.#options;
    if (nowMs >= this.#dueMs.lag) {
      this.#dueMs.lag = nowMs + LAG_INTERVAL_MS;
      this.#checkLag((await this.#view.standing()).revision, nowMs);
    }
    if (nowMs >= this.#dueMs.leases) {
      this.#dueMs.leases = nowMs + LEASE_INTERVAL_MS;
      await this.#lookAtLeases();
    }
    if (nowMs >= this.#dueMs.progress && this.#behindSinceMs === undefined) {
      this.#dueMs.progress = nowMs + PROGRESS_INTERVAL_MS;
      this.#append({ kind: "progress", timeMs: nowMs, revision: this.#last });
    }
    if (nowMs >= this.#dueMs.hash) {
      this.#dueMs.hash = nowMs + hashIntervalMs;
      await this.#recordHash();
    }
    if (intervalMs > 0 && nowMs - this.#baseTimeMs >= intervalMs && nowMs >= this.#dueMs.base) {
      this.#dueMs.base = nowMs + RETRY_BASE_MS;
      await this.#takeBase();
      this.#dueMs.base = 0;
      if (retainMs > 0) this.#prune(dir, nowMs - retainMs);
    }
  }

  #checkLag(revision: number, nowMs: number): void {
    if (this.#last >= revision) this.#behindSinceMs = undefined;
    else if (this.#behindSinceMs === undefined) this.#behindSinceMs = nowMs;
    else if (nowMs - this.#behindSinceMs >= MAX_BEHIND_MS) {
      this.#io.stderr(`Warning: the watch is at revision ${this.#last} and the cluster at ${revision}: it is opened again\n`);
      this.#behindSinceMs = undefined;
      this.#follower?.close();
    }
  }

  async #lookAtLeases(): Promise<void> {
    const ids = new Set(await this.#view.leaseIds());
    const changed = await this.#view.timesToLive([...ids].filter((id) => !this.#leases.has(id)));
    for (const id of this.#leases.keys()) if (!ids.has(id)) changed.set(id, 0);
    this.#noteLeases(changed);
  }

  async #recordHash(): Promise<void> {
    const revision = this.#last;
    if (revision === this.#hashedRevision) return;
    const answer = await this.#view.hashAt(revision);
    if (answer === undefined) return;
    const { hash, compactRevision } = answer;
    this.#append({ kind: "hash", timeMs: Date.now(), revision, compactRevision, hash });
    this.#hashedRevision = revision;
  }

  #prune(dir: string, keepSinceMs: number): void {
    const old = prunable(readCatalog(nodeDisk, dir), keepSinceMs);
    for (const path of old) nodeDisk.remove(path);
    if (old.length > 0) this.#say(`removed ${old.length} files that are older than what is to be kept`);
  }
}

/** The highest number of a segment that is there, torn ones included; 0 for none. */
function readCatalogNumber(dir: string): number {
  const numbers = nodeDisk.list(dir).map((name) => Number(/^segment-(\d{8})\.qbk$/.exec(name)?.[1] ?? 0));
  return Math.max(0, ...numbers);
}
