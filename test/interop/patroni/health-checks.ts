/** Health checks as a load balancer makes them, all the time, and those that failed. */
import { setTimeout as delay } from "node:timers/promises";
import type { PatroniNode } from "./node.ts";

const EVERY_MS = 250;
/** HAProxy's own default limit is as long as its interval; a busy machine has more time here. */
const LIMIT_MS = 5000;

export class HealthChecks {
  /** Checks that were made. */
  count = 0;
  /** Those that failed though they were expected to succeed. */
  readonly failures: string[] = [];
  readonly #expected = new Map<PatroniNode, readonly string[]>();
  readonly #loop: Promise<void>;
  #isStopped = false;

  constructor() {
    this.#loop = this.#run();
  }

  /** From now on these paths of the node's REST API must respond with 200; none to ask nothing. */
  expect(node: PatroniNode, ...paths: string[]): void {
    this.#expected.set(node, paths);
  }

  /** Ends the checks; resolves when none is open. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#loop;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const checks = [...this.#expected].flatMap(([node, paths]) =>
        paths.map((path) => this.#check(node, path, paths)),
      );
      await Promise.all(checks);
      await delay(EVERY_MS);
    }
  }

  async #check(node: PatroniNode, path: string, paths: readonly string[]): Promise<void> {
    const status = await node.asks(path, LIMIT_MS);
    // What is expected may have changed meanwhile.
    if (this.#expected.get(node) !== paths) return;
    this.count++;
    if (status !== 200)
      this.failures.push(`${new Date().toISOString()} ${node.name}${path}: ${status}`);
  }
}
