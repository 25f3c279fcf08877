/**
 * Writes audit lines behind the calls that they are of:
 *
 *     write(line) -> queue (bounded) -> one write of many lines, on the thread pool -> target
 *
 * While the target takes nothing (a full disk, a pipe without a reader) lines wait in the queue and
 * the writing is tried again; what does not fit the queue is dropped and counted.
 */

import { constants, write as writeCallback } from "node:fs";
import { type FileHandle, open, readdir, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { type Clock, type Logger, sleep, type Timer } from "@quorate/host";
import { nonBlockingStream } from "@quorate/host/node";
import { defined } from "@quorate/proto";
import type { AuditSink, LineSpace } from "../../src/audit/settings.ts";

/** Bytes of lines that wait; a line that would go beyond is dropped. */
export const MAX_AUDIT_QUEUE_BYTES: number = 16 * 1024 * 1024;
/** Writes are refused, where that is wanted, before lines have to be dropped. */
export const REFUSING_QUEUE_BYTES: number = (MAX_AUDIT_QUEUE_BYTES * 3) / 4;
/** Lines are collected for so long, or up to so many bytes. */
const FLUSH_AFTER_MS = 50;
const BATCH_BYTES = 256 * 1024;
/** The bytes of a character of a line, at most. */
const MOST_UTF8_BYTES = 3;
const NEWLINE = 0x0a;
/** A target that failed is tried again after this time; a full pipe sooner. */
export const RETRY_MS = 1000;
const PIPE_RETRY_MS = 20;
/** A pipe that takes nothing for so long counts as failed. */
const STALLED_MS = 1000;
const CLOSE_GRACE_MS = 2000;

export interface AuditOutputOptions {
  /** A file, a named pipe, or "-" for standard output. */
  readonly path: string;
  /** A file is rotated from this size or age on; 0 for never. */
  readonly maxFileBytes: number;
  readonly maxFileAgeMs: number;
  /** Rotated files that stay. */
  readonly keepFiles: number;
}

export interface AuditOutputDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Opens the target; another one in tests. */
  readonly open?: typeof openAuditTarget | undefined;
}

/** Lines that are written together. */
interface Batch {
  readonly bytes: Buffer;
  readonly lines: number;
}

export class AuditOutput implements AuditSink {
  readonly #options: AuditOutputOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #open: typeof openAuditTarget;
  /** Lines as bytes, so that none lives on as a text: the last batch is being filled. */
  #queue: Batch[] = [];
  #batch: Buffer = Buffer.allocUnsafeSlow(BATCH_BYTES);
  #batchBytes = 0;
  #batchLines = 0;
  /** What `space` returns: one object for all lines. */
  readonly #space: { bytes: Uint8Array; at: number } = { bytes: this.#batch, at: 0 };
  /** A batch that was written, for the next one. */
  #spare: Buffer | undefined;
  #queueBytes = 0;
  #waitingLines = 0;
  /** What a failed write left over, in front of the queue. */
  #rest: Uint8Array = new Uint8Array(0);
  /** Lines that end in it. */
  #restLines = 0;
  /** Whether the last byte that was written is within a line. */
  #isCut = false;
  #target: AuditTarget | undefined;
  #fileBytes = 0;
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;
  #isFailing = false;
  #mustReopen = false;
  #isClosed = false;
  #stalledSinceMs: number | undefined;
  /** Lines that were written, lines that were dropped, and writes that failed. */
  writtenLines = 0;
  droppedLines = 0;
  failures = 0;
  rotations = 0;

  constructor(options: AuditOutputOptions, { clock, logger, open }: AuditOutputDependencies) {
    this.#options = options;
    this.#clock = clock;
    this.#logger = logger;
    this.#open = open ?? openAuditTarget;
  }

