/**
 * GET /watch/KEY: a watch as Server-Sent Events. It is a stream of the member's Watch service with
 * one watch: identity, permission, audit and the bounds for slow readers are there.
 *
 *     request -> Watch stream -> created    200, and the revision behind which a client resumes
 *                             -> refused    a problem
 *                             -> events     event-stream.ts
 *                             -> canceled   message "compacted" or "end", and the end
 */

import type { SharedTurns } from "@quorate/member";
import {
  endOfPrefix,
  errorOf,
  fromUtf8,
  WatchCreateRequest,
  WatchCreateRequest_FilterType,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import {
  clientOf,
  type MessageBytes,
  type Status,
  StatusError,
  type StreamListener,
} from "@quorate/rpc";
import type { ServiceCalls } from "@quorate/services";
import type { Steps } from "@quorate/store";
import { EventFrames, type EventLines, quietProgress, typedMessage } from "./event-stream.ts";
import type { Heartbeats } from "./heartbeats.ts";
import { keyOfPath, prefixStart, Query, shown } from "./key-path.ts";
import type { KvExchange } from "./kv-exchange.ts";
import { Problem, problemOf } from "./problems.ts";
import { errorOfReason, flagsOf, type ResponseFlags } from "./watch-response.ts";

const { Watch } = WatchService.methods;

/** How long a stream may be silent: a comment follows. Proxies cut idle ones after 30 to 60 s. */
export const KEEP_ALIVE_MS = 15_000;
/** How long an EventSource waits before it connects again. */
const RETRY_MS = 1000;
/** Text that is sent as one piece. */
const PIECE_CHARS: number = 64 << 10;

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  // Proxies that know it pass events on at once.
  "x-accel-buffering": "no",
};
/** A client goes to another member when this one has had no leader for a while. */
const NEEDS_LEADER = { hasleader: "true" };
const PROGRESS = WatchRequest.encode({ requestUnion: { case: "progressRequest", value: {} } });

export interface WatchDeps {
  readonly calls: ServiceCalls;
  readonly turns: SharedTurns;
  readonly lines: EventLines;
  readonly heartbeats: Heartbeats;
}

/** Serves GET /watch/KEY. Resolves when the stream has begun; rejects if it is refused. */
export async function watch(exchange: KvExchange, prefix: string, deps: WatchDeps): Promise<void> {
  const { path, query: text, headers } = exchange.head;
  const key = keyOfPath(path, prefix);
  const query = new Query(text, ["prefix", "from", "previous", "only", "progress"]);
  const isPrefix = query.flag("prefix");
  if (key.length === 0 && !isPrefix)
    throw new Problem("bad-key", "the key is empty", "write it behind /watch/, or add ?prefix");
  const last = lastEventId(headers.get("last-event-id"));
  const from = last === undefined ? query.integer("from", 1) : last + 1;
  const request = WatchCreateRequest.create({
    key: isPrefix ? prefixStart(key) : key,
    rangeEnd: isPrefix ? endOfPrefix(key) : new Uint8Array(0),
    startRevision: from ?? 0,
    prevKv: query.flag("previous"),
    filters: filtersOf(query),
    fragment: true,
  });
  const options = { request, isProgressShown: query.flag("progress") };
  await new EventStream(exchange, options, deps).begin();
}

/** @throws Problem bad-parameter */
function filtersOf(query: Query): WatchCreateRequest_FilterType[] {
  const only = query.text("only");
  if (only === undefined) return [];
  if (only === "put") return [WatchCreateRequest_FilterType.NODELETE];
  if (only === "delete") return [WatchCreateRequest_FilterType.NOPUT];
  const what = `?only=${shown(only)} is no type of event`;
  throw new Problem("bad-parameter", what, "write put or delete");
}

/** The revision that a client has seen last. An empty id is none (EventSource sends none then). */
function lastEventId(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  const revision = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(revision + 1)) return revision;
  const what = `the header Last-Event-ID is ${shown(text)}, which is no revision`;
  throw new Problem("bad-parameter", what, "send the id of the last event, or ?from=REVISION");
}

interface StreamOptions {
  readonly request: WatchCreateRequest;
  readonly isProgressShown: boolean;
}

