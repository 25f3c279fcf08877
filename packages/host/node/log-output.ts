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
import { closeSync, constants, fstatSync, fsyncSync, openSync, writeSync } from "node:fs";
import { setTimeout as setTimer } from "node:timers";

/** Bytes of lines that wait. */
export const MAX_LOG_QUEUE_BYTES: number = 1024 * 1024;
/** A target that takes nothing is tried again after this time; one that fails later. */
const RETRY_MS = 20;
const RETRY_FAILED_MS = 1000;
/** How long `close` waits for the target. */
export const LOG_CLOSE_GRACE_MS = 2000;
/** Between two attempts of `close`. */
const CLOSE_POLL_MS = 5;

const FILE_MODE = 0o600;
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK;

/**
 * A descriptor of this process's standard output (1) or error (2) that never blocks.
 *
 * A pipe or a terminal is opened again, since its flags are shared with other processes. A socket
 * cannot be: of it Node's own stream sets the flag, as it does in any program that uses the stream.
 */
export function nonBlockingStream(fd: 1 | 2): number {
  const found = fstatSync(fd);
  if (found.isFIFO() || found.isCharacterDevice()) {
    try {
      return openSync(`/proc/self/fd/${fd}`, APPEND);
    } catch {
      // No such file system, or the pipe belongs to another user.
    }
  }
  // The access is what sets the flag.
  if (found.isFIFO() || found.isSocket()) void (fd === 1 ? process.stdout : process.stderr);
  return fd;
}

/** What an output has done, for metrics. */
export interface LogCounts {
  readonly droppedLines: number;
  readonly queueBytes: number;
}

/** How an output reaches the system; other ones in tests. */
export interface LogTarget {
  /** Writes some of the bytes; returns how many. Throws the system's error. */
  write(bytes: Uint8Array): number;
  reopen(): void;
  close(): void;
}

export class LogOutput {
  readonly #target: LogTarget;
  readonly #missingLine: (lines: number) => string;
  readonly #graceMs: number;
  /** Whole lines, but the first: of it a part may be written. */
  #queue: Buffer[] = [];
  #first = 0;
  #isCut = false;
  #timer: NodeJS.Timeout | undefined;
  #missing = 0;
  #isClosed = false;
  droppedLines = 0;
  queueBytes = 0;

  /** @param missingLine the line, with its end, that says how many are missing */
  constructor(
    target: LogTarget,
    missingLine: (lines: number) => string,
    { graceMs = LOG_CLOSE_GRACE_MS } = {},
  ) {
    this.#target = target;
    this.#missingLine = missingLine;
    this.#graceMs = graceMs;
  }

  /** Takes a line with its end. Returns at once; it is written where the target takes it. */
  write(line: string): void {
    if (this.#isClosed) return;
    this.#push(Buffer.from(line));
    // A timer is set where the target has just taken nothing.
    if (this.#timer === undefined) this.#flush();
  }

  /** Opens a file of the path again: something has moved it away. */
  reopen(): void {
    this.#target.reopen();
  }

  /** Writes what waits, for a bounded time, and closes. Blocks meanwhile: the process is ending. */
  close(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    const endMs = performance.now() + this.#graceMs;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    while (!this.#drain() && performance.now() < endMs) Atomics.wait(pause, 0, 0, CLOSE_POLL_MS);
    this.#isClosed = true;
    this.droppedLines += this.#queue.length - this.#first;
    this.#queue = [];
    this.queueBytes = 0;
    this.#target.close();
  }

  #push(line: Buffer): void {
    this.#queue.push(line);
    this.queueBytes += line.length;
    while (this.queueBytes > MAX_LOG_QUEUE_BYTES && this.#drop());
    if (this.#first > 1024 && this.#first * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Drops the oldest line of which nothing is written; false where there is only the newest. */
  #drop(): boolean {
    const at = this.#first + (this.#isCut ? 1 : 0);
    if (at >= this.#queue.length - 1) return false;
    this.queueBytes -= this.#queue[at].length;
    if (this.#isCut) this.#queue[at] = this.#queue[this.#first];
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
    this.#timer = setTimer(() => this.#flush(), delayMs);
    this.#timer.unref();
  }

  /** Tries to write all; whatever the target says is no reason to end differently. */
  #drain(): boolean {
    try {
      return this.#writeAll();
    } catch (error) {
      // A pipe without a reader never gets one.
      return (error as NodeJS.ErrnoException).code === "EPIPE";
    }
  }

  /** Writes until nothing waits; false where the target takes no more now. Throws its errors. */
  #writeAll(): boolean {
    while (this.#first < this.#queue.length) {
      try {
        if (this.#missing > 0 && !this.#isCut) this.#sayMissing();
        const line = this.#queue[this.#first];
        const count = this.#target.write(line);
        this.queueBytes -= count;
        this.#isCut = count < line.length;
        if (this.#isCut) this.#queue[this.#first] = line.subarray(count);
        else this.#first++;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "EAGAIN") return false;
        throw error;
      }
    }
    this.#queue.length = 0;
    this.#first = 0;
    return true;
  }

  /** Writes the number of the dropped lines in front of those that followed them. */
  #sayMissing(): void {
    const line = Buffer.from(this.#missingLine(this.#missing));
    const count = this.#target.write(line);
    this.#missing = 0;
    if (count === line.length) return;
    const rest = line.subarray(count);
    this.#queue.splice(this.#first, 0, rest);
    this.queueBytes += rest.length;
    this.#isCut = true;
  }
}

/** The target of a standard stream, by its descriptor. */
export function streamTarget(fd: number): LogTarget {
  return { write: (bytes) => writeSync(fd, bytes), reopen() {}, close() {} };
}

/**
 * The target of a file, which is made where it is not there; or of a named pipe. Throws the
 * system's error (ENXIO: a pipe without a reader).
 */
export function fileTarget(path: string): LogTarget {
  const open = (): number => openSync(path, APPEND | constants.O_CREAT, FILE_MODE);
  let fd = open();
  return {
    write: (bytes) => writeSync(fd, bytes),
    reopen() {
      const next = open();
      closeSync(fd);
      fd = next;
    },
    close() {
      try {
        fsyncSync(fd);
      } catch {
        // A pipe has no disk.
      }
      closeSync(fd);
    },
  };
}
