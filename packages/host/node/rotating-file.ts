/**
 * A log file that is moved away when it is full, under the names and rules of lumberjack, which
 * etcd uses (gopkg.in/natefinch/lumberjack.v2):
 *
 *     etcd.log -> etcd-2026-01-02T15-04-05.000.log -> etcd-2026-01-02T15-04-05.000.log.gz
 *
 * Lines are written at once; the move is two system calls between lines. Old files are compressed
 * and deleted beside that.
 */
import { createReadStream, createWriteStream, renameSync, statSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { pipeline } from "node:stream/promises";

/** When a log file is moved away, and what becomes of it. */
export interface LogRotation {
  /** A line that would make the file longer goes into a new one. */
  readonly maxFileBytes: number;
  /** Moved files that are older are deleted; 0 for none. */
  readonly maxAgeMs: number;
  /** So many moved files stay; 0 for all. */
  readonly keepFiles: number;
  /** Whether names have local time; UTC otherwise. */
  readonly localTime: boolean;
  /** Whether moved files are compressed. */
  readonly compress: boolean;
}

/** What a rotating file writes to. */
export interface LineTarget {
  write(line: string): unknown;
  /** Opens the file of the path again. */
  reopen(): void;
}

const STAMP = /^-(\d{4})-(\d\d)-(\d\d)T(\d\d)-(\d\d)-(\d\d)\.(\d{3})$/;
const COMPRESSED = ".gz";
/** After a failed move, the file may grow by this before the next attempt. */
const RETRY_BYTES: number = 1 << 20;

export class RotatingFile {
  readonly #path: string;
  readonly #rotation: LogRotation;
  readonly #target: LineTarget;
  readonly #now: () => Date;
  #sizeBytes: number;
  #limitBytes: number;
  /** The time in the name of the last moved file. */
  #movedMs = 0;
  /** The clean-up that runs, and whether another is wanted after it. */
  #cleaning: Promise<void> | undefined;
  #cleanAgain = false;

  /** @param target the open file at `path` */
  constructor(path: string, rotation: LogRotation, target: LineTarget, now = () => new Date()) {
    this.#path = path;
    this.#rotation = rotation;
    this.#target = target;
    this.#now = now;
    this.#sizeBytes = sizeOf(path);
    this.#limitBytes = rotation.maxFileBytes;
  }

  /** Writes a line, in a new file where it does not fit. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#sizeBytes > 0 && this.#sizeBytes + bytes > this.#limitBytes) this.#rotate();
    this.#sizeBytes += bytes;
    this.#target.write(line);
  }

  /** Opens the path again, after another program has moved the file. */
  reopen(): void {
    this.#target.reopen();
    this.#sizeBytes = sizeOf(this.#path);
    this.#limitBytes = this.#rotation.maxFileBytes;
  }

  /** Resolves when no file is being compressed or deleted. */
  async idle(): Promise<void> {
    while (this.#cleaning !== undefined) await this.#cleaning;
  }

  #rotate(): void {
    try {
      renameSync(this.#path, this.#movedPath());
    } catch {
      // A full log is better than a lost line.
      this.#limitBytes = this.#sizeBytes + RETRY_BYTES;
      return;
    }
    this.#target.reopen();
    this.#sizeBytes = 0;
    this.#limitBytes = this.#rotation.maxFileBytes;
    this.#clean();
  }

  /** A name that no moved file has: two may fill up within a millisecond. */
  #movedPath(): string {
    const extension = extname(this.#path);
    const stem = this.#path.slice(0, this.#path.length - extension.length);
    const now = this.#now();
    const offsetMs = this.#rotation.localTime ? now.getTimezoneOffset() * 60_000 : 0;
    const wallMs = Math.max(now.getTime(), this.#movedMs + 1);
    this.#movedMs = wallMs;
    const stamp = new Date(wallMs - offsetMs).toISOString().slice(0, -1).replaceAll(":", "-");
    return `${stem}-${stamp}${extension}`;
  }

  #clean(): void {
    if (this.#cleaning !== undefined) {
      this.#cleanAgain = true;
      return;
    }
    this.#cleaning = this.#cleanUp()
      // A directory that cannot be read or written shows at the next rotation again.
      .catch(() => {})
      .then(() => {
        this.#cleaning = undefined;
        if (!this.#cleanAgain) return;
        this.#cleanAgain = false;
        this.#clean();
      });
  }

  /** Deletes moved files that are too many or too old, and compresses the others. */
  async #cleanUp(): Promise<void> {
    const { keepFiles, maxAgeMs, compress } = this.#rotation;
    const moved = await this.#moved();
    const oldestMs = this.#now().getTime() - maxAgeMs;
    for (const [place, { path, wallMs }] of moved.entries()) {
      const isTooOld = maxAgeMs > 0 && wallMs < oldestMs;
      if (isTooOld || (keepFiles > 0 && place >= keepFiles)) await rm(path, { force: true });
      else if (compress && !path.endsWith(COMPRESSED)) await compressFile(path);
    }
  }

  /** The moved files, the newest first. */
  async #moved(): Promise<{ path: string; wallMs: number }[]> {
    const directory = dirname(this.#path);
    const extension = extname(this.#path);
    const stem = basename(this.#path, extension);
    const found: { path: string; wallMs: number }[] = [];
    for (const name of await readdir(directory)) {
      const plain = name.endsWith(COMPRESSED) ? name.slice(0, -COMPRESSED.length) : name;
      if (!plain.startsWith(stem) || !plain.endsWith(extension)) continue;
      const stamp = STAMP.exec(plain.slice(stem.length, plain.length - extension.length));
      if (stamp === null) continue;
      const [year = 0, month = 1, day, hour, minute, second, ms] = stamp.slice(1).map(Number);
      const wallMs = this.#rotation.localTime
        ? new Date(year, month - 1, day, hour, minute, second, ms).getTime()
        : Date.UTC(year, month - 1, day, hour, minute, second, ms);
      found.push({ path: join(directory, name), wallMs });
    }
    return found.sort((a, b) => b.wallMs - a.wallMs);
  }
}

/** Compresses a file beside it; the original goes when all of it is there. */
async function compressFile(path: string): Promise<void> {
  const partial = `${path}.tmp`;
  // Loaded here: most members compress no log.
  const { createGzip } = process.getBuiltinModule("node:zlib");
  try {
    await pipeline(
      createReadStream(path),
      createGzip(),
      createWriteStream(partial, { mode: statSync(path).mode }),
    );
    await rename(partial, path + COMPRESSED);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
  await rm(path, { force: true });
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
