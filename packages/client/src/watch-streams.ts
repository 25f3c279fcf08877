/**
 * The streams on which the watches of a client are. Watches share a stream, as in etcd's Go client,
 * since a stream costs more than a watch, here and at the member:
 *
 *     shared    up to MAX_WATCHES watches. It is read at once, so none waits for another; what a
 *               program has not taken yet waits with its watch.
 *     alone     the stream of one watch that is to be told of its progress, whose program fell
 *               behind, or which got a response that is too large for the client. It is read as the
 *               program takes the responses: what it does not take holds the member back.
 *
 * A server tells the progress of a whole stream, and does not while one of its watches is behind,
 * or begins after the present revision, which may last for ever where nothing is written. So a
 * watch whose question stays open leaves the others.
 *
 * A watch is created under an id of its own. A server may give it another one (etcd's gRPC proxy
 * does), and confirms in any order then: so the first creation of a stream goes alone, and where
 * the server chose the id, the others go one by one.
 */
import {
  type WatchCreateRequest,
  type WatchRequest,
  type WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { Caller } from "./caller.ts";
import { ClientError } from "./errors.ts";
import { isStaleToken } from "./resume.ts";
import type { ClientStream } from "./stream.ts";

/** What streams of watches need of the client. */
export type StreamCaller = Pick<Caller, "stream" | "timer">;

/** Watches of a stream; the next ones have another. */
export const MAX_WATCHES = 1000;
/** Bytes of events that wait for the program before its watch leaves a shared stream. */
export const MAX_WAITING_BYTES: number = 256 * 1024;
/** After this time a request for progress is repeated, on a stream of its own. */
const PROGRESS_RETRY_MS = 500;
/** Above the ids that servers choose, which count from 0. */
const FIRST_ID: number = 1 << 20;
/** The id that stands for no watch, or for all of a stream (etcd: clientv3.InvalidWatchID). */
const NO_WATCH_ID = -1;

/** All streams of watches of a client. */
export class WatchStreams {
  readonly #caller: StreamCaller;
  readonly #shared = new Set<WatchStream>();
  #renewToken = false;

  constructor(caller: StreamCaller) {
    this.#caller = caller;
  }

  get timer(): StreamCaller["timer"] {
    return this.#caller.timer;
  }

  /** Creates a watch; what comes of it, the place tells. */
  open(request: WatchCreateRequest, listener: PlaceListener, isAlone: boolean): WatchPlace {
    const stream = isAlone ? this.#begin(true) : (this.#withRoom() ?? this.#begin(false));
    return stream.add(request, listener);
  }

  /** No further watch goes to the stream. @param renewToken its token is not accepted any more */
  leave(stream: WatchStream, renewToken: boolean): void {
    const wasShared = this.#shared.delete(stream);
    if (renewToken && (wasShared || stream.isAlone)) this.#renewToken = true;
  }

  #withRoom(): WatchStream | undefined {
    for (const stream of this.#shared) if (stream.size < MAX_WATCHES) return stream;
    return undefined;
  }

  #begin(isAlone: boolean): WatchStream {
    const stream = new WatchStream(this, this.#caller, isAlone);
    if (!isAlone) this.#shared.add(stream);
    const renewToken = this.#renewToken;
    this.#renewToken = false;
    void stream.run(renewToken);
    return stream;
  }
}

/** Whose place it is. */
export interface PlaceListener {
  /** The place has a response, or its end. */
  arrived(): void;
}

/** One watch on a stream: a queue of its responses. */
export class WatchPlace {
  /** As the server names it, once it has confirmed it. */
  id: number;
  readonly #stream: WatchStream;
  readonly #listener: PlaceListener;
  #queue: WatchResponse[] | undefined;
  #waitingBytes = 0;
  #isOver = false;
  #error: unknown;
  #hasLeft = false;
  #drained: (() => void) | undefined;

  constructor(stream: WatchStream, listener: PlaceListener, id: number) {
    this.#stream = stream;
    this.#listener = listener;
    this.id = id;
  }

  /** No response comes behind those that wait. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Why it is over, if the stream failed. */
  get error(): unknown {
    return this.#error;
  }

  /** The watch has to go on alone. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** The next response, if there is one. */
  take(): WatchResponse | undefined {
    const response = this.#queue?.shift();
    if (response === undefined) return undefined;
    this.#waitingBytes -= sizeOf(response);
    if (this.#queue?.length === 0) {
      this.#queue = undefined;
      this.#drained?.();
    }
    return response;
  }

  /** Requests a response with the revision up to which the watch has all changes. */
  requestProgress(): void {
    this.#stream.requestProgress(this);
  }

  /** Ends the watch: responses that wait are dropped. */
  cancel(): void {
    this.#queue = undefined;
    this.#isOver = true;
    this.#drained?.();
    this.#stream.remove(this);
  }

  push(response: WatchResponse): void {
    if (this.#isOver) return;
    this.#queue ??= [];
    this.#queue.push(response);
    this.#waitingBytes += sizeOf(response);
    this.#listener.arrived();
  }

  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#drained?.();
    this.#listener.arrived();
  }

  /** Ends it here, so that it goes on alone. */
  leave(): void {
    this.#stream.remove(this);
    this.#hasLeft = true;
    this.end();
  }

  /** Resolves when no response waits, or at the end. */
  async drained(): Promise<void> {
    if (this.#queue === undefined || this.#isOver) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
    this.#drained = undefined;
  }
}

/** A watch whose creation was not sent yet. */
interface Unsent {
  readonly place: WatchPlace;
  readonly request: WatchCreateRequest;
}

/** One stream, with the watches that are on it. */
class WatchStream {
  readonly isAlone: boolean;
  readonly #owner: WatchStreams;
  readonly #caller: StreamCaller;
  #stream: ClientStream<WatchRequest, WatchResponse> | undefined;
  #isOver = false;
  #nextId = FIRST_ID;
  /** Whether watches get the ids that they are created under; undefined until one has. */
  #takesIds: boolean | undefined;
  readonly #unsent: Unsent[] = [];
  /** Those whose creation is not confirmed, in order: a refusal has no id. */
  readonly #creating: WatchPlace[] = [];
  readonly #confirmed = new Map<number, WatchPlace>();
  /** Those for which the present request for progress is, and those that came since. */
  #asked = new Set<WatchPlace>();
  #asking = new Set<WatchPlace>();
  #forgetRetry = (): void => {};

  constructor(owner: WatchStreams, caller: StreamCaller, isAlone: boolean) {
    this.#owner = owner;
    this.#caller = caller;
    this.isAlone = isAlone;
  }

  get size(): number {
    return this.#unsent.length + this.#creating.length + this.#confirmed.size;
  }

  add(request: WatchCreateRequest, listener: PlaceListener): WatchPlace {
    const place = new WatchPlace(this, listener, this.#nextId++);
    this.#unsent.push({ place, request });
    this.#create();
    return place;
  }

  /** Takes a watch off that has ended. */
  remove(place: WatchPlace): void {
    const at = this.#unsent.findIndex((one) => one.place === place);
    if (at !== -1) this.#unsent.splice(at, 1);
    // One that is being created is cancelled once the server has named it.
    if (this.#confirmed.get(place.id) === place) this.#drop(place);
    this.#asked.delete(place);
    this.#asking.delete(place);
    this.#endIfEmpty();
  }

  requestProgress(place: WatchPlace): void {
    this.#asking.add(place);
    if (this.#asked.size === 0) this.#askProgress();
  }

  /** Opens the stream and reads it to its end. */
  async run(renewToken: boolean): Promise<void> {
    try {
      const { Watch } = WatchService.methods;
      const options = { requireLeader: true, renewToken };
      this.#stream = await this.#caller.stream(Watch, undefined, options);
      if (this.#isOver) this.#stream.cancel();
      this.#create();
      for await (const response of this.#stream) {
        const place = this.#take(response);
        const relieved = place && this.#relieve(place);
        if (relieved !== undefined) await relieved;
      }
      this.#end();
    } catch (error) {
      this.#end(error);
    }
  }

  #create(): void {
    if (this.#stream === undefined) return;
    while (this.#takesIds === true || this.#creating.length === 0) {
      const next = this.#unsent.shift();
      if (next === undefined) return;
      this.#creating.push(next.place);
      const value = { ...next.request, watchId: next.place.id };
      this.#stream.send({ requestUnion: { case: "createRequest", value } });
    }
  }

  /** Hands a response on. Returns the place where it waits. */
  #take(response: WatchResponse): WatchPlace | undefined {
    const id = Number(response.watchId);
    if (response.created) return this.#confirm(response, id);
    if (id === NO_WATCH_ID) {
      this.#progressed(response);
      return undefined;
    }
    const place = this.#confirmed.get(id);
    if (place === undefined) return undefined;
    // The server keeps a watch whose history it has compacted until it is cancelled.
    if (response.canceled) this.#drop(place);
    place.push(response);
    if (!response.canceled) return place;
    place.end();
    this.#endIfEmpty();
    return undefined;
  }

  #confirm(response: WatchResponse, id: number): WatchPlace | undefined {
    const named = this.#creating.findIndex((one) => one.id === id);
    const [place] = this.#creating.splice(Math.max(0, named), 1);
    if (place === undefined) return undefined;
    if (response.canceled) {
      if (isStaleToken(response.cancelReason)) this.#owner.leave(this, true);
      place.push(response);
      place.end();
    } else {
      this.#takesIds ??= place.id === id;
      place.id = id;
      this.#confirmed.set(id, place);
      if (place.isOver) this.#drop(place);
      else place.push(response);
    }
    this.#create();
    this.#endIfEmpty();
    return place;
  }

  #drop({ id }: WatchPlace): void {
    this.#confirmed.delete(id);
    this.#stream?.send({ requestUnion: { case: "cancelRequest", value: { watchId: id } } });
  }

  /**
   * What the stream has to wait for before it is read on: until an own stream's program has taken
   * what there is; a shared one goes on, most often at once.
   */
  #relieve(place: WatchPlace): Promise<void> | undefined {
    if (this.isAlone) return place.drained();
    return place.waitingBytes > MAX_WAITING_BYTES ? this.#leaveBehind(place) : undefined;
  }

  async #leaveBehind(place: WatchPlace): Promise<void> {
    // A program that takes the responses without waiting has taken all by then.
    await new Promise<void>((resolve) => void this.#caller.timer.after(0, resolve));
    if (place.waitingBytes > MAX_WAITING_BYTES) place.leave();
  }

  #askProgress(): void {
    this.#forgetRetry();
    if (!this.isAlone) for (const place of [...this.#asked]) place.leave();
    if (this.#asked.size === 0) {
      [this.#asked, this.#asking] = [this.#asking, this.#asked];
      if (this.#asked.size === 0) return;
    }
    this.#stream?.send({ requestUnion: { case: "progressRequest", value: {} } });
    this.#forgetRetry = this.#caller.timer.after(PROGRESS_RETRY_MS, () => this.#askProgress());
  }

  #progressed(response: WatchResponse): void {
    for (const place of this.#asked) place.push(response);
    this.#asked.clear();
    this.#askProgress();
  }

  #endIfEmpty(): void {
    if (this.#unsent.length > 0 || this.#confirmed.size > 0) return;
    if (this.#creating.some((place) => !place.isOver)) return;
    this.#end();
  }

  #end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#forgetRetry();
    this.#owner.leave(this, error instanceof ClientError && isStaleToken(error.message));
    this.#stream?.cancel();
    const unsent = this.#unsent.map(({ place }) => place);
    const places = [...this.#confirmed.values(), ...this.#creating, ...unsent];
    this.#unsent.length = 0;
    this.#creating.length = 0;
    this.#confirmed.clear();
    // A response that is too large fails the stream of all, and may be but one watch's.
    const isTooLarge = error instanceof ClientError && error.code === "ResourceExhausted";
    for (const place of places)
      if (isTooLarge && places.length > 1) place.leave();
      else place.end(error);
  }
}

function sizeOf({ events }: WatchResponse): number {
  return events.reduce((sum, event) => sum + event.length, 0);
}
