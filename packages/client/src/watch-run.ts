/**
 * The iteration over a watch: it takes the responses from the watch's place on a stream, and gets
 * it another place when a stream broke. It is no async generator, of which a client with thousands
 * of watches would hold one for each.
 */
import { Backoff, checkOptions } from "@quorate/host";
import {
  defined,
  Event,
  KeyValue,
  WatchCreateRequest,
  WatchCreateRequest_FilterType,
  type WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { Change } from "./changes.ts";
import { ClientError, deadlineError } from "./errors.ts";
import { type Bytes, keyRange } from "./requests.ts";
import { isStaleToken, mayResume, REOPEN } from "./resume.ts";
import { WATCH_SHAPE, Watch, type WatchedResponses, type WatchOptions } from "./watch.ts";
import type { WatchPlace, WatchStreams } from "./watch-streams.ts";

type Result = IteratorResult<WatchResponse, undefined>;

/** Who waits for a response. */
interface Waiting {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

const DONE: Result = { done: true, value: undefined };

/** What the server leaves out. */
const FILTERS: Readonly<Record<Change["kind"], number>> = {
  put: WatchCreateRequest_FilterType.NODELETE,
  delete: WatchCreateRequest_FilterType.NOPUT,
};

const NO_FILTERS: number[] = [];

/** A watch, which begins when it is iterated. Throws TypeError for a wrong key or option. */
export function newWatch(streams: WatchStreams, key: Bytes, options: WatchOptions): Watch {
  checkOptions("watch", options, WATCH_SHAPE);
  const request = WatchCreateRequest.create({
    ...keyRange("watch", key, options),
    startRevision: options.revision ?? 0,
    prevKv: options.prevKv ?? false,
    progressNotify: options.progressNotify ?? false,
    filters: options.only === undefined ? NO_FILTERS : [FILTERS[options.only]],
  });
  return new Watch(new WatchRun(streams, request, options));
}

class WatchRun implements WatchedResponses {
  readonly #streams: WatchStreams;
  readonly #request: WatchCreateRequest;
  readonly #options: WatchOptions;
  #backoff: Backoff | undefined;
  /** The first revision that has not come. */
  #next: number;
  /** The present one, or the last one; undefined before the first response is asked for. */
  #place: WatchPlace | undefined;
  #waiting: Waiting | undefined;
  #isOver = false;
  /** It has a stream of its own. */
  #isAlone: boolean;
  /** The present creation is the first one, or follows a break. */
  #isNews = true;
  #isCreated = false;
  /** No progress was reported since it was requested. */
  #wantsProgress = false;
  /** Ends the pause after a break. */
  #forgetPause: (() => void) | undefined;
  /** Ends the time for a confirmation. */
  #forgetLimit: (() => void) | undefined;
  /** Leaves the signal. */
  #forgetSignal: (() => void) | undefined;

  /** @param request with the first revision to yield */
  constructor(streams: WatchStreams, request: WatchCreateRequest, options: WatchOptions) {
    this.#streams = streams;
    this.#request = request;
    this.#next = request.startRevision;
    this.#isAlone = request.progressNotify;
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Call it again when it has resolved. */
  next(): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      if (this.#isOver) this.#finish();
      else if (this.#place !== undefined) this.arrived();
      else this.#start();
    });
  }

  async return(): Promise<Result> {
    this.#finish();
    return DONE;
  }

  requestProgress(): void {
    this.#wantsProgress = true;
    if (this.#isCreated) this.#place?.requestProgress();
  }

  cancel(): void {
    this.#finish();
  }

  /** The place has a response, or its end. */
  arrived(): void {
    if (this.#waiting === undefined) return;
    try {
      this.#step();
    } catch (error) {
      // Thrown by the program's own functions, too.
      this.#finish(error);
    }
  }

  #start(): void {
    const { signal } = this.#options;
    if (signal?.aborted) {
      this.#finish();
      return;
    }
    if (signal !== undefined) {
      const stop = (): void => this.#finish();
      signal.addEventListener("abort", stop);
      this.#forgetSignal = () => signal.removeEventListener("abort", stop);
    }
    this.#open();
  }

  #open(): void {
    this.#forgetPause = undefined;
    const { timeoutMs } = this.#options;
    if (timeoutMs !== undefined)
      this.#forgetLimit ??= this.#streams.timer.after(timeoutMs, () =>
        this.#finish(deadlineError({ method: WatchService.methods.Watch.path })),
      );
    const request = { ...this.#request, startRevision: this.#next };
    this.#place = this.#streams.open(request, this, this.#isAlone);
    this.arrived();
  }

  /** Takes responses until one is for the program. Throws ClientError. */
  #step(): void {
    for (;;) {
      const place = defined(this.#place, "a place");
      const response = place.take();
      if (response === undefined) {
        if (place.isOver) this.#leave(place);
        return;
      }
      if (response.canceled && isStaleToken(response.cancelReason)) continue;
      if (!response.canceled) {
        this.#backoff?.reset();
        this.#advance(response);
      }
      if (response.created && !response.canceled) continue;
      this.#yield({ done: false, value: response });
      if (response.canceled) this.#finish();
      return;
    }
  }

  #yield(result: Result): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(result);
  }

  /** Goes on elsewhere: at once where the stream was good for others, after a pause else. */
  #leave({ error, hasLeft }: WatchPlace): void {
    this.#isCreated = false;
    this.#isNews = !hasLeft;
    if (hasLeft) {
      this.#isAlone = true;
      this.#open();
      return;
    }
    if (error !== undefined) {
      if (!(error instanceof ClientError) || !mayResume(error)) throw error;
      this.#options.onBreak?.(error);
    }
    if (this.#isOver) return;
    this.#backoff ??= new Backoff(REOPEN);
    this.#forgetPause = this.#streams.timer.after(this.#backoff.nextMs(), () => this.#open());
  }

  #advance({ header, created, events }: WatchResponse): void {
    const revision = header?.revision ?? 0;
    if (created) {
      // A watch from now on starts behind the revision of its first creation, also when it is
      // created again.
      if (this.#next === 0) this.#next = revision + 1;
      this.#isCreated = true;
      this.#forgetLimit?.();
      this.#forgetLimit = undefined;
      if (this.#wantsProgress) this.requestProgress();
      if (this.#isNews) this.#options.onCreated?.(defined(header, "the header"));
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

  /** Ends the watch, and who waits gets the error, or that it is over. */
  #finish(error?: unknown): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (!this.#isOver) {
      this.#isOver = true;
      this.#forgetPause?.();
      this.#forgetLimit?.();
      this.#forgetSignal?.();
      this.#place?.cancel();
    }
    if (error === undefined) waiting?.resolve(DONE);
    else waiting?.reject(error);
  }
}
