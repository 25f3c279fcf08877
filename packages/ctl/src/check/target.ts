/**
 * The cluster under check: a client per endpoint, keys below one prefix, and the cleanup.
 */

import type { Invocation } from "@quorate/cli";
import { Exit, ExitCode } from "@quorate/cli";
import type { Client } from "@quorate/client";
import { fromUtf8, quoteBytes } from "@quorate/proto";
import { clientOf, endpointsOf } from "../connect/globals.ts";

/** Timeout of a check's call; longer than the default, because the load slows all calls down. */
const CALL_MS = 30_000;

export class CheckTarget {
  readonly endpoints: readonly string[];
  readonly prefix: string;
  readonly #clients: readonly Client[];
  readonly #invocation: Invocation;
  #turn = 0;

  private constructor(
    invocation: Invocation,
    prefix: string,
    endpoints: readonly string[],
    clients: readonly Client[],
  ) {
    this.#invocation = invocation;
    this.prefix = prefix;
    this.endpoints = endpoints;
    this.#clients = clients;
  }

  /** One client per endpoint, so that all endpoints share the load. */
  static async open(invocation: Invocation, prefix: string): Promise<CheckTarget> {
    const endpoints = await endpointsOf(invocation);
    const clients: Client[] = [];
    for (const endpoint of endpoints)
      clients.push((await clientOf(invocation, [endpoint], { timeoutMs: CALL_MS })).client);
    return new CheckTarget(invocation, prefix, endpoints, clients);
  }

  get #first(): Client {
    return this.#clients[0];
  }

  /** Puts a key below the prefix, at each endpoint in turn. Rejects with ClientError. */
  async put(key: Uint8Array, value: Uint8Array): Promise<void> {
    this.#turn = (this.#turn + 1) % this.#clients.length;
    await this.#clients[this.#turn].put(Buffer.concat([fromUtf8(this.prefix), key]), value);
  }

  /**
   * Throws Exit if there are keys below the prefix.
   * @param command formats the command that deletes them, for the message
   */
  async requireEmpty(command: (text: string) => string): Promise<void> {
    const { kvs } = await this.#first.get(this.prefix, { prefix: true, limit: 1 });
    if (kvs.length === 0) return;
    const prefix = quoteBytes(fromUtf8(this.prefix));
    throw new Exit(
      ExitCode.invalidInput,
      `prefix ${prefix} has keys. Delete with ${command(`quoratectl del --prefix ${this.prefix}`)} first`,
    );
  }

  /** Deletes the keys below the prefix. Returns the revision. Rejects with ClientError. */
  async deleteAll(): Promise<number> {
    return (await this.#first.delete(this.prefix, { prefix: true })).header.revision;
  }

  /** Compacts and defragments if the flags say so. Rejects with ClientError. */
  async tidy(revision: number | undefined): Promise<void> {
    const { flags, io } = this.#invocation;
    if (flags.bool("auto-compact") && revision !== undefined) {
      io.stdout(`Compacting with revision ${revision}\n`);
      await this.#first.compact(revision, { physical: true });
      io.stdout(`Compacted with revision ${revision}\n`);
    }
    if (!flags.bool("auto-defrag")) return;
    for (const [index, endpoint] of this.endpoints.entries()) {
      const shown = quoteBytes(fromUtf8(endpoint));
      io.stdout(`Defragmenting ${shown}\n`);
      await this.#clients[index].defragment(endpoint);
      io.stdout(`Defragmented ${shown}\n`);
    }
  }

  close(): void {
    for (const client of this.#clients) client.close();
  }
}
