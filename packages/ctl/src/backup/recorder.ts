/**
 * A run of "quoratectl backup run": takes a base snapshot where one is needed, follows the
 * cluster's changes into segment files, and goes on where the run before it ended.
 *
 *     start     read the backup; the same cluster? the same history? -> go on behind the last
 *               revision
 *               nothing yet, or history compacted meanwhile          -> a base first, and if there
 *               was a backup, a gap that is told
 *     follow    watch -> append -> sync at most a second later; a broken watch is opened again at
 *               the next member
 *     beside    what is due from time to time (duties.ts)
 */
import {
  chainsOf,
  type FollowState,
  followState,
  leasesOfBase,
  readCatalog,
} from "@quorate/backup";
import type { Client } from "@quorate/client";
import type { DiskLock } from "@quorate/host";
import { nodeDisk } from "@quorate/host/node";
import { idToHex } from "@quorate/proto";
import { Exit, ExitCode, type Io } from "../io.ts";
import { takeBase } from "./base.ts";
import { ClusterView, type Standing } from "./cluster-view.ts";
import { Duties, type DutyOptions } from "./duties.ts";
import { CompactedAwayError, type FollowedRevision, Follower } from "./follower.ts";
import { Journal } from "./journal.ts";

export interface RecorderOptions extends DutyOptions {
  /** End when all is recorded that had happened at the start. */
  readonly once: boolean;
}

