/**
 * HashKV of the members at each revision that a client compacted: equal wherever members were
 * compacted as far, whatever else is going on.
 */
import { setTimeout as delay } from "node:timers/promises";
import { MaintenanceService } from "@quorate/proto";
import { TestClient } from "../support/client.ts";
import type { RunningCluster } from "./members.ts";

const CALL_LIMIT_MS = 3000;
const ATTEMPTS = 4;
const AGAIN_MS = 400;

export class HashBook {
  readonly #running: RunningCluster;
  /** By revision and what was compacted: who had which hash. */
  readonly #known = new Map<string, { readonly hash: number; readonly name: string }>();
  readonly #asked = new Set<Promise<void>>();
  /** Hashes that were equal to another member's. */
  compared = 0;
  /** The first difference. */
  difference: string | undefined;

  constructor(running: RunningCluster) {
    this.#running = running;
  }

  /** Asks all members that are up for their hash at a revision that was compacted. */
  compare(revision: number): void {
    for (const node of this.#running.nodes) {
      const asked = this.#ask(node.name, revision);
      this.#asked.add(asked);
      asked.finally(() => this.#asked.delete(asked));
    }
  }

  /** Resolves when all that was asked is answered, or is not. */
  async settled(): Promise<void> {
    await Promise.all(this.#asked);
  }

  async #ask(name: string, revision: number): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const node = this.#running.node(name);
      if (node.isUp) {
        const { identity } = this.#running.cluster;
        const client = new TestClient(node.test.clientAddress, identity);
        try {
          const { HashKV } = MaintenanceService.methods;
          const { hash, compactRevision } = await client.call(HashKV, { revision }, CALL_LIMIT_MS);
          this.#note(name, `revision ${revision}, compacted ${compactRevision}`, hash);
          return;
        } catch {
          // It is not so far, or does not answer.
        } finally {
          client.close();
        }
      }
      await delay(AGAIN_MS);
    }
  }

  #note(name: string, at: string, hash: number): void {
    const known = this.#known.get(at);
    if (known === undefined) this.#known.set(at, { hash, name });
    else if (known.hash === hash) this.compared++;
    else
      this.difference ??= `HASH: at ${at} ${name} has ${hash}, and ${known.name} has ${known.hash}`;
  }
}
