/** An API server as a process of its own, on a cluster: started, killed and started again. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { endsWithUs } from "../../../../test/support/children.ts";
import type { ApiClient } from "./api-client.ts";

const PROGRAM = join(import.meta.dirname, "../../../../bin/quorate.js");
const START_LIMIT_MS = 60_000;

export const TOKEN = "kill-token";

export class ApiProcess {
  readonly client: ApiClient;
  readonly #flags: readonly string[];
  readonly #logFile: string;
  #child: ChildProcess | undefined;

  /** @param dir for its files; two servers of a cluster share none */
  constructor(dir: string, endpoints: readonly string[], client: ApiClient) {
    mkdirSync(dir, { recursive: true });
    const tokens = join(dir, "tokens.csv");
    writeFileSync(tokens, `${TOKEN},killer,1,"system:masters"\n`);
    this.client = client;
    this.#logFile = join(dir, "server.log");
    this.#flags = [
      `--data-dir=${dir}`,
      `--etcd-servers=${endpoints.join(",")}`,
      `--secure-port=${client.port}`,
      `--token-auth-file=${tokens}`,
      // What is compacted cannot be resumed; a run is shorter than this.
      "--etcd-compaction-interval=0s",
    ];
  }

  /** @param env variables besides those of this process */
  start(env: Readonly<Record<string, string>> = {}): void {
    const log = openSync(this.#logFile, "a");
    this.#child = spawn(process.execPath, [PROGRAM, "apiserver", ...this.#flags], {
      stdio: ["ignore", log, log],
      env: { ...process.env, ...env },
    });
    closeSync(log);
    endsWithUs(this.#child);
  }

  async waitReady(): Promise<void> {
    const endMs = performance.now() + START_LIMIT_MS;
    while (!(await this.client.isReady())) {
      const { exitCode } = this.#child!;
      if (exitCode !== null || performance.now() > endMs)
        throw new Error(`no API server (exit ${exitCode})\n${this.logTail()}`);
      await delay(50);
    }
  }

  /** Kills the process as SIGKILL does; resolves when it is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGKILL");
    await gone;
  }

  log(): string {
    return readFileSync(this.#logFile, "utf8");
  }

  logTail(): string {
    return this.log().slice(-3000);
  }
}
