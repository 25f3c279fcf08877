/** Runs of "quoratectl backup run" as processes, which end with the test whatever happens to it. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { endsWith } from "./children.ts";
import { until } from "./until.ts";

/**
 * It looks twice a second whether it is to end, and no call that it waits for then may take longer
 * than 5 s.
 */
const END_LIMIT_MS = 60_000;

export class BackupRun {
  readonly #child: ChildProcess;
  readonly #exit: Promise<number | null>;
  /** What it has said so far, on either stream. */
  output = "";

  /** Starts one for the cluster at `endpoints`; what still runs when the test is over is killed. */
  constructor(
    t: TestContext,
    endpoints: readonly string[],
    dir: string,
    ...flags: readonly string[]
  ) {
    const bin = join(import.meta.dirname, "../../bin/quoratectl.js");
    const args = [
      `--endpoints=${endpoints.join(",")}`,
      "backup",
      "run",
      `--to=${dir}`,
      "--hash-interval=1s",
      ...flags,
    ];
    this.#child = endsWith(
      spawn(process.execPath, [bin, ...args], { stdio: ["ignore", "pipe", "pipe"] }),
    );
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.on("data", (bytes) => (this.output += bytes));
    this.#exit = new Promise((resolve) => this.#child.on("exit", resolve));
    t.after(() => this.end("SIGKILL"));
  }

  /** Waits until the run has said so. */
  async says(pattern: RegExp): Promise<void> {
    await until(`the backup says ${pattern}`, () => {
      const { exitCode, signalCode } = this.#child;
      const isOver = exitCode !== null || signalCode !== null;
      assert.ok(
        pattern.test(this.output) || !isOver,
        `it ended (${exitCode ?? signalCode}) and did not say ${pattern}: ${this.output}`,
      );
      return pattern.test(this.output);
    });
  }

  /**
   * Asks it to end and returns its exit code. Throws if it has not ended within a minute; it is
   * killed then.
   */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number | null> {
    this.#child.kill(signal);
    const late = new AbortController();
    const code = await Promise.race([
      this.#exit,
      delay(END_LIMIT_MS, "late" as const, { signal: late.signal }).catch(() => null),
    ]);
    late.abort();
    if (code !== "late") return code;
    this.#child.kill("SIGKILL");
    throw new Error(
      `the backup did not end within ${END_LIMIT_MS} ms of ${signal}: ${this.output}`,
    );
  }
}
