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
import { Backoff, CALLBACK, checkOptions, FLAG, INTEGER, oneOf, type Shape } from "@quorate/host";
import {
  defined,
  Event,
  KeyValue,
  type ResponseHeader,
  WatchCreateRequest,
  WatchCreateRequest_FilterType,
  type WatchResponse,
  WatchService,
} from "@quorate/proto";
import { WAIT_SHAPE, type WaitOptions } from "./call-options.ts";
import { pause } from "./caller.ts";
import { type Change, changesOf } from "./changes.ts";
import { ClientError, deadlineError } from "./errors.ts";
import { type Bytes, keyRange, RANGE_SHAPE, type RangeOptions } from "./requests.ts";
import { isStaleToken, mayResume, REOPEN } from "./resume.ts";
import type { WatchPlace, WatchStreams } from "./watch-streams.ts";

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

/** What the server leaves out. */
const FILTERS: Readonly<Record<Change["kind"], number>> = {
  put: WatchCreateRequest_FilterType.NODELETE,
  delete: WatchCreateRequest_FilterType.NOPUT,
};

/** The changes of a range, also over a change of the member: iterate over it, or over changes(). */
export class Watch implements AsyncIterable<WatchResponse>, AsyncDisposable {
  readonly #streams: WatchStreams;
  readonly #request: WatchCreateRequest;
  readonly #onBreak: (error: ClientError) => void;
  readonly #onCreated: ((header: ResponseHeader) => void) | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #timeoutMs: number | undefined;
  #isCancelled = false;
  /** Ends a pause after a break. */
  #pausing: AbortController | undefined;
  /** Cancels the timer of a confirmation. */
  #confirmed: () => void = () => {};
  #next: number;
  #place: WatchPlace | undefined;
  /** It has a stream of its own, as its program fell behind. */
  #isAlone = false;
  /** The present creation is the first one, or follows a break. */
  #isNews = true;
  #isCreated = false;
  /** No progress was reported since it was requested. */
  #wantsProgress = false;
  /** Whether the time of a confirmation runs. */
  #isWaiting = false;
  /** Whether it ran out. */
  #isLate = false;

  /** Made by Client.watch(). Throws TypeError for a wrong key or option. */
  constructor(streams: WatchStreams, key: Bytes, options: WatchOptions) {
    checkOptions("watch", options, WATCH_SHAPE);
    this.#streams = streams;
    this.#signal = options.signal;
    this.#timeoutMs = options.timeoutMs;
    this.#next = options.revision ?? 0;
    this.#onBreak = options.onBreak ?? (() => {});
    this.#onCreated = options.onCreated;
    this.#request = WatchCreateRequest.create({
      ...keyRange("watch", key, options),
      prevKv: options.prevKv ?? false,
      progressNotify: options.progressNotify ?? false,
      filters: options.only === undefined ? [] : [FILTERS[options.only]],
    });
  }

  /** Requests the server's revision, reported once the watch has yielded all changes up to it. */
  requestProgress(): void {
    this.#wantsProgress = true;
    if (this.#isCreated) this.#place?.requestProgress();
  }

  /** Ends the watch; the loop over it ends. */
  cancel(): void {
    this.#isCancelled = true;
    this.#pausing?.abort();
    this.#place?.cancel();
  }

  /** Ends the watch, as cancel(). */
  async [Symbol.asyncDispose](): Promise<void> {
    this.cancel();
  }

  /**
   * The responses. Iterate once. Throws ClientError for a failure that a retry at another member
   * cannot fix.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<WatchResponse, undefined> {
    const backoff = new Backoff(REOPEN);
    const cancel = (): void => this.cancel();
    try {
      if (this.#signal?.aborted) cancel();
      else this.#signal?.addEventListener("abort", cancel);
      while (!this.#isCancelled) {
        try {
          this.#awaitConfirmation();
          const place = this.#open();
          for (let response = await place.next(); response; response = await place.next()) {
            if (response.canceled && isStaleToken(response.cancelReason)) break;
            if (response.canceled) {
              yield response;
              return;
            }
            backoff.reset();
            this.#advance(response);
            if (!response.created) yield response;
          }
          this.#isCreated = false;
          this.#isNews = !place.hasLeft;
          if (place.hasLeft) {
            this.#isAlone = true;
            continue;
          }
        } catch (error) {
          if (this.#isCancelled) break;
          if (!(error instanceof ClientError) || !mayResume(error)) throw error;
          this.#isCreated = false;
          this.#isNews = true;
          this.#onBreak(error);
        }
        await this.#pause(backoff.nextMs());
      }
      if (this.#isLate) throw deadlineError({ method: WatchService.methods.Watch.path });
    } finally {
      this.#confirmed();
      this.#signal?.removeEventListener("abort", cancel);
      this.#place?.cancel();
    }
  }

  async #pause(delayMs: number): Promise<void> {
    if (this.#isCancelled) return;
    this.#pausing = new AbortController();
    await pause(this.#streams.timer, delayMs, this.#pausing.signal);
    this.#pausing = undefined;
  }

  /** Unless a member confirms the watch in time, it ends. */
  #awaitConfirmation(): void {
    if (this.#timeoutMs === undefined || this.#isWaiting) return;
    this.#isWaiting = true;
    this.#confirmed = this.#streams.timer.after(this.#timeoutMs, () => {
      this.#isLate = true;
      this.cancel();
    });
  }

  /**
   * Every change, one by one, in place of the responses. Iterate once. Throws ClientError where the
   * server ends the watch: with code Compacted if the history that it needs is gone.
   */
  changes(): AsyncGenerator<Change, undefined> {
    return changesOf(this);
  }

  #open(): WatchPlace {
    const request = { ...this.#request, startRevision: this.#next };
    this.#place = this.#streams.open(request, this.#isAlone);
    return this.#place;
  }

  #advance({ header, created, events }: WatchResponse): void {
    const revision = header?.revision ?? 0;
    if (created) {
      // A watch from now on starts behind the revision of its first creation, also when it is
      // created again.
      if (this.#next === 0) this.#next = revision + 1;
      this.#isCreated = true;
      this.#isWaiting = false;
      this.#confirmed();
      if (this.#wantsProgress) this.requestProgress();
      if (this.#isNews) this.#onCreated?.(defined(header, "the header"));
      return;
    }
    const last = events.at(-1);
    if (last !== undefined)
      this.#next = KeyValue.decode(defined(Event.decode(last).kv, "the kv")).modRevision + 1;
    else {
      this.#wantsProgress = false;
      if (revision >= this.#next) this.#next = revision + 1;
    }
  }
}