  /** Opens the target. Rejects where it cannot be one; a pipe may be without a reader still. */
  async start(): Promise<void> {
    try {
      await this.#ensureOpen();
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== "ENXIO") throw new Error(`cannot open ${this.#options.path}: ${message}`);
      this.#failed(error);
    }
  }

  get isWritable(): boolean {
    return !this.#isFailing && this.#queueBytes < REFUSING_QUEUE_BYTES;
  }

  /** Bytes that wait to be written. */
  get queueBytes(): number {
    return this.#queueBytes;
  }

  write(line: string): void {
    const space = this.space(line.length * MOST_UTF8_BYTES + 1);
    if (space === undefined) return;
    const end = space.at + this.#batch.write(line, space.at);
    this.#batch[end] = NEWLINE;
    this.wrote(end + 1);
  }

  space(mostBytes: number): LineSpace | undefined {
    if (this.#isClosed || this.#queueBytes + mostBytes >= MAX_AUDIT_QUEUE_BYTES) {
      this.droppedLines++;
      return undefined;
    }
    if (this.#batch.length - this.#batchBytes < mostBytes) this.#endBatch(mostBytes);
    this.#space.bytes = this.#batch;
    this.#space.at = this.#batchBytes;
    return this.#space;
  }

  wrote(end: number): void {
    this.#queueBytes += end - this.#batchBytes;
    this.#batchBytes = end;
    this.#batchLines++;
    this.#waitingLines++;
    if (this.#writing !== undefined || this.#isFailing) return;
    if (this.#queueBytes >= BATCH_BYTES) this.#begin();
    else this.#timer ??= this.#clock.after(FLUSH_AFTER_MS, () => this.#begin());
  }

  /** Puts the batch into the queue and begins another. */
  #endBatch(leastBytes: number): void {
    if (this.#batchBytes > 0) {
      const bytes = this.#batch.subarray(0, this.#batchBytes);
      this.#queue.push({ bytes, lines: this.#batchLines });
    }
    const spare = leastBytes <= BATCH_BYTES ? this.#spare : undefined;
    if (spare !== undefined) this.#spare = undefined;
    this.#batch = spare ?? Buffer.allocUnsafeSlow(Math.max(BATCH_BYTES, leastBytes));
    this.#batchBytes = 0;
    this.#batchLines = 0;
  }

  /** Opens the target again before the next line: something has moved the file away. */
  reopen(): void {
    this.#mustReopen = true;
  }

  /** Writes what waits, for a bounded time, and closes. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const grace = sleep(this.#clock, CLOSE_GRACE_MS);
    this.#begin();
    await Promise.race([this.#writing, grace]);
    this.#timer?.cancel();
    this.droppedLines += this.#waitingLines;
    this.#waitingLines = 0;
    this.#queue = [];
    this.#batchBytes = 0;
    await this.#target?.close().catch(() => {});
    this.#target = undefined;
  }

  #begin(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#writing ??= this.#run().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Writes until nothing waits or the target fails. Never rejects. */
  async #run(): Promise<void> {
    try {
      // Nothing may wait: a pipe had no reader when the member started.
      if (this.#isFailing) await this.#ensureOpen();
      while (this.#rest.length > 0 || this.#waitingLines > 0) {
        await this.#ensureOpen();
        if (this.#rest.length === 0) this.#takeBatch();
        const { buffer } = this.#rest;
        if (!(await this.#writeRest())) return;
        if (buffer.byteLength === BATCH_BYTES) this.#spare = Buffer.from(buffer);
        await this.#rotateIfDue();
      }
      if (this.#isFailing) this.#recovered();
    } catch (error) {
      this.#failed(error);
    }
  }

  async #ensureOpen(): Promise<void> {
    if (this.#mustReopen) await this.#closeTarget();
    this.#mustReopen = false;
    if (this.#target !== undefined) return;
    this.#target = await this.#open(this.#options.path, this.#clock.wallMs());
    this.#fileBytes = this.#target.sizeBytes;
  }

  /** Takes the next batch out of the queue, to be written. */
  #takeBatch(): void {
    if (this.#queue.length === 0) this.#endBatch(0);
    const { bytes, lines } = defined(this.#queue.shift(), "an element of queue");
    this.#queueBytes -= bytes.length;
    this.#waitingLines -= lines;
    this.#rest = bytes;
    this.#restLines = lines;
  }

  /** Writes what is taken from the queue; false where a pipe is full and is tried again later. */
  async #writeRest(): Promise<boolean> {
    while (this.#rest.length > 0) {
      let count: number;
      try {
        count = await defined(this.#target, "the target").write(this.#rest);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
        this.#stalled();
        return false;
      }
      this.#stalledSinceMs = undefined;
      this.#fileBytes += count;
      const isWhole = count === this.#rest.length;
      const lines = isWhole ? this.#restLines : newlines(this.#rest, count);
      this.#restLines -= lines;
      this.writtenLines += lines;
      this.#isCut = count === 0 ? this.#isCut : this.#rest[count - 1] !== NEWLINE;
      this.#rest = this.#rest.subarray(count);
    }
    return true;
  }

  #stalled(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#stalledSinceMs ??= nowMs;
    if (nowMs - this.#stalledSinceMs >= STALLED_MS && !this.#isFailing)
      this.#failed(new Error("the reader of the pipe takes nothing"));
    else this.#timer = this.#clock.after(PIPE_RETRY_MS, () => this.#begin());
  }

  async #rotateIfDue(): Promise<void> {
    const { maxFileBytes, maxFileAgeMs, path, keepFiles } = this.#options;
    if (this.#target?.isFile !== true) return;
    const wallMs = this.#clock.wallMs();
    const isFull = maxFileBytes > 0 && this.#fileBytes >= maxFileBytes;
    const isOld = maxFileAgeMs > 0 && wallMs - this.#target.sinceMs >= maxFileAgeMs;
    if (!isFull && !isOld) return;
    await this.#closeTarget();
    await rotate(path, wallMs, keepFiles);
    this.rotations++;
  }

  async #closeTarget(): Promise<void> {
    const target = this.#target;
    this.#target = undefined;
    await target?.close();
  }

  #failed(error: unknown): void {
    this.failures++;
    if (!this.#isFailing) {
      this.#logger.error(
        "the audit log cannot be written; lines wait, and are dropped at a bound",
        {
          path: this.#options.path,
          error: (error as Error).message,
        },
      );
    }
    this.#isFailing = true;
    this.#endCutLine();
    const target = this.#target;
    this.#target = undefined;
    target?.close().catch(() => {});
    if (!this.#isClosed) this.#timer = this.#clock.after(RETRY_MS, () => this.#begin());
  }

  /** A line that a failure cut is ended and counts as dropped; the lines behind it stay whole. */
  #endCutLine(): void {
    if (!this.#isCut) return;
    this.#isCut = false;
    const next = this.#rest.indexOf(NEWLINE) + 1;
    this.#rest = Buffer.concat([Buffer.from("\n"), this.#rest.subarray(next)]);
    this.droppedLines++;
    this.writtenLines--;
  }

  #recovered(): void {
    this.#isFailing = false;
    this.#logger.info("the audit log is written again", {
      path: this.#options.path,
      "dropped-lines": this.droppedLines,
    });
  }
}

function newlines(bytes: Uint8Array, end: number): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0 && at < end; at = bytes.indexOf(NEWLINE, at + 1))
    count++;
  return count;
}

