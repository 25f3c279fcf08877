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
import { Backoff, CALLBACK, checkOptions, FLAG, INTEGER, type Shape } from "@quorate/host";
import {
  defined,
  Event,
  KeyValue,
  WatchCreateRequest,
  type WatchRequest,
  type WatchResponse,
  WatchService,
} from "@quorate/proto";
import { type Caller, pause } from "./caller.ts";
import { type Change, changesOf } from "./changes.ts";
import { ClientError } from "./errors.ts";
import { type Bytes, keyRange, RANGE_SHAPE, type RangeOptions } from "./requests.ts";
import { isStaleToken, mayResume, REOPEN } from "./resume.ts";
import type { ClientStream } from "./stream.ts";

export interface WatchOptions extends RangeOptions {
  /** The first revision to yield; 0 for changes from now on. */
  readonly revision?: number;
  /** Include the previous record with each change. */
  readonly prevKv?: boolean;
  /** The server reports its revision at intervals while nothing changes. */
  readonly progressNotify?: boolean;
  /** Called with each break, before the watch is reopened. */
  readonly onBreak?: (error: ClientError) => void;
}

const WATCH_SHAPE: Shape<WatchOptions> = {
  ...RANGE_SHAPE,
  revision: INTEGER,
  prevKv: FLAG,
  progressNotify: FLAG,
  onBreak: CALLBACK,
};

export class Watch implements AsyncIterable<WatchResponse> {
  readonly #caller: Caller;
  readonly #request: WatchCreateRequest;
  readonly #onBreak: (error: ClientError) => void;
  readonly #stop = new AbortController();
  #next: number;
  #stream: ClientStream<WatchRequest, WatchResponse> | undefined;
  #isCreated = false;
  #wantsProgress = false;

  /** Made by Client.watch(). Throws TypeError for a wrong key or option. */
  constructor(caller: Caller, key: Bytes, options: WatchOptions) {
    checkOptions("watch", options, WATCH_SHAPE);
    this.#caller = caller;
    this.#next = options.revision ?? 0;
    this.#onBreak = options.onBreak ?? (() => {});
    this.#request = WatchCreateRequest.create({
      ...keyRange("watch", key, options),
      prevKv: options.prevKv ?? false,
      progressNotify: options.progressNotify ?? false,
    });
  }

  /** Requests the server's revision, reported once the watch has yielded all changes up to it. */
  requestProgress(): void {
    if (!this.#isCreated) this.#wantsProgress = true;
    else this.#stream?.send({ requestUnion: { case: "progressRequest", value: {} } });
  }

  /** Ends the watch; the loop over it ends. */
  cancel(): void {
    this.#stop.abort();
    this.#stream?.cancel();
  }

  /**
   * The responses. Iterate once. Throws ClientError for a failure that a retry at another member
   * cannot fix.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<WatchResponse, undefined> {
    const backoff = new Backoff(REOPEN);
    let renewToken = false;
    try {
      while (!this.#stop.signal.aborted) {
        try {
          for await (const response of await this.#open(renewToken)) {
            renewToken = response.canceled && isStaleToken(response.cancelReason);
            if (renewToken) break;
            if (response.canceled) {
              yield response;
              return;
            }
            backoff.reset();
            this.#advance(response);
            if (!response.created) yield response;
          }
        } catch (error) {
          if (this.#stop.signal.aborted) return;
          if (!(error instanceof ClientError) || !mayResume(error)) throw error;
          renewToken = isStaleToken(error.message);
          this.#onBreak(error);
        }
        this.#isCreated = false;
        await pause(this.#caller.timer, backoff.nextMs(), this.#stop.signal);
      }
    } finally {
      this.#stream?.cancel();
    }
  }

  /**
   * Every change, one by one, in place of the responses. Iterate once. Throws ClientError where the
   * server ends the watch: with code Compacted if the history that it needs is gone.
   */
  changes(): AsyncGenerator<Change, undefined> {
    return changesOf(this);
  }

  async #open(renewToken: boolean): Promise<ClientStream<WatchRequest, WatchResponse>> {
    const stream = await this.#caller.stream(WatchService.methods.Watch, undefined, {
      requireLeader: true,
      renewToken,
    });
    this.#stream = stream;
    if (this.#stop.signal.aborted) stream.cancel();
    else
      stream.send({
        requestUnion: {
          case: "createRequest",
          value: { ...this.#request, startRevision: this.#next },
        },
      });
    return stream;
  }

  #advance({ header, created, events }: WatchResponse): void {
    const revision = header?.revision ?? 0;
    if (created) {
      // A watch from now on starts behind the revision of its first creation, also when it is
      // created again.
      if (this.#next === 0) this.#next = revision + 1;
      this.#isCreated = true;
      if (this.#wantsProgress) this.requestProgress();
      this.#wantsProgress = false;
      return;
    }
    const last = events.at(-1);
    if (last !== undefined)
      this.#next = KeyValue.decode(defined(Event.decode(last).kv, "the kv")).modRevision + 1;
    else if (revision >= this.#next) this.#next = revision + 1;
  }
}
