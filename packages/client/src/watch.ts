/**
 * A watch that goes on at another member when its own is lost.
 *
 *   const watch = client.watch("config/", { prefix: true });
 *   for await (const { events } of watch) for (const bytes of events)
 *   console.log(Event.decode(bytes));
 *
 * It gives every change from its first revision on, once and in order: after a break it is created
 * anew from the revision after the last one that it gave. What it gives are the server's responses,
 * without the ones that say that a watch was created. The last response may have `canceled` set:
 * the server refused the watch, or the history that it wanted is compacted.
 */
import {
  Event,
  KeyValue,
  WatchCreateRequest,
  type WatchRequest,
  type WatchResponse,
  WatchService,
} from "@quorate/proto";
import { type Caller, pause } from "./caller.ts";
import { ClientError } from "./errors.ts";
import { type Bytes, keyRange, type RangeOptions } from "./requests.ts";
import { Backoff, isStaleToken, mayResume } from "./resume.ts";
import type { ClientStream } from "./stream.ts";

export interface WatchOptions extends RangeOptions {
  /** The first revision to give; 0 for what changes from now on. */
  readonly revision?: number;
  /** With each change, what the key held before. */
  readonly prevKv?: boolean;
  /** Have the server tell its revision from time to time while nothing changes. */
  readonly progressNotify?: boolean;
  /** Told of each break, before the watch is opened again. */
  readonly onBreak?: (error: ClientError) => void;
}

export class Watch implements AsyncIterable<WatchResponse> {
  readonly #caller: Caller;
  readonly #request: WatchCreateRequest;
  readonly #onBreak: (error: ClientError) => void;
  readonly #stop = new AbortController();
  #next: number;
  #stream: ClientStream<WatchRequest, WatchResponse> | undefined;
  #isCreated = false;
  #wantsProgress = false;

  /** Made by Client.watch(). */
  constructor(caller: Caller, key: Bytes, options: WatchOptions) {
    this.#caller = caller;
    this.#next = options.revision ?? 0;
    this.#onBreak = options.onBreak ?? (() => {});
    this.#request = WatchCreateRequest.create({
      ...keyRange(key, options),
      prevKv: options.prevKv ?? false,
      progressNotify: options.progressNotify ?? false,
    });
  }

  /** Asks the server to tell its revision as soon as the watch has given everything up to it. */
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
   * The responses; to be iterated once. Throws ClientError for a failure that no other member would
   * spare.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<WatchResponse, undefined> {
    const backoff = new Backoff();
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
        await pause(this.#caller.timer, backoff.next(), this.#stop.signal);
      }
    } finally {
      this.#stream?.cancel();
    }
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
      // A watch of what comes from now on begins after the revision at which it was created,
      // wherever it is created again.
      if (this.#next === 0) this.#next = revision + 1;
      this.#isCreated = true;
      if (this.#wantsProgress) this.requestProgress();
      this.#wantsProgress = false;
      return;
    }
    const last = events.at(-1);
    if (last !== undefined) this.#next = KeyValue.decode(Event.decode(last).kv!).modRevision + 1;
    else if (revision >= this.#next) this.#next = revision + 1;
  }
}
