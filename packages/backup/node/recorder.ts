/**
 * One run of a backup. It takes a base snapshot where one is needed, then follows the cluster's
 * changes into segment files. A later run continues where this one ends.
 *
 *     begin     read the backup
 *               same cluster, same history                     continue behind the last revision
 *               new backup, or history compacted meanwhile     take a base; report the gap, if any
 *     follow    watch -> append -> sync at most a second later; a broken watch reopens elsewhere
 *     duties    periodic work beside it (duties.ts)
 */
import type { Client } from "@quorate/client";
import { type Clock, type Disk, DiskError, sleep } from "@quorate/host";
import { defined, idToHex } from "@quorate/proto";
import { etcdFileRevision } from "@quorate/store";
import { chainsOf, readCatalog } from "../src/catalog.ts";
import { BackupError } from "../src/errors.ts";
import { type FollowState, followState, leasesOfBase } from "../src/follow-state.ts";
import { baseName } from "../src/format.ts";
import { Journal } from "../src/journal.ts";
import type { Mirror } from "../src/mirror.ts";
import { type ClusterState, ClusterView } from "./cluster-view.ts";
import { Duties, type DutyOptions } from "./duties.ts";
import { CompactedAwayError, type FollowedRevision, Follower } from "./follower.ts";

export interface RecorderOptions extends DutyOptions {
  /** End once all changes that the cluster had made at the start are recorded. */
  readonly once: boolean;
  /** Interval between passes of the mirror. */
  readonly mirrorIntervalMs: number;
}

export interface RecorderDeps extends BaseDeps {
  readonly client: Client;
  readonly disk: Disk;
  readonly clock: Clock;
  /** Copies the directory to an object store; absent for none. */
  readonly mirror?: Mirror | undefined;
  /** Called now and then, and at the end: makes the status known. Rejects with DiskError. */
  publish?: ((status: BackupStatus) => Promise<void>) | undefined;
  /** Reports a step of the run to the operator. */
  report(text: string): void;
  warn(text: string): void;
}

/**
 * Interval between syncs, and between looks at what is due: the longest unsynced time, plus a sync.
 */
const TICK_MS = 500;
const PUBLISH_INTERVAL_MS = 10_000;
const MIN_PAUSE_MS = 200;
const MAX_PAUSE_MS = 5000;
/**
 * How often in a row a base is retaken because its history was compacted before it was followed.
 */
const MAX_BASES_IN_A_ROW = 5;

/** How far a backup is; times are of the wall clock in ms, 0 before there is one. */
export interface BackupStatus {
  /** The last recorded revision. */
  readonly revision: number;
  /** All changes up to then are recorded. */
  readonly recordedMs: number;
  /** When the newest base was taken. */
  readonly baseMs: number;
}

/** Client errors that a retry cannot fix. */
const FINAL_CODES = new Set(["PermissionDenied", "UserEmpty", "AuthFailed", "InvalidAuthToken"]);

export class Recorder {
  readonly #options: RecorderOptions;
  readonly #deps: RecorderDeps;
  readonly #view: ClusterView;
  readonly #stop: AbortSignal;
  readonly #journal: Journal;
  #duties: Duties | undefined;
  #follower: Follower | undefined;
  #isFollowing = true;
  #failure: unknown;

  /** @param stop ends the run */
  constructor(options: RecorderOptions, deps: RecorderDeps, stop: AbortSignal) {
    this.#options = options;
    this.#deps = deps;
    this.#view = new ClusterView(deps.client);
    this.#stop = stop;
    this.#journal = new Journal(deps.disk, options.dir, () => deps.clock.wallMs());
  }

  /** How far the backup is. */
  get status(): BackupStatus {
    const { last: revision, recordedMs } = this.#journal;
    const baseMs = this.#duties?.baseTimeMs ?? 0;
    return { revision, recordedMs: Math.max(recordedMs, baseMs), baseMs };
  }

