/** Programs in Python that use a client, and what they print. */

import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { endsWith } from "../../support/children.ts";
import { until } from "../../support/until.ts";

/** Debian's own Python, which sees Debian's packages; another one on the PATH may not. */
export const PYTHON = "/usr/bin/python3";

/** For a test's `skip` option: false if Debian's Python has the client etcd3. */
export function skipWithoutPython(): string | false {
  try {
    execFileSync(PYTHON, ["-c", "import etcd3"], { stdio: "ignore" });
    return false;
  } catch {
    return "the client etcd3 for Python is not installed (Debian: apt-get install python3-etcd3)";
  }
}

/**
 * None runs as long, on a machine that has much else to do; one that does is killed, and has not
 * ended well.
 */
const PROGRAM_LIMIT_MS = 120_000;

/** A program of this directory as it runs: its lines, and what it complained of. */
export class Program {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #errors = "";

  /** @param python the Python that has the program's packages */
  constructor(python: string, name: string, args: readonly string[]) {
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
    this.#child = endsWith(
      spawn(python, [join(import.meta.dirname, name), ...args], {
        stdio: ["ignore", "pipe", "pipe"],
        env,
      }),
    );
    this.#ended = once(this.#child, "close");
    let rest = "";
    this.#child.stdout!.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!;
      this.lines.push(...lines);
    });
    this.#child.stderr!.on("data", (chunk: Buffer) => {
      this.#errors += chunk;
    });
  }

  /** Waits until it has printed `count` lines. */
  printed(count: number): Promise<void> {
    return until(`it prints ${count} lines`, () => {
      const { exitCode, signalCode } = this.#child;
      const isOver = exitCode !== null || signalCode !== null;
      assert.ok(
        this.lines.length >= count || !isOver,
        `it has ended after ${JSON.stringify(this.lines)}: ${this.#errors}`,
      );
      return this.lines.length >= count;
    });
  }

  /** Waits for its end, which must be a good one. */
  async end(): Promise<void> {
    const late = setTimeout(() => this.kill(), PROGRAM_LIMIT_MS);
    await this.#ended;
    clearTimeout(late);
    assert.equal(this.#child.exitCode, 0, this.#errors);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
