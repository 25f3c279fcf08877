/**
 * A reader's terminal: runs blocks of commands in one directory, one after the other; what one
 * block exports the next ones have. Some stay, as a reader would give them a terminal of their own.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endsWithUs } from "../support/children.ts";

/** For machines that have much else to do; no block takes as long. */
const blockLimitMs = 400_000;
/**
 * What a member or a proxy logs when it serves; a block is taken to serve when as many as it starts
 * have.
 */
const readyLine =
  /ready to (?:serve|proxy) client requests|started gRPC proxy|this operator leads/g;

/** A block that stays. */
export interface Served {
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;
}

/** The terminal. `close` ends all that was started in it. */
export class Terminal {
  readonly #cwd: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #exports = join(mkdtempSync(join(tmpdir(), "quorate-terminal-")), "exports");
  readonly #served: Served[] = [];

  /** `env` is what the first block finds; later ones have what was exported, too. */
  constructor(cwd: string, env: NodeJS.ProcessEnv) {
    this.#cwd = cwd;
    this.#env = env;
    writeFileSync(this.#exports, "");
  }

  /**
   * Runs a block to its end and returns what it printed. Rejects, with the block and all that it
   * printed, if any command of it fails.
   */
  run(block: string): Promise<string> {
    const text = `source ${this.#exports}\n${block}\nexport -p > ${this.#exports}`;
    const child = this.#spawn(["-euo", "pipefail", "-c", text]);
    let [stdout, stderr] = ["", ""];
    child.stdout!.setEncoding("utf8").on("data", (piece: string) => (stdout += piece));
    child.stderr!.setEncoding("utf8").on("data", (piece: string) => (stderr += piece));
    return new Promise((resolve, reject) => {
      const failed = (why: string): void =>
        reject(new Error(`${block}\n${why}\n${stdout}\n${stderr}`));
      // With all that it has started in the foreground: what goes on holds the pipes.
      const timer = setTimeout(() => {
        if (child.exitCode === null && child.signalCode === null)
          process.kill(-child.pid!, "SIGKILL");
        failed(`not done within ${blockLimitMs} ms`);
      }, blockLimitMs);
      child.on("close", (code, signal) => {
        clearTimeout(timer);
        if (code === 0) resolve(stdout);
        else failed(`it ended with ${code ?? signal}`);
      });
    });
  }

  /** In a process group of its own, as Control-C reaches all of it. */
  #spawn(args: readonly string[]): ChildProcess {
    const child = spawn("bash", args, {
      cwd: this.#cwd,
      env: this.#env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    endsWithUs(child, true);
    return child;
  }

  /** Starts a block that stays; resolves when its members serve. */
  async serve(block: string): Promise<Served> {
    const text = `source ${this.#exports}\n${block}`;
    const child = this.#spawn(["-c", text]);
    const exit = new Promise<number | null>((resolve) => child.on("exit", resolve));
    const served = { child, exit };
    this.#served.push(served);
    const members = Number(/^for i in ([\d ]+);/m.exec(block)?.[1]?.trim().split(/ +/).length ?? 1);
    let output = "";
    const timer = setTimeout(() => process.kill(-child.pid!, "SIGKILL"), blockLimitMs);
    const ready = new Promise<void>((resolve, reject) => {
      for (const stream of [child.stdout!, child.stderr!]) {
        stream.on("data", (chunk: Buffer) => {
          output += chunk.toString();
          if ((output.match(readyLine)?.length ?? 0) >= members) resolve();
        });
      }
      void exit.then(() => reject(new Error(`${block}ended:\n${output}`)));
    });
    await ready.finally(() => clearTimeout(timer));
    return served;
  }

  /** Ends what stayed. */
  async close(): Promise<void> {
    for (const { child } of this.#served)
      if (child.exitCode === null && child.signalCode === null)
        process.kill(-child.pid!, "SIGKILL");
    await Promise.all(this.#served.map(({ exit }) => exit));
    rmSync(join(this.#exports, ".."), { recursive: true, force: true });
  }
}
