/**
 * TLS options that follow their files while a port is open: certificates are renewed, CAs added and
 * removed, revocation lists grow.
 *
 * The files are read every few seconds and compared as texts. They are small, and neither time
 * stamps nor a watch on a directory detect every replacement (a rename, a moved symbolic link as in
 * Kubernetes, a network file system). Changed options are validated first, so a half-written pair
 * of certificate and key changes nothing. Open connections stay; new ones, in and out, use the new
 * options. A bundle may contain an old and a new CA while both are in use.
 */
import { readFile } from "node:fs/promises";
import type { Clock, Timer } from "../src/clock.ts";
import type { Logger } from "../src/logger.ts";
import { readTlsFiles, type TlsFiles, type TlsOptions } from "./tls.ts";
import { certificateExpiries, checkTlsOptions } from "./tls-check.ts";

/** The source of a port's TLS options. */
export interface TlsSource {
  /** The options for new connections. */
  readonly current: TlsOptions;
  /**
   * Calls `listener` after each change of `current`. Returns the function that unsubscribes.
   */
  onChange(listener: () => void): () => void;
}

/** Wraps constant options as a source; returns a source unchanged. */
export function tlsSource(tls: TlsOptions | TlsSource): TlsSource {
  return "onChange" in tls ? tls : { current: tls, onChange: () => () => {} };
}

/** Interval between reads of the files. */
export const TLS_RELOAD_PERIOD_MS = 5000;

/** A source that follows its files. */
export class TlsFileSource implements TlsSource {
  readonly #files: TlsFiles;
  readonly #paths: readonly string[];
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #timer: Timer;
  readonly #listeners = new Set<() => void>();
  #options: TlsOptions;
  /** The files' contents at the last read, valid or not. */
  #seen: string | undefined;
  #checking: Promise<void> | undefined;
  /** How often changed files were accepted, and how often refused. */
  reloads = 0;
  failedReloads = 0;
  /** True while the files cannot be used, so that `current` is from before. */
  isStale = false;
  /** Whether the contents that were seen last could not be used. */
  #isRefused = false;
  /** What was logged last, until the files can be used: files that stay away are said once. */
  #saidReason: string | undefined;

  /**
   * Reads the files. Throws an Error with the path and the problem. `close` stops further reads.
   */
  constructor(files: TlsFiles, deps: { readonly clock: Clock; readonly logger: Logger }) {
    this.#files = files;
    const { certFile, keyFile, clientCertFile, clientKeyFile, trustedCaFile, crlFile } = files;
    const named = [certFile, keyFile, clientCertFile, clientKeyFile, trustedCaFile, crlFile];
    this.#paths = [
      ...new Set(named.filter((path) => path !== undefined && path !== "")),
    ] as string[];
    this.#clock = deps.clock;
    this.#logger = deps.logger;
    this.#options = readTlsFiles(files);
    checkTlsOptions(files, this.#options);
    this.#warnOfExpired(this.#options);
    this.#timer = deps.clock.every(TLS_RELOAD_PERIOD_MS, () => void this.check());
  }

  get current(): TlsOptions {
    return this.#options;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Reads the files now. Resolves once `current` has their content or a warning was logged. Never
   * rejects.
   */
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
    let isChanged = false;
    try {
      const contents = new Map<string, Buffer>();
      // In order: of several that cannot be read the first is named, each time.
      for (const path of this.#paths) contents.set(path, await readFile(path));
      const seen = [...contents.values()].map((bytes) => bytes.toString("latin1")).join("\0");
      if (seen === this.#seen) {
        this.isStale = this.#isRefused;
        if (!this.isStale) this.#saidReason = undefined;
        return;
      }
      const isFirst = this.#seen === undefined;
      this.#seen = seen;
      isChanged = true;
      this.#isRefused = true;
      const options = readTlsFiles(this.#files, (path) => contents.get(path)!);
      if (
        isFirst &&
        JSON.stringify(comparable(options)) === JSON.stringify(comparable(this.#options))
      ) {
        this.#usable();
        return;
      }
      checkTlsOptions(this.#files, options);
      this.#options = options;
      this.#usable();
      this.reloads++;
      this.#logger.info("TLS files have changed; new connections use them", { files: this.#paths });
      this.#warnOfExpired(options);
    } catch (error) {
      const reason = (error as Error).message;
      this.failedReloads++;
      this.isStale = true;
      // An unreadable file counts at each read, until it is readable.
      if (!isChanged && reason === this.#saidReason) return;
      this.#saidReason = reason;
      this.#logger.warn("cannot use changed TLS files; connections keep the previous ones", {
        files: this.#paths,
        error: reason,
      });
      return;
    }
    for (const listener of [...this.#listeners]) listener();
  }

  #usable(): void {
    this.#isRefused = false;
    this.#saidReason = undefined;
    this.isStale = false;
  }

  /**
   * An expired certificate does not prevent a start, as in etcd: clocks may be wrong, and a new
   * file is loaded while the member runs.
   */
  #warnOfExpired(options: TlsOptions): void {
    for (const { file, notAfterMs } of certificateExpiries(this.#files, options)) {
      if (notAfterMs > this.#clock.wallMs()) continue;
      const fields = { file, "not-after": new Date(notAfterMs).toISOString() };
      this.#logger.warn(
        "a certificate has expired: others refuse connections; replace the file, no restart is needed",
        fields,
      );
    }
  }
}

/** Options as a comparable text. */
function comparable(options: TlsOptions): object {
  return { ...options, revokedSerials: [...(options.revokedSerials ?? [])].sort() };
}
