/**
 * A key that others wait for: while it is there they stand still. The key is that of Barrier of
 * etcd's recipes for Go (client/v3/experimental/recipes/barrier.go).
 */
import { check, checkOptions, ID, TEXT } from "@quorate/host";
import {
  CALL_SHAPE,
  type CallOptions,
  splitOptions,
  WAIT_SHAPE,
  type WaitOptions,
} from "./call-options.ts";
import type { Client } from "./client.ts";
import { waitChange } from "./queue.ts";
import { compareVersion, opPut } from "./requests.ts";
import { Wait } from "./wait.ts";

const HOLD_CALL = { lease: ID, ...CALL_SHAPE };

/** All wait while its key is there, and go on when it is gone. */
export class Barrier {
  readonly #client: Client;
  readonly #key: string;

  /** Throws TypeError for a key that is no text. */
  constructor(client: Client, key: string) {
    check("barrier", "key", key, TEXT);
    this.#client = client;
    this.#key = key;
  }

  /**
   * Puts the barrier up; false if it is up already. With a lease it falls when that ends. Rejects
   * with ClientError.
   */
  async hold(options: { lease?: bigint } & CallOptions = {}): Promise<boolean> {
    const [{ lease = 0n }, call] = splitOptions("hold", options, HOLD_CALL);
    const compare = [compareVersion(this.#key, "=", 0)];
    const success = [opPut(this.#key, "", { lease })];
    return (await this.#client.txn({ compare, success }, call)).succeeded;
  }

  /** Takes the barrier away: all who wait go on. Rejects with ClientError. */
  async release(options: CallOptions = {}): Promise<void> {
    await this.#client.delete(this.#key, options);
  }

  /**
   * Resolves when there is no barrier. Rejects with the signal's reason when it is aborted, after
   * `timeoutMs` (default: no limit) with ClientError DeadlineExceeded, and with ClientError.
   */
  async wait(options: WaitOptions = {}): Promise<void> {
    checkOptions("wait", options, WAIT_SHAPE);
    using wait = new Wait(this.#client.timer, options);
    const { signal } = wait;
    try {
      for (;;) {
        const { header, count } = await this.#client.get(this.#key, { countOnly: true, signal });
        if (count === 0) return;
        const options = { revision: header.revision + 1, signal };
        await waitChange(this.#client, "delete", this.#key, options);
      }
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    }
  }
}
