/**
 * TLS options that may change while a port is open: certificates are renewed, authorities added and
 * withdrawn, revocation lists grow.
 *
 * The files are read again every few seconds and compared as texts: they are small, and neither a
 * time stamp nor a watch on a folder tells of every way in which they are replaced (a rename, a
 * symbolic link that moves as in Kubernetes, a network file system). What has changed is tried
 * before it is taken, so that a half-written pair of certificate and key changes nothing.
 * Connections that are open stay open; new ones, in and out, get the new options. A bundle may hold
 * an old authority beside a new one for as long as both are in use.
 */
import { readFile } from "node:fs/promises";
import type { Clock, Timer } from "../src/clock.ts";
import type { Logger } from "../src/logger.ts";
import { readTlsFiles, type TlsFiles, type TlsOptions } from "./tls.ts";
import { certificateExpiries, checkTlsOptions } from "./tls-check.ts";

/** Where a port gets its TLS options from. */
export interface TlsSource {
  /** The options for a connection that begins now. */
  readonly current: TlsOptions;
  /**
   * Calls `listener` after each change of `current`, until the function that it gives is called.
   */
  onChange(listener: () => void): () => void;
}

/** Options that never change, or a source, as a source. */
export function tlsSource(tls: TlsOptions | TlsSource): TlsSource {
  return "onChange" in tls ? tls : { current: tls, onChange: () => () => {} };
}

/** How often files are read again. */
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
  /** The files' contents at the last look, good or not. */
  #seen: string | undefined;
  #checking: Promise<void> | undefined;
  /** How often changed files were taken, and how often they could not be. */
  reloads = 0;
  failedReloads = 0;
  /** True while the files cannot be used, so that `current` is from before. */
  isStale = false;
  /** Whether the contents that were seen last could not be used. */
  #isRefused = false;

  /**
   * Reads the files; throws, with the path, what is wrong with them. `close` ends the reading
   * again.
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
   * Looks at the files now; resolves when `current` is what they say, or a warning says why it is
   * not. Never rejects.
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
    try {
      const contents = new Map(
        await Promise.all(this.#paths.map(async (path) => [path, await readFile(path)] as const)),
      );
      const seen = [...contents.values()].map((bytes) => bytes.toString("latin1")).join("\0");
      if (seen === this.#seen) {
        this.isStale = this.#isRefused;
        return;
      }
      const isFirst = this.#seen === undefined;
      this.#seen = seen;
      this.#isRefused = true;
      const options = readTlsFiles(this.#files, (path) => contents.get(path)!);
      if (
        isFirst &&
        JSON.stringify(comparable(options)) === JSON.stringify(comparable(this.#options))
      ) {
        this.#isRefused = false;
        this.isStale = false;
        return;
      }
      checkTlsOptions(this.#files, options);
      this.#options = options;
      this.#isRefused = false;
      this.isStale = false;
      this.reloads++;
      this.#logger.info("TLS files have changed; new connections use them", { files: this.#paths });
      this.#warnOfExpired(options);
    } catch (error) {
      const reason = (error as Error).message;
      this.failedReloads++;
      this.isStale = true;
      // A file that cannot be read says so at each look: it is looked at again until it can.
      this.#logger.warn("cannot use changed TLS files; connections go on with those from before", {
        files: this.#paths,
        error: reason,
      });
      return;
    }
    for (const listener of [...this.#listeners]) listener();
  }

  /**
   * An expired certificate is no reason not to start, as in etcd: clocks may be wrong, and a new
   * file is taken while the member runs.
   */
  #warnOfExpired(options: TlsOptions): void {
    for (const { file, notAfterMs } of certificateExpiries(this.#files, options)) {
      if (notAfterMs > this.#clock.wallMs()) continue;
      const fields = { file, "not-after": new Date(notAfterMs).toISOString() };
      this.#logger.warn(
        "a certificate has expired: others refuse connections; put a new one in its place, no restart is needed",
        fields,
      );
    }
  }
}

/** Options in a form that compares. */
function comparable(options: TlsOptions): object {
  return { ...options, revokedSerials: [...(options.revokedSerials ?? [])].sort() };
}
