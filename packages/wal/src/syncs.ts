/** The fdatasyncs of a log: one runs at a time, and callers that come during it share the next. */
import type { Clock, DiskFile } from "@quorate/host";

/** A running sync, with the segment and length that it makes durable. */
export interface RunningSync {
  readonly file: DiskFile;
  readonly lengthBytes: number;
  /** Monotonic milliseconds. */
  readonly startMs: number;
  readonly promise: Promise<void>;
}

/** The log, as its syncs see it. */
export interface SyncOwner {
  /** The segment being written and its length. */
  readonly end: { readonly file: DiskFile; readonly lengthBytes: number };
  /** True if all of that is durable. */
  readonly isDurable: boolean;
  /** A sync is complete. */
  synced(file: DiskFile, lengthBytes: number): void;
  /** A sync has failed. */
  failed(file: DiskFile, error: unknown): void;
}

export class Syncs {
  readonly #clock: Clock;
  readonly #onSync: ((durationMs: number) => void) | undefined;
  readonly #owner: SyncOwner;
  #running: RunningSync | undefined;
  /** The sync after the running one, for all callers that came after its start. */
  #next: PromiseWithResolvers<void> | undefined;
  #lastMs = Number.POSITIVE_INFINITY;

  /** @param onSync called after each sync with its duration */
  constructor(clock: Clock, onSync: ((durationMs: number) => void) | undefined, owner: SyncOwner) {
    this.#clock = clock;
    this.#onSync = onSync;
    this.#owner = owner;
  }

  get running(): RunningSync | undefined {
    return this.#running;
  }

  /** The duration of the last sync in ms; infinite before the first. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** Resolves when everything written before the call is durable; rejects with the disk's error. */
  sync(): Promise<void> {
    if (this.#running) {
      const { file, lengthBytes, promise } = this.#running;
      const { end } = this.#owner;
      if (file === end.file && lengthBytes === end.lengthBytes) return promise;
      this.#next ??= Promise.withResolvers();
      return this.#next.promise;
    }
    return this.#owner.isDurable ? Promise.resolve() : this.#start();
  }

  /** Syncs a file before it returns. @throws DiskError */
  now(file: DiskFile): void {
    this.#note(file.dataSyncNow());
  }

  /** Rejects the callers that wait for the next sync: the log has failed. */
  fail(error: unknown): void {
    this.#next?.reject(error);
    this.#next = undefined;
  }

  #start(): Promise<void> {
    const { file, lengthBytes } = this.#owner.end;
    const startMs = this.#clock.monotonicMs();
    const promise = file.dataSync().then(
      () => {
        this.#running = undefined;
        this.#note(this.#clock.monotonicMs() - startMs);
        this.#owner.synced(file, lengthBytes);
        this.#continue();
      },
      (error) => {
        this.#running = undefined;
        this.#owner.failed(file, error);
        throw error;
      },
    );
    this.#running = { file, lengthBytes, startMs, promise };
    return promise;
  }

  /** Starts the next sync, for callers that came during the last one. */
  #continue(): void {
    const waiting = this.#next;
    if (!waiting) return;
    this.#next = undefined;
    if (this.#owner.isDurable) waiting.resolve();
    else this.#start().then(waiting.resolve, waiting.reject);
  }

  #note(tookMs: number): void {
    this.#lastMs = tookMs;
    this.#onSync?.(tookMs);
  }
}
