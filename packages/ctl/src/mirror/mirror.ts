/**
 * Copying the keys of one cluster to another and following their changes: first all of them as of one revision, then what a watch gives
 * from the next revision on. All puts and deletions of a revision become one transaction, unless there are too many; doing one twice
 * changes nothing, so what fails on the way is tried again.
 */
import type { Client, ClientError } from "@quorate/client";
import { opDelete, opPut, prefixEnd } from "@quorate/client";
import { concat, ERRORS, Event, Event_EventType, fromUtf8, KeyValue, KVService, type RequestOp } from "@quorate/proto";
import { Exit, ExitCode } from "../io.ts";

export interface MirrorOptions {
  /** Which keys; empty for all. */
  readonly prefix: string;
  /** What takes the prefix's place at the destination. */
  readonly destPrefix: string;
  /** The first revision to follow, without a copy of what was before; 0 for a copy first. */
  readonly revision: number;
  /** Operations in one transaction at the destination. */
  readonly maxTxnOps: number;
}

/** Keys asked for at once, as in etcd's client. */
const PAGE_KEYS = 1000;

/** Keys and values of one transaction of the copy; members take requests of 1.5 MiB. */
const TXN_MAX_BYTES = 512 * 1024;

export class Mirror {
  readonly #from: Client;
  readonly #to: Client;
  readonly #options: MirrorOptions;
  readonly #prefix: Uint8Array;
  readonly #destPrefix: Uint8Array;
  readonly #onBreak: (error: ClientError) => void;
  /** Keys put and deleted so far. */
  count = 0;

  /** @param onBreak told when the watch at the source breaks */
  constructor(from: Client, to: Client, options: MirrorOptions, onBreak: (error: ClientError) => void) {
    this.#from = from;
    this.#to = to;
    this.#options = options;
    this.#prefix = fromUtf8(options.prefix);
    this.#destPrefix = fromUtf8(options.destPrefix);
    this.#onBreak = onBreak;
  }

  /** Copies and follows until `stop` is aborted. Rejects with ClientError, and with Exit where the changes to follow were compacted. */
  async run(stop: AbortSignal): Promise<void> {
    const first = this.#options.revision > 1 ? this.#options.revision : (await this.#copy(stop)) + 1;
    if (!stop.aborted) await this.#follow(first, stop);
  }

  /** Gives the revision that was copied. */
  async #copy(stop: AbortSignal): Promise<number> {
    let revision = 0;
    const everything = new Uint8Array(1);
    const rangeEnd = this.#prefix.length === 0 ? everything : prefixEnd(this.#prefix);
    let start = this.#prefix.length === 0 ? everything : this.#prefix;
    for (;;) {
      const { header, kvs, more } = await this.#from.get(start, { rangeEnd, limit: PAGE_KEYS, revision });
      if (revision === 0) revision = header.revision;
      await this.#putAll(kvs, stop);
      const last = kvs.at(-1);
      if (!more || last === undefined || stop.aborted) return revision;
      start = concat([last.key, new Uint8Array(1)]);
    }
  }

  async #putAll(kvs: readonly KeyValue[], stop: AbortSignal): Promise<void> {
    let ops: RequestOp[] = [];
    let sizeBytes = 0;
    for (const { key, value } of kvs) {
      if (stop.aborted) return;
      const size = key.length + value.length;
      if (ops.length >= this.#options.maxTxnOps || (ops.length > 0 && sizeBytes + size > TXN_MAX_BYTES)) {
        await this.#send(ops);
        ops = [];
        sizeBytes = 0;
      }
      ops.push(opPut(this.#renamed(key), value));
      sizeBytes += size;
    }
    await this.#send(ops);
  }

  async #follow(revision: number, stop: AbortSignal): Promise<void> {
    const watch = this.#from.watch(this.#prefix, { prefix: true, revision, onBreak: this.#onBreak });
    const cancel = (): void => watch.cancel();
    stop.addEventListener("abort", cancel);
    try {
      for await (const response of watch) {
        if (response.compactRevision > 0) throw new Exit(ExitCode.error, ERRORS.Compacted.text);
        if (response.canceled) throw new Exit(ExitCode.error, response.cancelReason);
        await this.#applyEvents(response.events);
      }
    } finally {
      stop.removeEventListener("abort", cancel);
    }
  }

  async #applyEvents(events: readonly Uint8Array[]): Promise<void> {
    let ops: RequestOp[] = [];
    let revision = 0;
    for (const bytes of events) {
      const event = Event.decode(bytes);
      const { key, value, modRevision } = KeyValue.decode(event.kv!);
      if (modRevision !== revision || ops.length >= this.#options.maxTxnOps) {
        await this.#send(ops);
        ops = [];
      }
      revision = modRevision;
      ops.push(event.type === Event_EventType.DELETE ? opDelete(this.#renamed(key)) : opPut(this.#renamed(key), value));
    }
    await this.#send(ops);
  }

  async #send(ops: RequestOp[]): Promise<void> {
    if (ops.length === 0) return;
    await this.#to.call(KVService.methods.Txn, { compare: [], success: ops, failure: [] }, true);
    this.count += ops.length;
  }

  #renamed(key: Uint8Array): Uint8Array {
    return concat([this.#destPrefix, key.subarray(this.#prefix.length)]);
  }
}
