/**
 * The cluster under check: a client per endpoint, keys below one prefix, and the cleanup.
 */

import type { Invocation } from "@quorate/cli";
import { Exit, ExitCode } from "@quorate/cli";
import type { Client } from "@quorate/client";
import { defined, fromUtf8, quoteBytes } from "@quorate/proto";
import { clientOf, endpointsOf } from "../connect/globals.ts";

/** Timeout of a check's call; longer than the default, because the load slows all calls down. */
const CALL_MS = 30_000;

interface Place {
  readonly endpoint: string;
  readonly client: Client;
}

export class CheckTarget {
  readonly prefix: string;
  readonly #places: readonly Place[];
  readonly #invocation: Invocation;
  #turn = 0;

  /** @param places at least one */
  private constructor(invocation: Invocation, prefix: string, places: readonly Place[]) {
    this.#invocation = invocation;
    this.prefix = prefix;
    this.#places = places;
  }

  /** One client per endpoint, so that all endpoints share the load. */
  static async open(invocation: Invocation, prefix: string): Promise<CheckTarget> {
    const places: Place[] = [];
    for (const endpoint of await endpointsOf(invocation)) {
      const { client } = await clientOf(invocation, [endpoint], { timeoutMs: CALL_MS });
      places.push({ endpoint, client });
    }
    return new CheckTarget(invocation, prefix, places);
  }

  get firstEndpoint(): string {
    return this.#at(0).endpoint;
  }

  get #first(): Client {
    return this.#at(0).client;
  }

  #at(turn: number): Place {
    return defined(this.#places[turn % this.#places.length], "an endpoint");
  }

  /** Puts a key below the prefix, at each endpoint in turn. Rejects with ClientError. */
  async put(key: Uint8Array, value: Uint8Array): Promise<void> {
    const { client } = this.#at(++this.#turn);
    await client.put(Buffer.concat([fromUtf8(this.prefix), key]), value);
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
    for (const { endpoint, client } of this.#places) {
      const shown = quoteBytes(fromUtf8(endpoint));
      io.stdout(`Defragmenting ${shown}\n`);
      await client.defragment(endpoint);
      io.stdout(`Defragmented ${shown}\n`);
    }
  }

  close(): void {
    for (const { client } of this.#places) client.close();
  }
}
