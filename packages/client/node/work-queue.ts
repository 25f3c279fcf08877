/**
 * A queue of values that many programs fill and empty; each value goes to one of them. The keys are
 * those of Queue of etcd's recipes for Go (client/v3/experimental/recipes/queue.go).
 */
import { check, checkOptions, TEXT } from "@quorate/host";
import { toUtf8 } from "@quorate/proto";
import { type CallOptions, WAIT_SHAPE, type WaitOptions } from "../src/call-options.ts";
import type { Client } from "../src/client.ts";
import { text, type ValueCodec } from "../src/codec.ts";
import { ClientError } from "../src/errors.ts";
import { waitChange } from "../src/queue.ts";
import { compareModRevision, compareVersion, opDelete, opPut } from "../src/requests.ts";
import { Wait } from "../src/wait.ts";

/** Values that are read at a time, since others may take the first ones. */
const READ_AHEAD = 10;

/** A queue of values, each of which one program takes. */
export class WorkQueue<Out = string, In = Out> {
  readonly #client: Client;
  readonly #prefix: string;
  readonly #codec: ValueCodec<Out, In>;

  /** Made by workQueue(). */
  constructor(client: Client, name: string, codec: ValueCodec<Out, In>) {
    check("workQueue", "name", name, TEXT);
    this.#client = client;
    this.#prefix = `${name}/`;
    this.#codec = codec;
  }

  /** Adds a value at the end. Rejects with ClientError, and with InvalidValueError. */
  async put(value: In, options?: CallOptions): Promise<void> {
    const key = `${this.#prefix}${crypto.randomUUID()}`;
    const success = [opPut(key, await this.#codec.encode(value, key))];
    await this.#client.txn({ compare: [compareVersion(key, "=", 0)], success }, options);
  }

  /**
   * Takes the oldest value, and waits where there is none. The value is gone from the queue then,
   * whatever becomes of this program. Rejects with the signal's reason, after `timeoutMs` (default:
   * no limit) with ClientError DeadlineExceeded, with ClientError (where `mayHaveHappened`, a value
   * may be lost), and with InvalidValueError.
   */
  async take(options: WaitOptions = {}): Promise<Out> {
    checkOptions("take", options, WAIT_SHAPE);
    using wait = new Wait(this.#client.timer, options);
    const { signal } = wait;
    try {
      for (;;) {
        const { header, kvs } = await this.#client.get(this.#prefix, {
          prefix: true,
          sortBy: "mod",
          order: "ascend",
          limit: READ_AHEAD,
          signal,
        });
        for (const { key, value, modRevision } of kvs) {
          const compare = [compareModRevision(key, "=", modRevision)];
          // Not ended by the signal: it would be unknown whether the value is taken.
          const { succeeded } = await this.#client.txn({ compare, success: [opDelete(key)] });
          if (succeeded) return await this.#codec.decode(value, toUtf8(key));
          signal.throwIfAborted();
        }
        if (kvs.length > 0) continue;
        const options = { prefix: true, revision: header.revision + 1, signal };
        await waitChange(this.#client, "put", this.#prefix, options);
      }
    } catch (error) {
      const isOpen = error instanceof ClientError && error.mayHaveHappened;
      throw signal.aborted && !isOpen ? signal.reason : error;
    }
  }

  /**
   * Takes values until the loop is left, or the signal is aborted. Throws as take() rejects, for
   * example when no value came for `timeoutMs`.
   */
  async *values(options: WaitOptions = {}): AsyncGenerator<Out, undefined> {
    const { signal } = options;
    for (;;) {
      let value: Out;
      try {
        value = await this.take(options);
      } catch (error) {
        if (signal?.aborted && error === signal.reason) return;
        throw error;
      }
      yield value;
    }
  }

  /** As values(). */
  [Symbol.asyncIterator](): AsyncGenerator<Out, undefined> {
    return this.values();
  }
}

/** The queue of that name; without a codec its values are texts. */
export function workQueue(client: Client, name: string): WorkQueue;
export function workQueue<Out, In = Out>(
  client: Client,
  name: string,
  codec: ValueCodec<Out, In>,
): WorkQueue<Out, In>;
export function workQueue(
  client: Client,
  name: string,
  codec: ValueCodec<string> = text,
): WorkQueue {
  return new WorkQueue(client, name, codec);
}
