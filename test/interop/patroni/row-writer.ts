/** The program that inserts rows, and the rows that PostgreSQL acknowledged. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { endsWithUs } from "../../support/children.ts";
import { until } from "../../support/until.ts";
import { PYTHON } from "./installed.ts";

const environment = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };

export class RowWriter {
  /** The rows whose insert was acknowledged, in order. */
  readonly acknowledged: number[] = [];
  /** What was said of inserts that were not. */
  readonly failures: string[] = [];
  /** The longest time in milliseconds between two acknowledgements. */
  longestGapMs = 0;
  readonly #child: ChildProcess;

  /** @param connection a connection string of libpq's with all nodes */
  constructor(connection: string) {
    this.#child = spawn(PYTHON, [join(import.meta.dirname, "writer.py"), connection], {
      stdio: ["pipe", "pipe", "pipe"],
      env: environment,
    });
    endsWithUs(this.#child);
    let lastMs: number | undefined;
    createInterface({ input: this.#child.stdout! }).on("line", (line) => {
      this.acknowledged.push(Number(line));
      const now = performance.now();
      if (lastMs !== undefined) this.longestGapMs = Math.max(this.longestGapMs, now - lastMs);
      lastMs = now;
    });
    createInterface({ input: this.#child.stderr! }).on("line", (line) => this.failures.push(line));
  }

  /** Resolves when `count` rows more than now are acknowledged. */
  async more(count: number): Promise<void> {
    const goal = this.acknowledged.length + count;
    await until(
      `${count} more rows; the writer says: ${this.failures.at(-1)}`,
      () => this.acknowledged.length >= goal,
    );
  }

  /** Ends the program; resolves when it has ended. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "close");
    this.#child.stdin!.end();
    await ended;
  }
}

/** The rows that one PostgreSQL has. */
export function rowsOf(connection: string): Set<number> {
  const text = execFileSync(PYTHON, [join(import.meta.dirname, "rows.py"), connection], {
    encoding: "utf8",
    env: environment,
    maxBuffer: 64 << 20,
  });
  return new Set(text.split("\n").flatMap((line) => (line === "" ? [] : [Number(line)])));
}