  /**
   * Runs until stopped, or with `once` until everything is recorded. Call once. Rejects with
   * BackupError, ClientError, DiskError, EtcdFileError.
   */
  async run(): Promise<void> {
    const { disk, clock, report } = this.#deps;
    const { dir, once } = this.#options;
    disk.makeDir(dir);
    const lock = disk.lock(`${dir}/lock`);
    try {
      await this.#deps.mirror?.begin();
      const target = await this.#begin();
      await this.#follow(once ? target : Number.POSITIVE_INFINITY);
      if (this.#failure === undefined) {
        await defined(this.#duties, "the duties").finish(clock.wallMs()).catch(ignoreClientError);
      }
    } catch (error) {
      if (!this.#stop.aborted || error !== this.#stop.reason) throw error;
      throw new BackupError("Stopped", dir, "stopped before the base snapshot was complete");
    } finally {
      await this.#journal.close().catch((error: unknown) => {
        this.#failure ??= error;
      });
      lock.release();
    }
    if (this.#failure !== undefined) throw this.#failure;
    await this.#deps.mirror?.pass(true);
    await this.#deps.publish?.(this.status);
    report(`stopped at revision ${this.#journal.last}`);
  }

  /**
   * Finds the revision to continue from and opens the journal there. Returns the cluster's
   * revision.
   */
  async #begin(): Promise<number> {
    const { disk, report, warn } = this.#deps;
    const cluster = await this.#view.state();
    const { clusterId, revision } = cluster;
    const catalog = readCatalog(disk, this.#options.dir);
    const state = followState(disk, catalog);
    let baseTimeMs = catalog.bases.at(-1)?.timeMs ?? 0;
    if (state === undefined) {
      if (catalog.bases.length > 0)
        report("found base snapshots and no segments: taking a new base");
      baseTimeMs = await this.#beginChain(clusterId);
    } else if (!(await this.#continues(state, cluster))) {
      baseTimeMs = await this.#bridgeGap(state.revision, clusterId);
    } else if (!chainsOf(catalog).some(({ last }) => last >= state.revision)) {
      report(`files that lead to revision ${state.revision} are missing: taking a new base`);
      baseTimeMs = await this.#beginChain(clusterId);
    } else {
      await this.#journal.begin(state);
      report(
        `continuing behind revision ${state.revision} of cluster ${idToHex(clusterId)}, ` +
          `which is at revision ${revision}`,
      );
    }
    const deps = {
      disk,
      view: this.#view,
      journal: this.#journal,
      nowMs: () => this.#deps.clock.wallMs(),
      takeBase: async () => (await this.#takeBase()).timeMs,
      switchMember: () => this.#follower?.abandon(),
      report,
      warn,
    };
    this.#duties = new Duties(this.#options, deps, baseTimeMs);
    return revision;
  }

  /**
   * Whether the cluster still has the history behind the recorded state. Rejects with BackupError
   * where the cluster is another one, or was restored from an earlier state.
   */
  async #continues(
    state: Omit<FollowState, "leases">,
    { clusterId, revision }: ClusterState,
  ): Promise<boolean> {
    const { dir } = this.#options;
    const refuse = (problem: string): never => {
      const advice = `begin a new backup: quoratectl backup run --to ${dir}-2`;
      throw new BackupError("OtherHistory", dir, `${problem}; ${advice}`);
    };
    if (state.clusterId !== clusterId) {
      refuse(
        `it is the backup of cluster ${idToHex(state.clusterId)}, ` +
          `and this is cluster ${idToHex(clusterId)}`,
      );
    }
    if (revision < state.revision) {
      refuse(
        `it has revision ${state.revision}, and the cluster is at revision ${revision}: ` +
          "the cluster was restored from an earlier state",
      );
    }
    if (state.changes === undefined) return true;
    const same = await this.#view.hasChanges(state.revision, state.changes);
    if (same === false) {
      const revision = `revision ${state.revision}`;
      refuse(
        `${revision} differs from the recorded one: the cluster was restored from an earlier state`,
      );
    }
    return same === true;
  }

  /** Begins a chain behind compacted history and reports the gap. Returns the time of the base. */
  async #bridgeGap(last: number, clusterId: bigint): Promise<number> {
    const timeMs = await this.#beginChain(clusterId);
    this.#deps.report(
      `GAP: the cluster compacted changes behind revision ${last} before they were recorded; ` +
        `nothing between ${last} and ${this.#journal.last} can be rebuilt ` +
        "(run the backup more often than the cluster compacts)",
    );
    return timeMs;
  }

