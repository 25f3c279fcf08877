/**
 * A front-end as the member serves it: calls come out of the ring, and go to the services' handlers
 * and to the HTTP handler as from an engine in the same thread.
 *
 *     record -> checked -> a call with its caller -> handler -> record
 *
 * Nothing in a record is trusted: a kind, method, call or length that cannot be breaks the link.
 * All calls of the front-end are then cancelled, as for a connection that is lost.
 */
import { BriefMap, type Clock, type HttpExchangeHandler, type Logger } from "@quorate/host";
import { readU32LE } from "@quorate/proto";
import {
  DeadlineQueue,
  HttpDate,
  type RpcObserver,
  type ServiceTable,
  SharedBudget,
  type StreamHandler,
  type UnaryHandler,
} from "@quorate/rpc";
import { FanOut } from "./fan-out.ts";
import type { ServedContext } from "./front-call.ts";
import { type CallStart, type FrontCall, FrontCaller } from "./front-call.ts";
import { FrontExchange } from "./front-exchange.ts";
import { FrontStream } from "./front-stream.ts";
import { FrontUnary } from "./front-unary.ts";
import { Link, type LinkDeps, type LinkOwner, type LinkRings } from "./link.ts";
import {
  decodeTexts,
  MAX_CALLS,
  MAX_HEAD_BYTES,
  MAX_IDENTITIES,
  ToMember,
  WINDOW_BYTES,
} from "./protocol.ts";
import { RingError, type RingRecord } from "./ring.ts";

export interface ServedFrontOptions {
  /** The names of metadata fields that services read, as the front-end has them. */
  readonly fields: readonly string[];
  /** Longest request message. */
  readonly maxRequestBytes: number;
  /** Bytes of responses that may wait for the front-end; beyond, it is ended. */
  readonly maxQueuedBytes: number;
  /** Bytes of HTTP requests that handlers hold. */
  readonly maxHeldBytes: number;
}

export interface ServedFrontDeps extends LinkDeps {
  readonly services: ServiceTable;
  readonly http: HttpExchangeHandler;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer: RpcObserver | undefined;
  /** The front-end does what it may not, or takes no responses. Called once. */
  broken(error: Error): void;
}

/** The methods of a table, in the order by which records name them. */
export function methodPaths({ unary, stream }: ServiceTable): {
  readonly unary: readonly string[];
  readonly stream: readonly string[];
} {
  return { unary: [...unary.keys()], stream: [...stream.keys()] };
}

interface Method<Handler> {
  readonly path: string;
  readonly handler: Handler;
}

export class ServedFront implements LinkOwner {
  readonly #link: Link;
  readonly #deps: ServedFrontDeps;
  readonly #unary: readonly Method<UnaryHandler>[];
  readonly #stream: readonly Method<StreamHandler>[];
  readonly #calls = new BriefMap<number, FrontCall>();
  readonly #callers: (FrontCaller | undefined)[] = [];
  readonly #fields: ReadonlyMap<string, number>;
  readonly #context: ServedContext;
  /** When the calls of this batch begin; undefined before the first of them. */
  #batchMs: number | undefined;

  /** Begins when `woken` is called for the first time. */
  constructor(rings: LinkRings, options: ServedFrontOptions, deps: ServedFrontDeps) {
    const { maxRequestBytes, maxQueuedBytes } = options;
    const maxMessageBytes = Math.max(maxRequestBytes, MAX_HEAD_BYTES);
    this.#link = new Link(rings, { maxMessageBytes, maxQueuedBytes }, this, deps);
    this.#deps = deps;
    this.#fields = new Map(options.fields.map((name, index) => [name, index]));
    const { unary, stream } = deps.services;
    this.#unary = [...unary].map(([path, handler]) => ({ path, handler }));
    this.#stream = [...stream].map(([path, handler]) => ({ path, handler }));
    const { clock, logger, http, observer } = deps;
    this.#context = {
      link: this.#link,
      fanOut: new FanOut(this.#link),
      clock,
      observer,
      deadlines: new DeadlineQueue(clock),
      http: { handler: http, logger, sendBudgetBytes: WINDOW_BYTES, date: new HttpDate(clock) },
      held: new SharedBudget(options.maxHeldBytes),
      ended: (call) => void this.#calls.delete(call),
    };
  }

