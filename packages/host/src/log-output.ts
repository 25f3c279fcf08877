/**
 * Where lines of a log go: a file, or standard output or error, which may be a pipe, a socket of
 * journald, or a terminal.
 *
 *     write(line) -> at once, where the target takes it
 *                 -> queue (bounded) -> tried again -> target
 *
 * No write waits for a reader: a target that takes nothing (a reader that stopped, a full disk, a
 * closed pipe) leaves lines in the queue. What does not fit is dropped from its front, so that the
 * newest lines, those of a stop or a fatal error, are still there; the next line that is written
 * says how many are missing. `close` waits for the target, for a bounded time.
 */
import type { Timer } from "./clock.ts";

/** Bytes of lines that wait. */
export const MAX_LOG_QUEUE_BYTES: number = 1024 * 1024;
/** A target that takes nothing is tried again after this time; one that fails later. */
const RETRY_MS = 20;
const RETRY_FAILED_MS = 1000;
/** How long `close` waits for the target. */
export const LOG_CLOSE_GRACE_MS = 2000;
/** Between two attempts of `close`. */
const CLOSE_POLL_MS = 5;

/** What an output has done, for metrics. */
export interface LogCounts {
  readonly droppedLines: number;
  readonly queueBytes: number;
}

/** How an output reaches the system; other ones in tests and in the simulator. */
export interface LogTarget {
  /** Writes some of the bytes; returns how many. Throws the system's error (EAGAIN: it is full). */
  write(bytes: Uint8Array): number;
  reopen(): void;
  close(): void;
}

/** What an output needs beside its target. */
export interface LogSurroundings {
  monotonicMs(): number;
  /** Runs `task` after a time; it holds up the end of no process. */
  later(delayMs: number, task: () => void): Timer;
  /** Stops this thread for a time. */
  pause(delayMs: number): void;
  encode(line: string): Uint8Array;
}

export interface LogOutputOptions {
  /** How long `close` waits for the target; default LOG_CLOSE_GRACE_MS. */
  readonly graceMs?: number;
  /** Bytes of lines that wait; default MAX_LOG_QUEUE_BYTES. */
  readonly maxQueueBytes?: number;
}

export class LogOutput {
  readonly #target: LogTarget;
  readonly #missingLine: (lines: number) => string;
  readonly #surroundings: LogSurroundings;
  readonly #graceMs: number;
  readonly #maxQueueBytes: number;
  /** Whole lines, but the first: of it a part may be written. */
  #queue: Uint8Array[] = [];
  #first = 0;
  #isCut = false;
  #timer: Timer | undefined;
  #missing = 0;
  #isClosed = false;
  droppedLines = 0;
  queueBytes = 0;

  /** @param missingLine the line, with its end, that says how many are missing */
  constructor(
    target: LogTarget,
    missingLine: (lines: number) => string,
    surroundings: LogSurroundings,
    { graceMs = LOG_CLOSE_GRACE_MS, maxQueueBytes = MAX_LOG_QUEUE_BYTES }: LogOutputOptions = {},
  ) {
    this.#target = target;
    this.#missingLine = missingLine;
    this.#surroundings = surroundings;
    this.#graceMs = graceMs;
    this.#maxQueueBytes = maxQueueBytes;
  }

  /** Takes a line with its end. Returns at once; it is written where the target takes it. */
  write(line: string): void {
    if (this.#isClosed) return;
    this.#push(this.#surroundings.encode(line));
    // A timer is set where the target has just taken nothing.
    if (this.#timer === undefined) this.#flush();
  }

  /** Lines that wait. */
  get queuedLines(): number {
    return this.#queue.length - this.#first;
  }

  /** Opens a file of the path again: something has moved it away. */
  reopen(): void {
    this.#target.reopen();
  }

  /** Writes what waits, for a bounded time, and closes. Blocks meanwhile: the process is ending. */
  close(): void {
    if (this.#isClosed) return;
    this.#timer?.cancel();
    const endMs = this.#surroundings.monotonicMs() + this.#graceMs;
    while (!this.#drain() && this.#surroundings.monotonicMs() < endMs)
      this.#surroundings.pause(CLOSE_POLL_MS);
    this.#isClosed = true;
    this.droppedLines += this.queuedLines;
    this.#queue = [];
    this.queueBytes = 0;
    this.#target.close();
  }

  #push(line: Uint8Array): void {
    this.#queue.push(line);
    this.queueBytes += line.length;
    while (this.queueBytes > this.#maxQueueBytes && this.#drop());
    if (this.#first > 1024 && this.#first * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Drops the oldest line of which nothing is written; false where there is only the newest. */
  #drop(): boolean {
    const at = this.#first + (this.#isCut ? 1 : 0);
    const dropped = this.#queue[at];
    const first = this.#queue[this.#first];
    if (dropped === undefined || first === undefined || at === this.#queue.length - 1) return false;
    this.queueBytes -= dropped.length;
    if (this.#isCut) this.#queue[at] = first;
    this.#first++;
    this.droppedLines++;
    this.#missing++;
    return true;
  }

  #flush(): void {
    this.#timer = undefined;
    let delayMs = RETRY_MS;
    try {
      if (this.#writeAll()) return;
    } catch {
      delayMs = RETRY_FAILED_MS;
    }
    this.#timer = this.#surroundings.later(delayMs, () => this.#flush());
  }

  /** Tries to write all; whatever the target says is no reason to end differently. */
  #drain(): boolean {
    try {
      return this.#writeAll();
    } catch (error) {
      // A pipe without a reader never gets one.
      return (error as { code?: string }).code === "EPIPE";
    }
  }

  /** Writes until nothing waits; false where the target takes no more now. Throws its errors. */
  #writeAll(): boolean {
    while (this.#first < this.#queue.length) {
      try {
        if (this.#missing > 0 && !this.#isCut) this.#sayMissing();
        const line = this.#queue[this.#first];
        if (line === undefined) break;
        const count = this.#target.write(line);
        this.queueBytes -= count;
        this.#isCut = count < line.length;
        if (this.#isCut) this.#queue[this.#first] = line.subarray(count);
        else this.#first++;
      } catch (error) {
        if ((error as { code?: string }).code === "EAGAIN") return false;
        throw error;
      }
    }
    this.#queue.length = 0;
    this.#first = 0;
    return true;
  }

  /** Writes the number of the dropped lines in front of those that followed them. */
  #sayMissing(): void {
    const line = this.#surroundings.encode(this.#missingLine(this.#missing));
    const count = this.#target.write(line);
    this.#missing = 0;
    if (count === line.length) return;
    const rest = line.subarray(count);
    this.#queue.splice(this.#first, 0, rest);
    this.queueBytes += rest.length;
    this.#isCut = true;
  }
}