  /** Takes a base and begins a segment behind it. Returns the time of the base. */
  async #beginChain(clusterId: bigint): Promise<number> {
    const { path, revision, timeMs } = await this.#takeBase();
    const leases = leasesOfBase(this.#deps.disk, path);
    await this.#journal.begin({ clusterId, revision, leases });
    return timeMs;
  }

  async #takeBase(): Promise<TakenBase> {
    const base = await takeBase(this.#deps, this.#options.dir, this.#stop);
    this.#deps.report(`base snapshot at revision ${base.revision} (${base.sizeBytes} bytes)`);
    return base;
  }

  /** Follows until `target` is recorded or the run is stopped. */
  async #follow(target: number): Promise<void> {
    const end = (): void => this.#follower?.close();
    this.#stop.addEventListener("abort", end);
    const fail = (error: unknown): void => {
      this.#failure ??= error;
      end();
    };
    const background = Promise.all([
      this.#syncLoop().catch(fail),
      this.#dutyLoop().catch(fail),
      this.#mirrorLoop().catch(fail),
    ]);
    try {
      await this.#followLoop(target);
    } finally {
      this.#stop.removeEventListener("abort", end);
      this.#isFollowing = false;
      await background;
    }
  }

  /** Opens one watch after the other, with a growing pause between those that bring nothing. */
  async #followLoop(target: number): Promise<void> {
    let pauseMs = MIN_PAUSE_MS;
    let bases = 0;
    while (!this.#isOver(target)) {
      const before = this.#journal.last;
      try {
        await this.#followOnce(target);
      } catch (error) {
        if (this.#isOver(target)) return;
        if (error instanceof CompactedAwayError) {
          if (++bases > MAX_BASES_IN_A_ROW) throw this.#compactedTooFast();
          await this.#bridgeGap(this.#journal.last, this.#journal.clusterId);
          continue;
        }
        if (!isRetryable(error)) throw error;
        if (pauseMs === MIN_PAUSE_MS) {
          this.#deps.warn(`the watch broke at revision ${this.#journal.last}: ${error.message}`);
        }
      }
      if (this.#journal.last > before) {
        pauseMs = MIN_PAUSE_MS;
        bases = 0;
      }
      if (this.#isOver(target)) return;
      await sleep(this.#deps.clock, pauseMs);
      pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
    }
  }

  #compactedTooFast(): BackupError {
    const problem = "the cluster compacts its history faster than it can be recorded";
    return new BackupError("CompactedTooFast", this.#options.dir, problem);
  }

  #isOver(target: number): boolean {
    return this.#stop.aborted || this.#failure !== undefined || this.#journal.last >= target;
  }

  async #followOnce(target: number): Promise<void> {
    const journal = this.#journal;
    const follower = await Follower.open(this.#deps.client, journal.last);
    this.#follower = follower;
    defined(this.#duties, "the duties").opened();
    try {
      // The cluster may have been restored from an earlier state while no watch was open.
      const { clusterId, lastChanges: changes } = journal;
      if (changes !== undefined) {
        const state = { revision: journal.last, clusterId, changes };
        await this.#continues(state, await this.#view.state());
      }
      if (this.#isOver(target)) return;
      for await (const revisions of follower.revisions()) {
        await this.#recordNewLeases(revisions);
        const timeMs = this.#deps.clock.wallMs();
        for (const { revision, changes } of revisions) {
          journal.appendRevision(timeMs, revision, changes);
        }
        defined(this.#duties, "the duties").changed(timeMs);
        await journal.rollIfFull();
        if (this.#isOver(target)) return;
      }
    } finally {
      this.#follower = undefined;
      follower.close();
    }
  }

  /** Leases are written before the changes that attach keys to them. */
  async #recordNewLeases(revisions: readonly FollowedRevision[]): Promise<void> {
    const used = revisions.flatMap(({ leases }) => leases);
    const unknown = new Set(used.filter((id) => !this.#journal.leases.has(id)));
    if (unknown.size > 0) this.#journal.appendLeases(await this.#view.timesToLive([...unknown]));
  }

  async #syncLoop(): Promise<void> {
    while (this.#isFollowing) {
      await sleep(this.#deps.clock, TICK_MS);
      await this.#journal.sync();
    }
  }

  async #dutyLoop(): Promise<void> {
    let publishedMs = Number.NEGATIVE_INFINITY;
    while (this.#isFollowing && !this.#stop.aborted) {
      const nowMs = this.#deps.clock.wallMs();
      if (nowMs - publishedMs >= PUBLISH_INTERVAL_MS) {
        await this.#deps.publish?.(this.status);
        publishedMs = nowMs;
      }
      await sleep(this.#deps.clock, TICK_MS);
      if (!this.#isFollowing || this.#stop.aborted) return;
      await defined(this.#duties, "the duties")
        .tick(this.#deps.clock.wallMs())
        .catch((error: unknown) => {
          if (error !== this.#stop.reason) ignoreClientError(error);
        });
    }
  }

  async #mirrorLoop(): Promise<void> {
    const { mirror, clock } = this.#deps;
    if (mirror === undefined) return;
    const { mirrorIntervalMs } = this.#options;
    let dueMs = clock.wallMs() + mirrorIntervalMs;
    while (this.#isFollowing) {
      await sleep(this.#deps.clock, Math.max(MIN_PAUSE_MS, Math.min(TICK_MS, mirrorIntervalMs)));
      if (clock.wallMs() < dueMs) continue;
      await mirror.keepUp();
      dueMs = clock.wallMs() + mirrorIntervalMs;
    }
  }
}

/** A broken stream or a member that does not respond; not an error of the backup or its disk. */
function isRetryable(error: unknown): error is Error {
  if (!(error instanceof Error) || error instanceof BackupError || error instanceof DiskError) {
    return false;
  }
  return !FINAL_CODES.has((error as { code?: string }).code ?? "");
}

/** A cluster that does not respond now may do so later; any other error ends the run. */
function ignoreClientError(error: unknown): void {
  if (!(error instanceof Error) || error.name !== "ClientError") throw error;
}

interface TakenBase {
  readonly path: string;
  readonly revision: number;
  /**
   * Wall clock in ms, rounded up to a whole second, as in the file's name. The content is older.
   */
  readonly timeMs: number;
  readonly sizeBytes: number;
}

interface BaseDeps {
  readonly disk: Disk;
  readonly clock: Clock;
  /**
   * Saves a snapshot of a member to a file, durably.
   * @param stop gives up within one message of the member; the promise then rejects with its reason
   * @returns the size in bytes; rejects with ClientError, or with an Error that names what is wrong
   *   with the stream or the disk
   */
  saveSnapshot(path: string, stop: AbortSignal): Promise<number>;
}

/**
 * Takes a base snapshot: the file appears under its final name whole and durable, or not at all.
 *
 * Takes a base into a backup's directory. Rejects as saveSnapshot does, with EtcdFileError,
 * DiskError.
 */
async function takeBase(
  { disk, clock, saveSnapshot }: BaseDeps,
  dir: string,
  stop: AbortSignal,
): Promise<TakenBase> {
  const incoming = `${dir}/incoming`;
  const sizeBytes = await saveSnapshot(incoming, stop);
  const timeMs = Math.ceil(clock.wallMs() / 1000) * 1000;
  const revision = etcdFileRevision(disk, incoming);
  const path = `${dir}/${baseName(revision, timeMs)}`;
  disk.rename(incoming, path);
  disk.syncDir(dir);
  return { path, revision, timeMs, sizeBytes };
}