  /** The front-end has published something, or taken something. */
  woken(): void {
    this.#link.woken();
  }

  /** Calls that have not ended. */
  get openCalls(): number {
    return this.#calls.size;
  }

  /** The front-end is gone: all of its calls are cancelled. */
  close(): void {
    this.#link.close();
    this.#context.deadlines.clear();
    for (const call of [...this.#calls.values()]) call.aborted();
    this.#calls.clear();
    this.#callers.length = 0;
  }

  batchBegins(): void {
    this.#batchMs = undefined;
  }

  received(record: RingRecord, message: Uint8Array): void {
    switch (record.kind) {
      case ToMember.Identity:
        this.#identity(record.value, message);
        return;
      case ToMember.Unary: {
        const { path, handler } = of(this.#unary, record.detail);
        const call = new FrontUnary(this.#context, this.#start(record, path));
        this.#calls.set(record.call, call);
        call.handle(handler, message);
        return;
      }
      case ToMember.Stream: {
        const { path, handler } = of(this.#stream, record.detail);
        const call = new FrontStream(this.#context, this.#start(record, path));
        this.#calls.set(record.call, call);
        call.start(handler);
        return;
      }
      case ToMember.Exchange: {
        this.#checkNew(record.call);
        const exchange = new FrontExchange(this.#context, record.call, record.value, message);
        this.#calls.set(record.call, exchange);
        exchange.begin();
        return;
      }
      case ToMember.Message:
        this.#call(record.call).message(message);
        return;
      case ToMember.Again:
        this.#again(message);
        return;
      case ToMember.HalfClosed:
        this.#call(record.call).halfClosed();
        return;
      case ToMember.Cancelled:
        this.#call(record.call).aborted();
        return;
      case ToMember.Taken:
        this.#call(record.call).taken(record.value);
        return;
      default:
        throw new RingError("an unknown kind");
    }
  }

  turnEnds(): void {
    this.#context.fanOut.flush();
  }

  drained(): void {}

  broken(error: Error): void {
    this.close();
    this.#deps.broken(error);
  }

  #again(calls: Uint8Array): void {
    if (calls.length % 4 !== 0) throw new RingError("a list of calls");
    for (let at = 0; at < calls.length; at += 4) this.#call(readU32LE(calls, at)).again();
  }

  #identity(slot: number, message: Uint8Array): void {
    if (slot >= MAX_IDENTITIES || slot > this.#callers.length) throw new RingError("an identity");
    this.#callers[slot] = new FrontCaller(decodeTexts(message), this.#fields);
  }

  /** What a call of gRPC's begins with, checked. */
  #start({ call, value, timeMs }: RingRecord, path: string): CallStart {
    this.#checkNew(call);
    const caller = this.#callers[value];
    if (caller === undefined) throw new RingError("an identity");
    return {
      number: call,
      caller,
      path,
      startedMs: (this.#batchMs ??= this.#deps.clock.monotonicMs()),
      leftMs: timeMs,
    };
  }

  #checkNew(call: number): void {
    if (this.#calls.has(call) || this.#calls.size >= MAX_CALLS) throw new RingError("a call");
  }

  /**
   * A call that was begun. One that has ended meanwhile is passed over: its front-end may not have
   * seen that.
   */
  #call(call: number): FrontCall {
    return this.#calls.get(call) ?? ENDED;
  }
}

const ENDED: FrontCall = { message() {}, again() {}, halfClosed() {}, taken() {}, aborted() {} };

function of<T>(list: readonly T[], index: number): T {
  const found = list[index];
  if (found === undefined) throw new RingError("a method");
  return found;
}
