/**
 * Copies the keys of one cluster to another and follows their changes: first all keys as of one
 * revision, then the changes of a watch from the next revision on. The changes of one revision
 * become one transaction, unless there are too many. Transactions are idempotent, so calls that
 * fail because a cluster is unavailable are retried until it is back: a mirror runs unattended for
 * months.
 */

import { Exit, ExitCode } from "@quorate/cli";
import { type Client, ClientError, opDelete, opPut, pause, prefixEnd } from "@quorate/client";
import { Backoff, type BackoffOptions } from "@quorate/host";
import {
  concat,
  defined,
  ERRORS,
  Event,
  Event_EventType,
  fromUtf8,
  GrpcCode,
  KeyValue,
  KVService,
  type RequestOp,
} from "@quorate/proto";

/** Pauses before a broken watch is opened again, or a failed call made again. */
const RESUME: BackoffOptions = { firstMs: 100, mostMs: 2000 };

export interface MirrorOptions {
  /** Prefix of the keys to mirror; empty for all. */
  readonly prefix: string;
  /** Prefix at the destination, instead of `prefix`. */
  readonly destPrefix: string;
  /** The first revision to follow, without a first copy; 0 to copy first. */
  readonly revision: number;
  /** Most operations in one transaction at the destination. */
  readonly maxTxnOps: number;
}

/** Receives the events of a mirror. */
export interface MirrorListener {
  /** The watch at the source broke and is reopened. */
  watchBroke(error: ClientError): void;
  /** A call failed and is retried. */
  callFailed(error: ClientError): void;
  /** A retried call succeeded. @param endpoint of the last failure */
  wentOn(endpoint: string | undefined): void;
}

/** Keys per read, as in etcd's client. */
const PAGE_KEYS = 1000;

/** Bytes of keys and values in one transaction of the copy; members accept requests of 1.5 MiB. */
const TXN_MAX_BYTES = 512 * 1024;

export class Mirror {
  readonly #from: Client;
  readonly #to: Client;
  readonly #options: MirrorOptions;
  readonly #prefix: Uint8Array;
  readonly #destPrefix: Uint8Array;
  readonly #listener: MirrorListener;
  /** Keys put and deleted so far. */
  count = 0;

  constructor(from: Client, to: Client, options: MirrorOptions, listener: MirrorListener) {
    this.#from = from;
    this.#to = to;
    this.#options = options;
    this.#prefix = fromUtf8(options.prefix);
    this.#destPrefix = fromUtf8(options.destPrefix);
    this.#listener = listener;
  }

  /**
   * Copies and follows until `stop` is aborted. Rejects with ClientError for errors that a retry
   * cannot fix, and with Exit if the source compacted changes that are still needed.
   */
  async run(stop: AbortSignal): Promise<void> {
    // A pending call to an unavailable cluster must not delay the end; it ends with its client.
    const stopped = new Promise<void>((resolve) =>
      stop.addEventListener("abort", () => resolve(), { once: true }),
    );
    await Promise.race([this.#copyAndFollow(stop), stopped]);
  }

  async #copyAndFollow(stop: AbortSignal): Promise<void> {
    const first =
      this.#options.revision > 1 ? this.#options.revision : (await this.#copy(stop)) + 1;
    if (!stop.aborted) await this.#follow(first, stop);
  }

  /** Retries a call until it succeeds or fails permanently. */
  async #patiently<T>(stop: AbortSignal, call: () => Promise<T>): Promise<T> {
    const backoff = new Backoff(RESUME);
    let failure: ClientError | undefined;
    for (;;) {
      try {
        const result = await call();
        if (failure !== undefined && !stop.aborted) this.#listener.wentOn(failure.endpoint);
        return result;
      } catch (error) {
        if (stop.aborted || !mayPass(error)) throw error;
        failure = error;
        this.#listener.callFailed(error);
      }
      await pause(this.#from.timer, backoff.nextMs(), stop);
    }
  }

  /** Returns the revision of the copy. */
  async #copy(stop: AbortSignal): Promise<number> {
    let revision = 0;
    const everything = new Uint8Array(1);
    const rangeEnd = this.#prefix.length === 0 ? everything : prefixEnd(this.#prefix);
    let start = this.#prefix.length === 0 ? everything : this.#prefix;
    for (;;) {
      const { header, kvs, more } = await this.#patiently(stop, () =>
        this.#from.get(start, { rangeEnd, limit: PAGE_KEYS, revision }),
      );
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
      if (
        ops.length >= this.#options.maxTxnOps ||
        (ops.length > 0 && sizeBytes + size > TXN_MAX_BYTES)
      ) {
        await this.#send(ops, stop);
        ops = [];
        sizeBytes = 0;
      }
      ops.push(opPut(this.#renamed(key), value));
      sizeBytes += size;
    }
    await this.#send(ops, stop);
  }

  async #follow(revision: number, stop: AbortSignal): Promise<void> {
    const backoff = new Backoff(RESUME);
    for (let next = revision; !stop.aborted; ) {
      const watch = this.#from.watch(this.#prefix, {
        prefix: true,
        revision: next,
        onBreak: (error) => this.#listener.watchBroke(error),
      });
      const cancel = (): void => watch.cancel();
      stop.addEventListener("abort", cancel);
      try {
        for await (const response of watch) {
          if (response.compactRevision > 0) throw new Exit(ExitCode.error, ERRORS.Compacted.text);
          if (response.canceled) throw new Exit(ExitCode.error, response.cancelReason);
          next = Math.max(next, (await this.#applyEvents(response.events, stop)) + 1);
        }
      } catch (error) {
        if (stop.aborted || !mayPass(error)) throw error;
        this.#listener.watchBroke(error);
      } finally {
        stop.removeEventListener("abort", cancel);
      }
      await pause(this.#from.timer, backoff.nextMs(), stop);
    }
  }

  /** Returns the revision of the last one, or 0. */
  async #applyEvents(events: readonly Uint8Array[], stop: AbortSignal): Promise<number> {
    let ops: RequestOp[] = [];
    let revision = 0;
    for (const bytes of events) {
      const event = Event.decode(bytes);
      const { key, value, modRevision } = KeyValue.decode(defined(event.kv, "the kv"));
      if (modRevision !== revision || ops.length >= this.#options.maxTxnOps) {
        await this.#send(ops, stop);
        ops = [];
      }
      revision = modRevision;
      ops.push(
        event.type === Event_EventType.DELETE
          ? opDelete(this.#renamed(key))
          : opPut(this.#renamed(key), value),
      );
    }
    await this.#send(ops, stop);
    return revision;
  }

  async #send(ops: RequestOp[], stop: AbortSignal): Promise<void> {
    if (ops.length === 0) return;
    await this.#patiently(stop, () =>
      this.#to.call(KVService.methods.Txn, { compare: [], success: ops, failure: [] }, true),
    );
    this.count += ops.length;
  }

  #renamed(key: Uint8Array): Uint8Array {
    return concat([this.#destPrefix, key.subarray(this.#prefix.length)]);
  }
}

/**
 * Whether the error passes once a cluster is back, has a leader, or has space again; not for a bad
 * request.
 */
function mayPass(error: unknown): error is ClientError {
  if (!(error instanceof ClientError)) return false;
  const { grpcCode, code } = error;
  if (grpcCode === GrpcCode.Unavailable || grpcCode === GrpcCode.DeadlineExceeded) return true;
  // With a text of etcd's, the store is full or the server overloaded; otherwise a message is too
  // large.
  return grpcCode === GrpcCode.ResourceExhausted && code !== "ResourceExhausted";
}
