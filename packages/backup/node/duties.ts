/**
 * The periodic work of a run, beside following changes: detects a watch that lags, records leases,
 * users and roles, hashes and progress, takes new bases and prunes old files. One task at a time; a
 * task that fails because the cluster does not respond runs again when it is next due.
 */
import type { Disk } from "@quorate/host";
import { prunable, readCatalog } from "../src/catalog.ts";
import type { Journal } from "../src/journal.ts";
import type { ClusterView } from "./cluster-view.ts";

/** Interval between lists of leases. */
const LEASE_INTERVAL_MS = 5000;
const PROGRESS_INTERVAL_MS = 60_000;
const LAG_INTERVAL_MS = 3000;
/** Interval between looks whether users or roles have changed. */
const USERS_INTERVAL_MS = 5000;
/** A list of them may take a part of the time: so many times what it took passes until the next. */
const USERS_PAUSE = 20;
/** A watch that lags, or whose member does not respond, for this long moves to another member. */
export const MAX_BEHIND_MS = 10_000;
/** Delay before a base that failed is taken again. */
const RETRY_BASE_MS = 60_000;

export interface DutyOptions {
  readonly dir: string;
  /** How far back every moment can be rebuilt; 0 for no limit. */
  readonly retainMs: number;
  /** Interval between bases; 0 for no base after the first. */
  readonly intervalMs: number;
  readonly hashIntervalMs: number;
}

export interface DutyDeps {
  readonly disk: Disk;
  readonly view: Pick<ClusterView, "state" | "leaseIds" | "timesToLive" | "usersSince" | "hashAt">;
  readonly journal: Journal;
  /** The wall-clock time. */
  nowMs(): number;
  /** Takes a base; returns its time (TakenBase.timeMs). */
  takeBase(): Promise<number>;
  /** Reopens the watch at another member. */
  switchMember(): void;
  report(text: string): void;
  warn(text: string): void;
}

export class Duties {
  readonly #options: DutyOptions;
  readonly #deps: DutyDeps;
  readonly #dueMs = { leases: 0, progress: 0, hash: 0, lag: 0, base: 0, users: 0 };
  #baseTimeMs: number;
  #behindSinceMs: number | undefined;
  #hashedRevision = 0;
  #authRevision = 0;

  /** @param baseTimeMs time of the newest base */
  constructor(options: DutyOptions, deps: DutyDeps, baseTimeMs: number) {
    this.#options = options;
    this.#deps = deps;
    this.#baseTimeMs = baseTimeMs;
  }

  /** When the newest base was taken. */
  get baseTimeMs(): number {
    return this.#baseTimeMs;
  }

  /** Called when changes were recorded: they show progress by themselves. */
  changed(nowMs: number): void {
    this.#dueMs.progress = nowMs + PROGRESS_INTERVAL_MS;
  }

  /** Called when the watch was opened. */
  opened(): void {
    this.#behindSinceMs = undefined;
  }

  /** Runs the tasks that are due. Rejects with ClientError, DiskError, BackupError. */
  async tick(nowMs: number): Promise<void> {
    const { intervalMs, hashIntervalMs } = this.#options;
    if (nowMs >= this.#dueMs.lag) {
      this.#dueMs.lag = nowMs + LAG_INTERVAL_MS;
      await this.#detectLag(nowMs);
    }
    if (nowMs >= this.#dueMs.leases) {
      this.#dueMs.leases = nowMs + LEASE_INTERVAL_MS;
      await this.#recordLeases();
    }
    if (nowMs >= this.#dueMs.users) {
      this.#dueMs.users = nowMs + USERS_INTERVAL_MS;
      await this.#recordUsers(nowMs);
    }
    if (nowMs >= this.#dueMs.progress && this.#behindSinceMs === undefined) {
      this.#dueMs.progress = nowMs + PROGRESS_INTERVAL_MS;
      const { journal } = this.#deps;
      journal.append({ kind: "progress", timeMs: nowMs, revision: journal.last });
    }
    if (nowMs >= this.#dueMs.hash) {
      this.#dueMs.hash = nowMs + hashIntervalMs;
      await this.#recordHash(nowMs);
    }
    if (intervalMs > 0 && nowMs - this.#baseTimeMs >= intervalMs && nowMs >= this.#dueMs.base) {
      this.#dueMs.base = nowMs + RETRY_BASE_MS;
      this.#baseTimeMs = await this.#deps.takeBase();
      this.#dueMs.base = 0;
      this.#prune(nowMs);
    }
  }

  /** Records leases, users and a hash once more before the run ends. Rejects as tick does. */
  async finish(nowMs: number): Promise<void> {
    await this.#recordLeases();
    await this.#recordUsers(nowMs);
    await this.#recordHash(nowMs);
  }

  async #detectLag(nowMs: number): Promise<void> {
    let revision: number | undefined;
    try {
      ({ revision } = await this.#deps.view.state());
    } finally {
      this.#checkLag(revision, nowMs);
    }
  }

  /** @param revision of the cluster; undefined if the member in use did not respond */
  #checkLag(revision: number | undefined, nowMs: number): void {
    const { journal, switchMember, warn } = this.#deps;
    if (revision !== undefined && journal.last >= revision) this.#behindSinceMs = undefined;
    else if (this.#behindSinceMs === undefined) this.#behindSinceMs = nowMs;
    else if (nowMs - this.#behindSinceMs >= MAX_BEHIND_MS) {
      const cause =
        revision === undefined
          ? "its member does not respond"
          : `the cluster is at revision ${revision}`;
      warn(`the watch is at revision ${journal.last} and ${cause}: reopening it at another member`);
      this.#behindSinceMs = undefined;
      switchMember();
    }
  }

  async #recordLeases(): Promise<void> {
    const { view, journal } = this.#deps;
    const ids = new Set(await view.leaseIds());
    const changed = await view.timesToLive([...ids].filter((id) => !journal.leases.has(id)));
    for (const id of journal.leases.keys()) if (!ids.has(id)) changed.set(id, 0);
    journal.appendLeases(changed);
  }

  /** Where they have changed, and the credential of the backup shows them. */
  async #recordUsers(nowMs: number): Promise<void> {
    const { view, journal, nowMs: now } = this.#deps;
    // A member of etcd 3.4 has no such call; that must not hold up what else is due.
    const users = await view.usersSince(this.#authRevision).catch((error: Error) => {
      if (error.name !== "ClientError") throw error;
    });
    if (users === undefined) return;
    journal.append({ kind: "users", timeMs: now(), users });
    this.#authRevision = users.authRevision;
    this.#dueMs.users = Math.max(this.#dueMs.users, now() + USERS_PAUSE * (now() - nowMs));
  }

  async #recordHash(nowMs: number): Promise<void> {
    const { view, journal } = this.#deps;
    const revision = journal.last;
    if (revision === this.#hashedRevision) return;
    const response = await view.hashAt(revision);
    if (response === undefined) return;
    const { hash, compactRevision } = response;
    journal.append({ kind: "hash", timeMs: nowMs, revision, compactRevision, hash });
    this.#hashedRevision = revision;
  }

  #prune(nowMs: number): void {
    const { disk, report } = this.#deps;
    const { dir, retainMs } = this.#options;
    if (retainMs === 0) return;
    const old = prunable(readCatalog(disk, dir), nowMs - retainMs);
    for (const path of old) disk.remove(path);
    if (old.length > 0) report(`removed ${old.length} files older than the time to retain`);
  }
}
