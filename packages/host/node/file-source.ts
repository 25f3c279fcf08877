/**
 * A value that is read from files, and read again when they change: keys, passwords, sets of keys.
 *
 * The files are read again every few seconds and compared: they are small, and neither a time stamp
 * nor a watch on a directory shows each way in which files are replaced (a rename, a symbolic link
 * that moves as in Kubernetes, a network file system). A content that cannot be used changes
 * nothing: the value from before stays in force, and a warning and a counter say so.
 */
import { open } from "node:fs/promises";
import type { Clock, Timer } from "../src/clock.ts";
import type { Logger } from "../src/logger.ts";

/** How often files are read again. */
export const FILE_RELOAD_PERIOD_MS = 5000;
/** A larger file is refused. */
export const MAX_RELOADED_FILE_BYTES: number = 1024 * 1024;

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
  /** The value in the files. Throws Error that says what is wrong with them, without contents. */
  parse(contents: FileContents): T | Promise<T>;
}

export class FileSource<T> {
  readonly #options: FileSourceOptions<T>;
  readonly #logger: Logger;
  readonly #timer: Timer;
  readonly #listeners = new Set<(value: T) => void>();
  #seen: string;
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
    first: { readonly seen: string; readonly value: T },
  ) {
    this.#options = options;
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
    const contents = await readAll(options.paths);
    const value = await options.parse(contents);
    return new FileSource(options, dependencies, { seen: textOf(contents), value });
  }

  /** What the files hold, or held when they could be used last. */
  get current(): T {
    return this.#value;
  }

  /** Calls `listener` with each new value, until the function that it returns is called. */
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
    const { what, paths, parse } = this.#options;
    let seen: string | undefined;
    try {
      const contents = await readAll(paths);
      seen = textOf(contents);
      if (seen === this.#seen) {
        // A file that was gone is there again, as it was.
        this.isStale = this.#isRefused;
        if (!this.isStale) this.#saidReason = undefined;
        return;
      }
      this.#value = await parse(contents);
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
      this.#logger.warn("cannot use changed files; those from before stay in force", {
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
    this.#logger.info("changed files are in use", { what, files: paths });
    for (const listener of [...this.#listeners]) listener(this.#value);
  }
}

function textOf(contents: FileContents): string {
  return [...contents.values()].map((bytes) => Buffer.from(bytes).toString("latin1")).join("\0");
}

/** The files' contents. Of several that cannot be read the first is named, each time. */
async function readAll(paths: readonly string[]): Promise<FileContents> {
  const contents = new Map<string, Uint8Array>();
  for (const path of paths) contents.set(path, await read(path));
  return contents;
}

/** A file's bytes. Rejects with the path and the reason; a file that is too large is not read. */
async function read(path: string): Promise<Uint8Array> {
  try {
    const file = await open(path, "r");
    try {
      const buffer = Buffer.alloc(MAX_RELOADED_FILE_BYTES + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length);
        length += bytesRead;
        if (bytesRead === 0 || length === buffer.length) break;
      }
      if (length === buffer.length)
        throw new Error(`it is longer than ${MAX_RELOADED_FILE_BYTES} bytes`);
      return Uint8Array.from(buffer.subarray(0, length));
    } finally {
      await file.close();
    }
  } catch (error) {
    throw new Error(`cannot read ${path}: ${(error as Error).message}`);
  }
}
