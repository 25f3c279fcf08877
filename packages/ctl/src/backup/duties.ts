/**
 * What a run does from time to time beside following changes: it looks whether the watch lags,
 * which leases there are, notes a hash, that nothing happened, takes a new base and removes what is
 * too old. One thing after the other; a cluster that does not answer is asked again.
 */
import { prunable, readCatalog } from "@quorate/backup";
import { nodeDisk } from "@quorate/host/node";
import type { ClusterView } from "./cluster-view.ts";
import type { Journal } from "./journal.ts";

/** How old the list of leases may be. */
const LEASE_INTERVAL_MS = 5000;
const PROGRESS_INTERVAL_MS = 60_000;
const LAG_INTERVAL_MS = 3000;
/**
 * A watch that is behind for so long, or whose member answers nothing for so long, is opened at
 * another member.
 */
export const MAX_BEHIND_MS = 10_000;
/** A base that could not be taken is tried again after this. */
const RETRY_BASE_MS = 60_000;

export interface DutyOptions {
  readonly dir: string;
  /** How long everything stays possible to rebuild; 0: for ever. */
  readonly retainMs: number;
  /** How often a new base is taken; 0: never. */
  readonly intervalMs: number;
  readonly hashIntervalMs: number;
}

export interface DutyDeps {
  readonly view: Pick<ClusterView, "standing" | "leaseIds" | "timesToLive" | "hashAt">;
  readonly journal: Journal;
  /** Takes a base and gives the time up to which it has everything. */
  takeBase(): Promise<number>;
  /** Opens the watch anew at another member. */
  goElsewhere(): void;
  say(text: string): void;
  warn(text: string): void;
}

export class Duties {
  readonly #options: DutyOptions;
  readonly #deps: DutyDeps;
  readonly #dueMs = { leases: 0, progress: 0, hash: 0, lag: 0, base: 0 };
  #baseTimeMs: number;
  #behindSinceMs: number | undefined;
  #hashedRevision = 0;

  /** @param baseTimeMs when the newest base was taken */
  constructor(options: DutyOptions, deps: DutyDeps, baseTimeMs: number) {
    this.#options = options;
    this.#deps = deps;
    this.#baseTimeMs = baseTimeMs;
  }

  /** Changes were recorded. */
  changed(nowMs: number): void {
    this.#dueMs.progress = nowMs + PROGRESS_INTERVAL_MS;
  }

  /** The watch was opened. */
  opened(): void {
    this.#behindSinceMs = undefined;
  }

  /**
   * Does what is due. Rejects with ClientError where the cluster does not answer, with DiskError,
   * BackupError.
   */
  async tick(nowMs: number): Promise<void> {
    const { intervalMs, hashIntervalMs } = this.#options;
    if (nowMs >= this.#dueMs.lag) {
      this.#dueMs.lag = nowMs + LAG_INTERVAL_MS;
      await this.#lookForLag(nowMs);
    }
    if (nowMs >= this.#dueMs.leases) {
      this.#dueMs.leases = nowMs + LEASE_INTERVAL_MS;
      await this.#lookAtLeases();
    }
    if (nowMs >= this.#dueMs.progress && this.#behindSinceMs === undefined) {
      this.#dueMs.progress = nowMs + PROGRESS_INTERVAL_MS;
      this.#deps.journal.append({
        kind: "progress",
        timeMs: nowMs,
        revision: this.#deps.journal.last,
      });
    }
    if (nowMs >= this.#dueMs.hash) {
      this.#dueMs.hash = nowMs + hashIntervalMs;
      await this.#recordHash();
    }
    if (intervalMs > 0 && nowMs - this.#baseTimeMs >= intervalMs && nowMs >= this.#dueMs.base) {
      this.#dueMs.base = nowMs + RETRY_BASE_MS;
      this.#baseTimeMs = await this.#deps.takeBase();
      this.#dueMs.base = 0;
      this.#prune(nowMs);
    }
  }

  /** The last look before the run ends. Rejects as tick does. */
  async last(): Promise<void> {
    await this.#lookAtLeases();
    await this.#recordHash();
  }

  async #lookForLag(nowMs: number): Promise<void> {
    let revision: number | undefined;
    try {
      ({ revision } = await this.#deps.view.standing());
    } finally {
      this.#checkLag(revision, nowMs);
    }
  }

  /** @param revision the cluster's; undefined if it could not be asked through the member in use */
  #checkLag(revision: number | undefined, nowMs: number): void {
    const { journal, goElsewhere, warn } = this.#deps;
    if (revision !== undefined && journal.last >= revision) this.#behindSinceMs = undefined;
    else if (this.#behindSinceMs === undefined) this.#behindSinceMs = nowMs;
    else if (nowMs - this.#behindSinceMs >= MAX_BEHIND_MS) {
      const cluster =
        revision === undefined ? "its member does not answer" : `the cluster at ${revision}`;
      warn(
        `the watch is at revision ${journal.last} and ${cluster}: it is opened at another member`,
      );
      this.#behindSinceMs = undefined;
      goElsewhere();
    }
  }

  async #lookAtLeases(): Promise<void> {
    const { view, journal } = this.#deps;
    const ids = new Set(await view.leaseIds());
    const changed = await view.timesToLive([...ids].filter((id) => !journal.leases.has(id)));
    for (const id of journal.leases.keys()) if (!ids.has(id)) changed.set(id, 0);
    journal.noteLeases(changed);
  }

  async #recordHash(): Promise<void> {
    const { view, journal } = this.#deps;
    const revision = journal.last;
    if (revision === this.#hashedRevision) return;
    const answer = await view.hashAt(revision);
    if (answer === undefined) return;
    const { hash, compactRevision } = answer;
    journal.append({ kind: "hash", timeMs: Date.now(), revision, compactRevision, hash });
    this.#hashedRevision = revision;
  }

  #prune(nowMs: number): void {
    const { dir, retainMs } = this.#options;
    if (retainMs === 0) return;
    const old = prunable(readCatalog(nodeDisk, dir), nowMs - retainMs);
    for (const path of old) nodeDisk.remove(path);
    if (old.length > 0)
      this.#deps.say(`removed ${old.length} files that are older than what is to be kept`);
  }
}
