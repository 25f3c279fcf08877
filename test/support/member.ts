/** One member as a real process: started, killed, frozen and started again by a test. */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type ClientIdentity, createHealthProbe } from "../../scripts/cluster/health.ts";
import { endsWithUs } from "./children.ts";

/** What a member needs to be started, however often. */
export interface MemberOptions {
  readonly name: string;
  readonly command: readonly string[];
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly clientUrl: string;
  readonly peerUrl: string;
  readonly dataDir: string;
  readonly logFile: string;
  /** Whether a process of its own reads the log from a socket, as journald does. */
  readonly hasLogReader?: boolean;
  /** For probes over TLS. */
  readonly identity: ClientIdentity;
}

/** A member's end: how it left. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class TestMember {
  readonly options: MemberOptions;
  #child: ChildProcess | undefined;
  #reader: ChildProcess | undefined;
  #exit: Promise<Exit> = Promise.resolve({ code: null, signal: null });

  constructor(options: MemberOptions) {
    this.options = options;
  }

  get name(): string {
    return this.options.name;
  }

  get clientUrl(): string {
    return this.options.clientUrl;
  }

  /** Host and port for gRPC. */
  get clientAddress(): string {
    return new URL(this.options.clientUrl).host;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /**
   * Starts the process; it is ready when `waitReady` says so. `extraFlags` come last, so that they
   * win over the usual ones.
   */
  start(extraFlags: readonly string[] = []): void {
    if (this.#child !== undefined) throw new Error(`${this.name} runs already`);
    const { command, flags, logFile, env } = this.options;
    const file = openSync(logFile, "a");
    const reader =
      this.options.hasLogReader === true
        ? spawn("cat", { stdio: ["pipe", file, "ignore"] })
        : undefined;
    const log = reader?.stdin ?? file;
    const child = spawn(command[0], [...command.slice(1), ...flags, ...extraFlags], {
      stdio: ["ignore", log, log],
      env: { ...process.env, ...env },
    });
    closeSync(file);
    endsWithUs(child);
    if (reader !== undefined) {
      endsWithUs(reader);
      reader.stdin!.on("error", () => {}).destroy();
      this.#reader = reader;
    }
    this.#child = child;
    this.#exit = new Promise((resolve) => {
      const gone = (exit: Exit): void => {
        const end = (): void => {
          if (this.#child === child) this.#child = undefined;
          resolve(exit);
        };
        if (reader === undefined || reader.exitCode !== null) {
          end();
          return;
        }
        // All that was logged is in the file before the end is known.
        reader.kill("SIGCONT");
        reader.once("exit", end);
      };
      child.once("exit", (code, signal) => gone({ code, signal }));
      child.once("error", ({ message }) => {
        appendFileSync(logFile, `${message}\n`);
        gone({ code: null, signal: null });
      });
    });
  }

  /** Sends a signal to the process. SIGSTOP freezes it, SIGCONT thaws it. */
  signal(signal: NodeJS.Signals): void {
    if (this.#child === undefined) throw new Error(`${this.name} does not run`);
    this.#child.kill(signal);
  }

  /** Stops what reads the log, and lets it go on; harmless where there is none. */
  signalLogReader(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#reader?.kill(signal);
  }

  /** Resolves when the process has ended. */
  get exited(): Promise<Exit> {
    return this.#exit;
  }

  /** kill -9; resolves when the process is gone. Harmless if it is gone already. */
  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#exit;
  }

  /** SIGTERM; resolves with how it left. Throws when it has not gone after `limitMs`. */
  async terminate(limitMs = 60_000): Promise<Exit> {
    this.#child?.kill("SIGTERM");
    const late = new AbortController();
    const result = await Promise.race([
      this.#exit,
      delay(limitMs, undefined, { signal: late.signal }).catch(() => undefined),
    ]);
    late.abort();
    if (result === undefined)
      throw new Error(`${this.name} did not stop within ${limitMs} ms of SIGTERM`);
    return result;
  }

  /**
   * Resolves when GET /health says true. Throws when the process ends before that, or after
   * `limitMs`.
   */
  async waitReady(limitMs = 120_000): Promise<void> {
    const probe = createHealthProbe(this.options.identity);
    const endMs = performance.now() + limitMs;
    try {
      let trouble = await probe.trouble(this.clientUrl);
      while (trouble !== undefined) {
        if (!this.isRunning) {
          const { code, signal } = await this.#exit;
          throw new MemberDied(
            this.name,
            `${this.name} ended while starting (code ${code}, signal ${signal})`,
            this.log(),
          );
        }
        if (performance.now() > endMs)
          throw new Error(`${this.name} is not ready after ${limitMs} ms: ${trouble}`);
        await delay(30);
        trouble = await probe.trouble(this.clientUrl);
      }
    } finally {
      await probe.close();
    }
  }

  /** Everything that the process has written so far, over all its starts. */
  log(): string {
    return existsSync(this.options.logFile) ? readFileSync(this.options.logFile, "utf8") : "";
  }

  /** The last lines of the log. */
  logTail(lines = 40): string {
    return this.log().trimEnd().split("\n").slice(-lines).join("\n");
  }
}

/** A member that ended when it should have become ready. */
export class MemberDied extends Error {
  readonly #log: string;

  constructor(name: string, message: string, log: string) {
    super(`${message}\n--- log of ${name}\n${log.trimEnd().split("\n").slice(-20).join("\n")}`);
    this.#log = log;
  }

  /** True if it ended because another process took its port between our look and its start. */
  get portWasTaken(): boolean {
    return /address already in use|EADDRINUSE/i.test(this.#log);
  }
}