/** How often what is due is looked at; nothing is synced later than this and one sync. */
const TICK_MS = 500;
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
  readonly #journal: Journal;
  #duties: Duties | undefined;
  #follower: Follower | undefined;
  #isFollowing = true;
  #failure: unknown;

  constructor(client: Client, options: RecorderOptions, io: Io, stop: AbortSignal) {
    this.#client = client;
    this.#view = new ClusterView(client);
    this.#options = options;
    this.#io = io;
    this.#stop = stop;
    this.#journal = new Journal(nodeDisk, options.dir, Date.now);
  }

  /**
   * Runs until it is stopped, or with `once` until it is through. Rejects with Exit, ClientError,
   * DiskError, BackupError.
   */
  async run(): Promise<void> {
    const { dir, once } = this.#options;
    nodeDisk.makeDir(dir);
    const lock: DiskLock = nodeDisk.lock(`${dir}/lock`);
    try {
      const target = await this.#begin();
      await this.#followAlong(once ? target : Number.POSITIVE_INFINITY);
      // The last look, where the cluster still answers.
      if (this.#failure === undefined)
        await this.#duties!.last().catch((error: unknown) => this.#passOver(error));
    } catch (error) {
      if (!this.#stop.aborted || error !== this.#stop.reason) throw error;
      throw new Exit(ExitCode.error, "stopped before the base snapshot was complete");
    } finally {
      await this.#journal.close().catch((error: unknown) => {
        this.#failure ??= error;
      });
      lock.release();
    }
    if (this.#failure !== undefined) throw this.#failure;
    this.#say(`stopped at revision ${this.#journal.last}`);
  }

  #say(text: string): void {
    this.#io.stdout(`${new Date().toISOString()} ${text}\n`);
  }

  #warn(text: string): void {
    this.#io.stderr(`Warning: ${text}\n`);
  }

  /** Finds out where to go on; gives the cluster's revision. */
  async #begin(): Promise<number> {
    const standing = await this.#view.standing();
    const { clusterId, revision } = standing;
    const catalog = readCatalog(nodeDisk, this.#options.dir);
    const state = followState(nodeDisk, catalog);
    let baseTimeMs = catalog.bases.at(-1)?.timeMs ?? 0;
    if (state === undefined) {
      if (catalog.bases.length > 0)
        this.#say("there are base snapshots and no segments: a new base is taken");
      baseTimeMs = await this.#beginChain(clusterId);
    } else if (!(await this.#goesOn(state, standing)))
      baseTimeMs = await this.#gap(state.revision, clusterId);
    else if (!chainsOf(catalog).some(({ last }) => last >= state.revision)) {
      this.#say(`files that lead to revision ${state.revision} are missing: a new base is taken`);
      baseTimeMs = await this.#beginChain(clusterId);
    } else {
      await this.#journal.begin(state);
      this.#say(
        `going on behind revision ${state.revision} of cluster ${idToHex(clusterId)}, which is at ${revision}`,
      );
    }
    const deps = {
      view: this.#view,
      journal: this.#journal,
      takeBase: async () => (await this.#takeBase()).timeMs,
      goElsewhere: () => this.#follower?.abandon(),
      say: (text: string) => this.#say(text),
      warn: (text: string) => this.#warn(text),
    };
    this.#duties = new Duties(this.#options, deps, baseTimeMs);
    return revision;
  }

  /**
   * Whether the cluster's history is the recorded one and still reaches back to it. Throws Exit
   * where it is another one.
   */
  async #goesOn(
    state: Omit<FollowState, "leases">,
    { clusterId, revision }: Standing,
  ): Promise<boolean> {
    const { dir } = this.#options;
    const refuse = (what: string): never => {
      throw new Exit(ExitCode.error, `${dir}: ${what}; begin a new backup in another folder`);
    };
    if (state.clusterId !== clusterId) {
      refuse(
        `it is the backup of cluster ${idToHex(state.clusterId)}, and this is cluster ${idToHex(clusterId)}`,
      );
    }
    if (revision < state.revision) {
      refuse(
        `it has revision ${state.revision}, and the cluster is at ${revision}: the cluster was restored from an earlier state`,
      );
    }
    if (state.changes === undefined) return true;
    const same = await this.#view.hasChanges(state.revision, state.changes);
    if (same === false) {
      refuse(
        `the cluster's revision ${state.revision} is another one than was recorded: the cluster was restored from an earlier state`,
      );
    }
    return same === true;
  }

  /** Begins anew behind a gap; gives the time of the base. */
  async #gap(last: number, clusterId: bigint): Promise<number> {
    const timeMs = await this.#beginChain(clusterId);
    this.#say(
      `GAP: what happened behind revision ${last} was compacted before it could be recorded; ` +
        `nothing between ${last} and ${this.#journal.last} can be rebuilt (run the backup more often than the cluster compacts)`,
    );
    return timeMs;
  }

  /** A base, and a segment behind it; gives the time of the base. */
  async #beginChain(clusterId: bigint): Promise<number> {
    const { path, revision, timeMs } = await this.#takeBase();
    await this.#journal.begin({ clusterId, revision, leases: leasesOfBase(nodeDisk, path) });
    return timeMs;
  }

  async #takeBase(): ReturnType<typeof takeBase> {
    const base = await takeBase(this.#client, this.#options.dir, this.#io, this.#stop);
    this.#say(`base snapshot at revision ${base.revision} (${base.sizeBytes} bytes)`);
    return base;
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
        const before = this.#journal.last;
        try {
          await this.#followOnce(target);
        } catch (error) {
          if (this.#isOver(target)) break;
          if (error instanceof CompactedAwayError) {
            if (++bases > MAX_BASES_IN_A_ROW)
              throw new Exit(
                ExitCode.error,
                `the cluster compacts its history faster than it can be recorded`,
              );
            await this.#gap(this.#journal.last, this.#journal.clusterId);
            continue;
          }
          if (FINAL_ERRORS.has((error as { code?: string }).code ?? "")) throw error;
          if (!(error instanceof Error) || error instanceof Exit || "path" in error) throw error;
          if (pauseMs === FIRST_PAUSE_MS)
            this.#warn(`the watch broke at revision ${this.#journal.last}: ${error.message}`);
        }
        if (this.#journal.last > before) {
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

  #isOver(target: number): boolean {
    return this.#stop.aborted || this.#failure !== undefined || this.#journal.last >= target;
  }

  async #followOnce(target: number): Promise<void> {
    const journal = this.#journal;
    const follower = await Follower.open(this.#client, journal.last);
    this.#follower = follower;
    this.#duties!.opened();
    try {
      // While nobody listened the cluster may have been restored from an earlier state.
      const { clusterId, lastChanges: changes } = journal;
      if (changes !== undefined)
        await this.#goesOn(
          { revision: journal.last, clusterId, changes },
          await this.#view.standing(),
        );
      if (this.#isOver(target)) return;
      for await (const revisions of follower.revisions()) {
        await this.#learnLeases(revisions);
        const timeMs = Date.now();
        for (const { revision, changes } of revisions)
          journal.appendRevision(timeMs, revision, changes);
        this.#duties!.changed(timeMs);
        await journal.turnIfFull();
        if (this.#isOver(target)) return;
      }
    } finally {
      this.#follower = undefined;
      follower.close();
    }
  }

  /** Leases are written before the changes that put keys on them. */
  async #learnLeases(revisions: readonly FollowedRevision[]): Promise<void> {
    const unknown = new Set(
      revisions.flatMap(({ leases }) => leases).filter((id) => !this.#journal.leases.has(id)),
    );
    if (unknown.size > 0) this.#journal.noteLeases(await this.#view.timesToLive([...unknown]));
  }

  /** Makes durable what was recorded, until the following is over. */
  async #syncAlong(): Promise<void> {
    while (this.#isFollowing) {
      await this.#io.sleep(TICK_MS);
      await this.#journal.sync();
    }
  }

  /** What is due beside the changes, until the following is over. */
  async #tickAlong(): Promise<void> {
    while (this.#isFollowing && !this.#stop.aborted) {
      await this.#io.sleep(TICK_MS);
      if (!this.#isFollowing || this.#stop.aborted) return;
      await this.#duties!.tick(Date.now()).catch((error: unknown) => {
        if (error !== this.#stop.reason) this.#passOver(error);
      });
    }
  }

  /**
   * A cluster that cannot be asked at the moment is asked again later; what else is wrong ends the
   * run.
   */
  #passOver(error: unknown): void {
    if (!(error instanceof Error) || error.name !== "ClientError") throw error;
  }
}
