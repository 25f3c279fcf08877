/**
 * How long the machine itself stood still while a test took a time: the longest that this process
 * waited for its turn, and that a small file of its own took to reach the disk. A member can do
 * nothing then either, so a limit of time is meant on top of that.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const TURN_MS = 20;
const SYNC_EVERY_MS = 50;

export class MachinePauses {
  /** The longest so far, in milliseconds. */
  longestMs = 0;
  #stopped = false;
  readonly #loops: Promise<unknown>;

  /** Looks from now on until `stop`. @param dir where the members' data lie */
  constructor(dir: string) {
    this.#loops = Promise.all([this.#turns(), this.#syncs(mkdtempSync(join(dir, "pauses-")))]);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loops;
  }

  #note(ms: number): void {
    this.longestMs = Math.max(this.longestMs, ms);
  }

  async #turns(): Promise<void> {
    while (!this.#stopped) {
      const fromMs = performance.now();
      await delay(TURN_MS);
      this.#note(performance.now() - fromMs - TURN_MS);
    }
  }

  async #syncs(dir: string): Promise<void> {
    const file = await open(join(dir, "synced"), "w");
    try {
      while (!this.#stopped) {
        const fromMs = performance.now();
        await file.write(Buffer.alloc(1), 0, 1, 0);
        await file.datasync();
        this.#note(performance.now() - fromMs);
        await delay(SYNC_EVERY_MS);
      }
    } finally {
      await file.close();
      rmSync(dir, { recursive: true, force: true });
    }
  }
}
