/**
 * A value that is read from files, and read again when they change: keys, passwords, sets of keys.
 *
 * The files are read again every few seconds and compared: they are small, and neither a time stamp
 * nor a watch on a directory shows each way in which files are replaced (a rename, a symbolic link
 * that moves as in Kubernetes, a network file system). A content that cannot be used changes
 * nothing: the value from before stays in force, and a warning and a counter say so.
 */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Clock, Timer } from "../src/clock.ts";
import type { Logger } from "../src/logger.ts";
import { Pauses } from "../src/turns.ts";

/** How often files are read again. */
export const FILE_RELOAD_PERIOD_MS = 5000;
/** A larger file is refused, unless the source has a limit of its own. */
export const MAX_RELOADED_FILE_BYTES: number = 1024 * 1024;
const READ_BYTES = 64 * 1024;
/** A named pipe in the place of a file is empty, instead of holding up what reads it for ever. */
const READ_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/** Contents by path. */
export type FileContents = ReadonlyMap<string, Uint8Array>;

export interface FileSourceDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What a source does with its files. */
export interface FileSourceOptions<T> {
  /** For logs, such as "keys of tokens". */
  readonly what: string;
  readonly paths: readonly string[];
  /** A larger file is refused; default MAX_RELOADED_FILE_BYTES. */
  readonly maxFileBytes?: number;
  /** What is logged where changed files are in use, and where they cannot be used. */
  readonly messages?: { readonly taken: string; readonly kept: string };
  /**
   * The value in the files. Throws Error that says what is wrong with them, without contents.
   * @param pauses long work calls it after each step: requests are served meanwhile
   */
  parse(contents: FileContents, pauses: Pauses): T | Promise<T>;
}

const MESSAGES = {
  taken: "changed files are in use",
  kept: "cannot use changed files; those from before stay in force",
};

export class FileSource<T> {
  readonly #options: FileSourceOptions<T>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #timer: Timer;
  readonly #listeners = new Set<(value: T) => void>();
  #seen: FileContents;
  /** Whether the contents that were seen last could not be used. */
  #isRefused = false;
  /** What was logged last, until the files can be used: files that stay away are said once. */
  #saidReason: string | undefined;
  #value: T;
  #checking: Promise<void> | undefined;
  /** How often changed files were taken, and how often they could not be. */
  reloads = 0;
  failedReloads = 0;
  /** True while the files cannot be used, so that `current` is from before. */
  isStale = false;

  private constructor(
    options: FileSourceOptions<T>,
    { clock, logger }: FileSourceDependencies,
    first: { readonly seen: FileContents; readonly value: T },
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#logger = logger;
    this.#seen = first.seen;
    this.#value = first.value;
    this.#timer = clock.every(FILE_RELOAD_PERIOD_MS, () => void this.check());
  }

  /** Reads the files. Rejects, with the path, for what is wrong with them. `close` ends it. */
  static async open<T>(
    options: FileSourceOptions<T>,
    dependencies: FileSourceDependencies,
  ): Promise<FileSource<T>> {
    const seen = await readAll(options);
    const value = await options.parse(seen, new Pauses(dependencies.clock.turns));
    return new FileSource(options, dependencies, { seen, value });
  }

  /** What the files hold, or held when they could be used last. */
  get current(): T {
    return this.#value;
  }

  /**
   * Calls `listener` with each new value, until the function that it returns is called. Listeners
   * are called in slices, as other long work.
   */
  onChange(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Looks at the files now; resolves when they are taken or a warning is written. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  close(): void {
    this.#timer.cancel();
    this.#listeners.clear();
  }

  async #check(): Promise<void> {
    const { what, paths, parse, messages = MESSAGES } = this.#options;
    const pauses = new Pauses(this.#clock.turns);
    let seen: FileContents | undefined;
    try {
      seen = await readAll(this.#options);
      if (isEqual(seen, this.#seen)) {
        // A file that was gone is there again, as it was.
        this.isStale = this.#isRefused;
        if (!this.isStale) this.#saidReason = undefined;
        return;
      }
      this.#value = await parse(seen, pauses);
    } catch (error) {
      const reason = (error as Error).message;
      // A content that is wrong counts once, a file that cannot be read at each look.
      if (seen !== undefined) {
        this.#seen = seen;
        this.#isRefused = true;
      }
      this.isStale = true;
      this.failedReloads++;
      if (seen === undefined && reason === this.#saidReason) return;
      this.#saidReason = reason;
      this.#logger.warn(messages.kept, {
        what,
        files: paths,
        error: reason,
      });
      return;
    }
    this.#seen = seen;
    this.#isRefused = false;
    this.#saidReason = undefined;
    this.isStale = false;
    this.reloads++;
    this.#logger.info(messages.taken, { what, files: paths });
    for (const listener of [...this.#listeners]) {
      await pauses.next();
      if (this.#listeners.has(listener)) listener(this.#value);
    }
  }
}

function isEqual(some: FileContents, others: FileContents): boolean {
  return [...some].every(([path, bytes]) => {
    const other = others.get(path);
    return other !== undefined && Buffer.compare(bytes, other) === 0;
  });
}

/** The files' contents. Of several that cannot be read the first is named, each time. */
async function readAll<T>({
  paths,
  maxFileBytes = MAX_RELOADED_FILE_BYTES,
}: FileSourceOptions<T>): Promise<FileContents> {
  const contents = new Map<string, Uint8Array>();
  for (const path of paths) {
    try {
      const file = await open(path, READ_FLAGS);
      contents.set(path, await readWhole(file, maxFileBytes).finally(() => file.close()));
    } catch (error) {
      throw new Error(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
    }
  }
  return contents;
}

/** A file's bytes. Rejects for one that is too large, of which no more is read than the limit. */
async function readWhole(file: FileHandle, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (let length = 0; ; ) {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    const { bytesRead } = await file.read(buffer, 0, READ_BYTES, null);
    if (bytesRead === 0) return Buffer.concat(pieces);
    length += bytesRead;
    if (length > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes`);
    pieces.push(buffer.subarray(0, bytesRead));
  }
}