/** "audit.log" -> "audit.log.20260301T120000.123Z" */
const STAMP = /^\.\d{8}T\d{6}\.\d{3}Z$/;

/**
 * Moves the file away, and deletes the oldest of those that were moved before.
 * @param keepFiles how many moved files stay
 */
async function rotate(path: string, wallMs: number, keepFiles: number): Promise<void> {
  const stamp = new Date(wallMs).toISOString().replaceAll(/[-:]/g, "");
  await rename(path, `${path}.${stamp}`);
  const [dir, name] = [dirname(path), basename(path)];
  const moved = (await readdir(dir))
    .filter((one) => one.startsWith(name) && STAMP.test(one.slice(name.length)))
    .sort();
  for (const old of moved.slice(0, Math.max(0, moved.length - keepFiles)))
    await unlink(join(dir, old));
}

const writeTo = promisify(writeCallback);

/** Logs are for their own user. */
const FILE_MODE = 0o600;

/** An open target. */
export interface AuditTarget {
  /** True for a regular file, which can be rotated. */
  readonly isFile: boolean;
  /** Bytes that it had when it was opened, and the wall-clock time of its beginning. */
  readonly sizeBytes: number;
  readonly sinceMs: number;
  /** Writes some of the bytes; resolves with how many. Rejects with the system's error. */
  write(bytes: Uint8Array): Promise<number>;
  /** Resolves when the descriptor is closed; the error of a full disk may come only here. */
  close(): Promise<void>;
}

/**
 * Where audit lines end: a file, a named pipe, a device, or standard output ("-"). Writing never
 * waits on the event loop; a pipe without a reader takes nothing instead of blocking a thread.
 *
 * Opens a target by its path. Rejects with the system's error (ENXIO: a pipe without a reader).
 */
export async function openAuditTarget(path: string, wallMs: number): Promise<AuditTarget> {
  if (path === "-") {
    const stdout = nonBlockingStream(1);
    const write = async (bytes: Uint8Array): Promise<number> =>
      (await writeTo(stdout, bytes)).bytesWritten;
    return { isFile: false, sizeBytes: 0, sinceMs: wallMs, write, close: async () => {} };
  }
  const kind = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  const create = kind === undefined ? constants.O_CREAT : 0;
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | create;
  const handle = await open(path, flags, FILE_MODE);
  try {
    return await targetOf(handle, wallMs);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function targetOf(handle: FileHandle, wallMs: number): Promise<AuditTarget> {
  const found = await handle.stat();
  if (found.isDirectory()) throw new Error("it is a directory");
  const isFile = found.isFile();
  return {
    isFile,
    sizeBytes: isFile ? found.size : 0,
    sinceMs: isFile && found.size > 0 ? found.birthtimeMs || found.mtimeMs : wallMs,
    write: async (bytes) => (await handle.write(bytes)).bytesWritten,
    close: () => handle.close(),
  };
}
