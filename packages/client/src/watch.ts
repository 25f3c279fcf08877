/**
 * A watch that continues at another member when its own is lost.
 *
 *   const watch = client.watch("config/", { prefix: true });
 *   for await (const { kind, kv } of watch.changes()) console.log(kind, toUtf8(kv.key));
 *
 * It yields every change from its first revision on, once and in order: after a break it is created
 * again from the revision after the last one yielded. It yields the server's responses except those
 * that confirm a creation. The last response may have `canceled` set: the server refused the watch,
 * or compacted the history that it needs.
 */
import { CALLBACK, FLAG, INTEGER, oneOf, type Shape } from "@quorate/host";
import type { ResponseHeader, WatchResponse } from "@quorate/proto";
import { WAIT_SHAPE, type WaitOptions } from "./call-options.ts";
import { type Change, changesOf } from "./changes.ts";
import type { ClientError } from "./errors.ts";
import { RANGE_SHAPE, type RangeOptions } from "./requests.ts";

/**
 * What a watch takes. When the signal is aborted the loop ends. `timeoutMs` is the time for a member
 * to confirm the watch, at first and after each break (default: no limit); the loop throws
 * ClientError DeadlineExceeded then.
 */
export interface WatchOptions extends RangeOptions, WaitOptions {
  /** The first revision to yield; 0 for changes from now on. */
  readonly revision?: number;
  /** Include the previous record with each change. */
  readonly prevKv?: boolean;
  /** The server reports its revision at intervals while nothing changes. */
  readonly progressNotify?: boolean;
  /** Only changes of this kind. */
  readonly only?: Change["kind"];
  /** Called when a member has confirmed the watch, at first and after each break. */
  readonly onCreated?: (header: ResponseHeader) => void;
  /** Called with each break, before the watch is reopened. */
  readonly onBreak?: (error: ClientError) => void;
}

/** The options of a watch, for checkOptions. */
export const WATCH_SHAPE: Shape<WatchOptions> = {
  ...RANGE_SHAPE,
  ...WAIT_SHAPE,
  revision: INTEGER,
  prevKv: FLAG,
  progressNotify: FLAG,
  only: oneOf(["put", "delete"]),
  onCreated: CALLBACK,
  onBreak: CALLBACK,
};

/** What a watch is over: its responses, and how it ends. */
export interface WatchedResponses extends AsyncIterableIterator<WatchResponse, undefined> {
  requestProgress(): void;
  cancel(): void;
}

/** The changes of a range, also over a change of the member: iterate over it, or over changes(). */
export class Watch implements AsyncIterable<WatchResponse>, AsyncDisposable {
  readonly #responses: WatchedResponses;

  /** Made by Client.watch(). */
  constructor(responses: WatchedResponses) {
    this.#responses = responses;
  }

  /** Requests the server's revision, reported once the watch has yielded all changes up to it. */
  requestProgress(): void {
    this.#responses.requestProgress();
  }

  /** Ends the watch; the loop over it ends. */
  cancel(): void {
    this.#responses.cancel();
  }

  /** Ends the watch, as cancel(). */
  async [Symbol.asyncDispose](): Promise<void> {
    this.cancel();
  }

  /**
   * The responses. Iterate once. Throws ClientError for a failure that a retry at another member
   * cannot fix.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<WatchResponse, undefined> {
    return this.#responses;
  }

  /**
   * Every change, one by one, in place of the responses. Iterate once. Throws ClientError where the
   * server ends the watch: with code Compacted if the history that it needs is gone.
   */
  changes(): AsyncGenerator<Change, undefined> {
    return changesOf(this);
  }
}