/** What waits to be sent: a response of the watch, or a text, behind which the stream may end. */
type Waiting =
  | { readonly kind: "response"; readonly pieces: readonly Uint8Array[] }
  | { readonly kind: "text"; readonly text: string; readonly isLast: boolean };

class EventStream {
  readonly #exchange: KvExchange;
  readonly #options: StreamOptions;
  readonly #deps: WatchDeps;
  readonly #frames = new EventFrames();
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #listener: Required<StreamListener> | undefined;
  /** The engine holds more than its budget. */
  #isBlocked = false;
  #isPumping = false;
  /** The watch has ended; what waits is still sent. */
  #isEnded = false;
  /** A heartbeat has asked for progress, and has not been answered. */
  #isBeating = false;
  readonly #begun = Promise.withResolvers<void>();
  #hasBegun = false;

  constructor(exchange: KvExchange, options: StreamOptions, deps: WatchDeps) {
    this.#exchange = exchange;
    this.#options = options;
    this.#deps = deps;
  }

  begin(): Promise<void> {
    const exchange = this.#exchange;
    const { calls } = this.#deps;
    exchange.onGone = () => this.#gone();
    exchange.onDrain = () => this.#drained();
    const bufferedBytes = () => this.#waitingBytes + exchange.bufferedBytes;
    const call = {
      send: (message: MessageBytes) => this.#take(message),
      get bufferedBytes() {
        return bufferedBytes();
      },
      end: (status?: Status) => this.#ended(status),
      pause: () => {},
      resume: () => {},
    };
    const { request } = this.#options;
    this.#listener = calls.stream(Watch, call, exchange.caller, NEEDS_LEADER);
    this.#listener.message(
      WatchRequest.encode({ requestUnion: { case: "createRequest", value: request } }),
    );
    return this.#begun.promise;
  }

  // --- What the watch sends ---

  /** False: no more events until `drained`. */
  #take(message: MessageBytes): boolean {
    const pieces = message instanceof Uint8Array ? [message] : message;
    if (this.#isEnded) return true;
    const flags = flagsOf(pieces);
    if (flags.created || flags.canceled) this.#changed(flags);
    else if (this.#waiting.length === 0 && !this.#isBlocked && this.#mayEncode(pieces)) {
      this.#send(this.#textOf(pieces, flags));
    } else this.#push({ kind: "response", pieces });
    return !this.#isBlocked && this.#waiting.length === 0;
  }

  #mayEncode(pieces: readonly Uint8Array[]): boolean {
    return pieces.every((piece) => this.#deps.lines.mayEncode(piece));
  }

  #textOf(pieces: readonly Uint8Array[], flags: ResponseFlags): string {
    let text = "";
    for (const piece of pieces)
      for (const line of this.#deps.lines.of(piece)) text += this.#frames.event(line);
    if (!flags.fragment) text += this.#frames.end();
    return text === "" ? this.#progressOf(flags) : text;
  }

  #progressOf({ header }: ResponseFlags): string {
    this.#isBeating = false;
    const revision = header?.revision ?? 0;
    return this.#options.isProgressShown
      ? typedMessage("progress", revision, `{"revision":${revision}}`)
      : quietProgress("keep-alive", revision);
  }

  #changed(flags: ResponseFlags): void {
    const { created, canceled, cancelReason, compactRevision } = flags;
    if (canceled) {
      const error = cancelReason === "" ? errorOf("WatchCanceled") : errorOfReason(cancelReason);
      if (created || compactRevision === 0) this.#over(error);
      else this.#last(compactedMessage(compactRevision));
      return;
    }
    const { startRevision } = this.#options.request;
    const seen = startRevision > 0 ? startRevision - 1 : (flags.header?.revision ?? 0);
    this.#exchange.start(200, { ...HEADERS, "quorate-revision": String(seen) });
    this.#deps.heartbeats.add(this.#beat);
    this.#send(`retry: ${RETRY_MS}\n${quietProgress("watching", seen)}`);
    this.#hasBegun = true;
    this.#begun.resolve();
  }

  #ended(status: Status | undefined): void {
    if (this.#isEnded) return;
    this.#over(status === undefined ? errorOf("Stopped") : statusError(status));
  }

  /** Ends with an error: the request, or a stream that has begun. */
  #over(error: Error): void {
    if (this.#hasBegun) this.#last(endMessage(problemOf(error)));
    else {
      this.#isEnded = true;
      this.#begun.reject(error);
      this.#leave();
    }
  }

  /** Sends a last message and ends the response. */
  #last(text: string): void {
    this.#isEnded = true;
    this.#push({ kind: "text", text, isLast: true });
    this.#leave();
  }

  /** The watch is not needed any more. Not amid the sending of its own response. */
  #leave(): void {
    this.#deps.heartbeats.remove(this.#beat);
    const listener = this.#listener;
    this.#listener = undefined;
    Promise.resolve().then(() => listener?.cancelled());
  }

  #gone(): void {
    this.#isEnded = true;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
    this.#leave();
  }

  readonly #beat = (): void => {
    if (this.#isBlocked || this.#isEnded || this.#waiting.length > 0) return;
    this.#isBeating = true;
    try {
      this.#listener?.message(PROGRESS);
    } catch (error) {
      this.#over(error as Error);
      return;
    }
    // The watch is behind, or begins at a later revision.
    if (this.#isBeating && !this.#isEnded) this.#send(": keep-alive\n\n");
    this.#isBeating = false;
  };

  // --- What the client takes ---

  #send(text: string): void {
    if (text !== "" && !this.#exchange.send(fromUtf8(text))) this.#isBlocked = true;
  }

  #push(item: Waiting): void {
    this.#waiting.push(item);
    this.#waitingBytes += sizeOf(item);
    this.#pump();
  }

  #drained(): void {
    this.#isBlocked = false;
    if (this.#waiting.length > 0) this.#pump();
    else this.#listener?.drained();
  }

  /** Encodes what waits, in turns shared with other streams. */
  #pump(): void {
    if (this.#isPumping || this.#isBlocked || this.#waiting.length === 0) return;
    this.#isPumping = true;
    const { caller } = this.#exchange;
    const owner = { client: clientOf(caller), address: caller.peerAddress };
    this.#deps.turns.run(owner, this.#steps()).then(
      () => {
        this.#isPumping = false;
        if (this.#isBlocked) return;
        if (this.#waiting.length > 0) this.#pump();
        else this.#listener?.drained();
      },
      (error: unknown) => {
        this.#gone();
        this.#exchange.fail(error);
      },
    );
  }

  *#steps(): Steps<void> {
    for (let item = this.#waiting[0]; item !== undefined; item = this.#waiting[0]) {
      if (item.kind === "text") this.#send(item.text);
      else yield* this.#responseSteps(item.pieces);
      // The client may have gone meanwhile.
      if (this.#waiting[0] !== item) return;
      this.#waiting.shift();
      this.#waitingBytes -= sizeOf(item);
      if (item.kind === "text" && item.isLast) this.#exchange.end();
      if (this.#isBlocked) return;
      yield;
    }
  }

  *#responseSteps(pieces: readonly Uint8Array[]): Steps<void> {
    const flags = flagsOf(pieces);
    let text = "";
    let isEmpty = true;
    for (const piece of pieces) {
      for (const line of this.#deps.lines.of(piece)) {
        text += this.#frames.event(line);
        isEmpty = false;
        if (text.length < PIECE_CHARS) continue;
        this.#send(text);
        text = "";
        yield;
      }
    }
    if (!flags.fragment) text += this.#frames.end();
    this.#send(isEmpty && text === "" ? this.#progressOf(flags) : text);
  }
}

function statusError({ code, message }: Status): StatusError {
  return new StatusError(code, message);
}

function sizeOf(item: Waiting): number {
  if (item.kind === "text") return item.text.length;
  let sizeBytes = 0;
  for (const { length } of item.pieces) sizeBytes += length;
  return sizeBytes;
}

/**
 * History up to `compactRevision` is dropped. The id makes an EventSource that connects again
 * begin behind it; its program must read the keys first.
 */
function compactedMessage(compactRevision: number): string {
  const json = `{"compact_revision":${compactRevision},"from":${compactRevision + 1}}`;
  return typedMessage("compacted", compactRevision, json);
}

function endMessage(problem: Problem): string {
  return typedMessage("end", undefined, problem.document);
}
