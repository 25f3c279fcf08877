/** A node of PostgreSQL under Patroni, as a machine of its own: it starts, stops and dies whole. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";
import { endsWithUs } from "../../support/children.ts";
import { asMachine, PATRONI, postgresOwner } from "./installed.ts";

/** What a node needs to be started, however often. */
export interface NodeOptions {
  readonly name: string;
  /** Below it are the configuration, the log and the database; the user of PostgreSQL's owns it. */
  readonly dir: string;
  /** Patroni's configuration, YAML. */
  readonly configuration: string;
  readonly postgresPort: number;
  readonly restPort: number;
}

export class PatroniNode {
  readonly options: NodeOptions;
  #child: ChildProcess | undefined;

  constructor(options: NodeOptions) {
    this.options = options;
    writeFileSync(this.#file("patroni.yml"), options.configuration);
    if (postgresOwner !== undefined)
      execFileSync("chown", ["-R", postgresOwner, options.dir], { stdio: "ignore" });
  }

  get name(): string {
    return this.options.name;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  #file(name: string): string {
    return join(this.options.dir, name);
  }

  /** Starts Patroni, which starts PostgreSQL. */
  start(): void {
    if (this.#child !== undefined) throw new Error(`${this.name} runs already`);
    const log = openSync(this.#file("patroni.log"), "a", 0o644);
    const [command, ...args] = [...asMachine, PATRONI, this.#file("patroni.yml")];
    const child = spawn(command, args, {
      cwd: this.options.dir,
      stdio: ["ignore", log, log],
      env: { PATH: process.env["PATH"], HOME: this.options.dir, PYTHONDONTWRITEBYTECODE: "1" },
    });
    closeSync(log);
    endsWithUs(child);
    this.#child = child;
    child.once("exit", () => {
      if (this.#child === child) this.#child = undefined;
    });
  }

  /** kill -9 for Patroni, PostgreSQL and all else on the node at once; resolves when it is gone. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  /**
   * SIGTERM for Patroni, which stops PostgreSQL and releases its key; resolves when all have ended.
   */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const gone = once(child, "exit");
    // The first process of the namespace: unshare itself forwards no signal.
    const children = `/proc/${child.pid}/task/${child.pid}/children`;
    process.kill(Number(readFileSync(children, "utf8").trim().split(" ")[0]), "SIGTERM");
    await gone;
  }

  /** What Patroni has logged. */
  log(): string {
    return readFileSync(this.#file("patroni.log"), "utf8");
  }

  /**
   * Status code of a path of Patroni's REST API, as a load balancer asks: 200 on /primary where
   * this is the primary. 0 if nothing responds within `limitMs`.
   */
  async asks(path: string, limitMs = 2000): Promise<number> {
    try {
      const { statusCode, body } = await request(
        `http://127.0.0.1:${this.options.restPort}${path}`,
        { signal: AbortSignal.timeout(limitMs) },
      );
      await body.dump();
      return statusCode;
    } catch {
      return 0;
    }
  }
}
