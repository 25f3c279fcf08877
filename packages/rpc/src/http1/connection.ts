/**
 * The server's side of one HTTP/1.1 connection (RFC 9112), without its socket: bytes come in by
 * `receive` and go out by `takeOutput`, requests go to a handler, and the time is an argument.
 *
 *   receive -> Http1Reader -> Http1Exchange -> handler    one request at a time, in order
 *   sweep (every second or so) -> timeouts       |
 *   takeOutput <- Output <-----------------------+
 *
 * Pipelined requests wait in the reader; beyond a limit the socket is not read. A request that
 * breaks a rule ends the connection with a refusal: what follows could be anything.
 */
import type { ByteBudget } from "../http2/byte-budget.ts";
import { Output } from "../http2/output.ts";
import { clientOf, type Peer } from "../http2/peer.ts";
import type { CarriedTunnel, Carrier } from "./carrier.ts";
import { Http1Exchange } from "./exchange.ts";
import type { Http1Head } from "./head.ts";
import { BODY_END, Http1Reader } from "./reader.ts";
import { BODY_TIMEOUT, HEAD_TIMEOUT, type Refusal } from "./refusal.ts";
import { refusalText, writeText } from "./response-head.ts";
import type { Http1Shared } from "./shared.ts";

/** The owner of the socket, as its connection sees it. */
export interface Http1Owner {
  /** There is output, or the connection began to end. Called again only after takeOutput. */
  wake(): void;
  /** Stops or restarts reading. */
  read(on: boolean): void;
  /** The first head is complete. False if there is no slot: the socket is then closed. */
  identified(): boolean;
  /** Closes the socket at once. */
  destroy(): void;
}

/** Estimated memory of an open request besides its head. */
const REQUEST_BYTES = 1024;

export class Http1Connection implements Carrier {
  readonly peer: Peer;
  readonly shared: Http1Shared;
  readonly out: Output;
  /** Bytes of requests that are being received or processed. */
  readonly held: ByteBudget;
  /**
   * True once nothing more is read or begun: the owner sends the remaining output and closes the
   * socket.
   */
  ending = false;
  readonly #owner: Http1Owner;
  readonly #pending: ByteBudget;
  readonly #heads: ByteBudget;
  readonly #reader: Http1Reader;
  #exchange: Http1Exchange | undefined;
  #tunnel: CarriedTunnel | undefined;
  /** In the output, or waiting for the socket. */
  readonly #unsent: CountedBytes;
  /** In the reader, and of the present head. */
  readonly #input: CountedBytes;
  readonly #head: CountedBytes;
  /** When the client last took some of them. */
  #sentMs: number;
  /** If 0 or more, the exchange or tunnel is notified once no more bytes than this wait. */
  #drainBytes = -1;
  #nowMs: number;
  /** When the present request, or the wait for one, began. */
  #begunMs: number;
  /** A part of a head has arrived. */
  #isInHead = false;
  #isIdentified = false;
  #isDraining = false;
  #isReading = true;
  #isPumping = false;
  #isAwake = false;
  #isLost = false;
  #discardedBytes = 0;
  /** When the latest response was complete. */
  #respondedMs = 0;

  /** @param nowMs the clock's monotonic milliseconds. */
  constructor(shared: Http1Shared, owner: Http1Owner, peer: Peer, nowMs: number) {
    this.shared = shared;
    this.peer = peer;
    this.#owner = owner;
    this.#nowMs = nowMs;
    this.#begunMs = nowMs;
    this.#sentMs = nowMs;
    this.out = new Output(shared.buffers);
    this.#reader = new Http1Reader(shared.limits);
    const identity = clientOf(peer);
    const cut = () => {
      shared.budgetCounters.largestHolderCuts++;
      owner.destroy();
    };
    this.held = shared.held.join(shared.limits.maxHeldBytes, identity, cut);
    this.#pending = shared.pending.join(shared.limits.maxPendingBytes, identity, cut);
    this.#heads = shared.heads.join(shared.limits.maxHeadBytes, identity, cut);
    this.#unsent = new CountedBytes(this.#pending);
    this.#input = new CountedBytes(this.held);
    this.#head = new CountedBytes(this.#heads);
    shared.counters.connections++;
    shared.counters.openConnections++;
  }

  /** Since when no request has been served; undefined while one is. */
  get idleSinceMs(): number | undefined {
    return this.#exchange === undefined && this.#tunnel === undefined ? this.#begunMs : undefined;
  }

  /** A response goes in pieces, or the connection was taken over. */
  get isStreaming(): boolean {
    const one = this.#exchange;
    return one === undefined ? this.#tunnel !== undefined : one.hasBegun && !one.isResponded;
  }

  /** A request has begun whose head or body is not complete. */
  get isInRequest(): boolean {
    return this.#isInHead || this.#exchange?.isBodyDue === true;
  }

  get unsentBytes(): number {
    return this.#unsent.sizeBytes;
  }

  /** Whether a sender waits for `flushed`. */
  get awaitsDrain(): boolean {
    return this.#drainBytes >= 0;
  }

  get isLast(): boolean {
    return this.#isDraining;
  }

  get bodyLeftBytes(): number | undefined {
    return this.#reader.leftBytes;
  }

  /** Takes bytes from the client; the chunk must not change any more. */
  receive(chunk: Uint8Array, nowMs: number): void {
    if (this.ending || chunk.length === 0) return;
    this.#nowMs = nowMs;
    this.#reader.push(chunk);
    this.pump();
    this.#holdInput();
  }

  /** Enforces timeouts; to be called about once a second. */
  sweep(nowMs: number): void {
    if (this.ending) return;
    this.#nowMs = nowMs;
    const { limits } = this.shared;
    const exchange = this.#exchange;
    if (this.#unsent.sizeBytes > 0 && nowMs - this.#sentMs >= limits.sendStallTimeoutMs) {
      this.shared.budgetCounters.sendStalls++;
      this.#owner.destroy();
    } else if (this.#tunnel !== undefined) return;
    else if (exchange === undefined) this.#sweepIdle(nowMs - this.#begunMs);
    else if (exchange.isBodyDue && nowMs - this.#begunMs >= limits.requestTimeoutMs) {
      this.shared.counters.requestTimeouts++;
      this.#refuse(BODY_TIMEOUT);
    } else if (exchange.isDiscarding && nowMs - this.#respondedMs >= limits.discardTimeoutMs)
      this.#end();
    if (this.#unsent.sizeBytes === 0 && exchange === undefined) this.out.shrink();
  }

  /** The bytes to send, in order; the owner's `wake` is called when there are more. */
  takeOutput(): Uint8Array[] {
    this.#isAwake = false;
    return this.out.take();
  }

  /** The owner wrote the output, or the socket took some: so many bytes wait for the socket. */
  flushed(waitingBytes: number): void {
    const unsentBytes = waitingBytes + this.out.sizeBytes;
    if (unsentBytes < this.#unsent.sizeBytes && this.#unsent.set(unsentBytes))
      this.#sentMs = this.#nowMs;
    if (unsentBytes === 0) this.out.recycle();
    if (this.#drainBytes >= 0 && unsentBytes <= this.#drainBytes) {
      this.#drainBytes = -1;
      if (this.#tunnel !== undefined) this.#tunnel.drained();
      else this.#exchange?.drained();
    }
    if (this.#reader.bufferedBytes > 0) {
      this.pump();
      this.#holdInput();
    }
  }

  /** Takes no more requests, and ends when the present one has. */
  drain(): void {
    if (this.ending) return;
    this.#isDraining = true;
    if (this.#exchange === undefined && this.#tunnel === undefined) this.#end();
  }

  /** The socket is gone, or the client has closed its side. */
  lost(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.ending = true;
    this.shared.counters.openConnections--;
    this.#leave();
    for (const counted of [this.#unsent, this.#input, this.#head]) counted.set(0);
    this.held.leave();
    this.#pending.leave();
    this.#heads.leave();
  }

  pump(): void {
    // A handler that responds within its call is inside this loop already.
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (!this.ending && this.#step());
    this.#isPumping = false;
    if (this.ending) return;
    const { maxPipelinedBytes } = this.shared.limits;
    const isHeldUp = this.#exchange?.isPaused === true || this.#tunnel?.isPaused === true;
    this.#read(!isHeldUp && this.#reader.bufferedBytes <= maxPipelinedBytes);
  }

  take(sizeBytes: number): boolean {
    if (this.ending) return false;
    const before = this.#unsent.sizeBytes;
    if (!this.#unsent.set(before + sizeBytes)) {
      this.shared.budgetCounters.pendingBytesRefusals++;
      this.#owner.destroy();
      return false;
    }
    if (before === 0) this.#sentMs = this.#nowMs;
    return true;
  }

  touched(): void {
    if (this.#isAwake) return;
    this.#isAwake = true;
    this.#owner.wake();
  }

  awaitDrain(sizeBytes: number): void {
    this.#drainBytes = sizeBytes;
  }

  responded(isKept: boolean): void {
    this.#respondedMs = this.#nowMs;
    if (isKept) this.pump();
    else this.#end();
  }

  takenOver(tunnel: CarriedTunnel): void {
    this.#exchange = undefined;
    this.shared.counters.upgrades++;
    this.#tunnel = tunnel;
  }

  finish(): void {
    this.#end();
  }

  destroy(): void {
    this.#owner.destroy();
  }

  /** One step of reading; false if the connection has to wait. */
  #step(): boolean {
    if (this.#tunnel !== undefined) return this.#feedTunnel(this.#tunnel);
    const exchange = this.#exchange;
    if (exchange === undefined) return this.#begin();
    if (exchange.isBodyEnded) return exchange.isResponded && this.#complete();
    if (exchange.isPaused && !exchange.isResponded) return false;
    const part = this.#reader.readBody();
    if (part === undefined) return false;
    if (part === BODY_END) exchange.bodyEnded();
    else if (!(part instanceof Uint8Array)) this.#refuse(part);
    else if (!exchange.isResponded) exchange.body(part);
    else {
      this.#discardedBytes += part.length;
      if (this.#discardedBytes > this.shared.limits.maxDiscardedBytes) this.#end();
    }
    return true;
  }

  /** Reads the next head and starts its exchange. */
  #begin(): boolean {
    // A client that does not read gets no further responses.
    if (this.#unsent.sizeBytes > this.shared.limits.outputTargetBytes) return false;
    const head = this.#reader.readHead();
    if (head === undefined) {
      const isInHead = this.#reader.bufferedBytes > 0;
      if (isInHead && !this.#isInHead && this.#isIdentified) this.#begunMs = this.#nowMs;
      this.#isInHead = isInHead;
      return false;
    }
    if (!("method" in head)) {
      this.#refuse(head);
      return false;
    }
    if (!this.#isIdentified) {
      this.#isIdentified = true;
      if (!this.#owner.identified()) return false;
    }
    this.#serve(head);
    return true;
  }

  #serve(head: Http1Head): void {
    const { counters } = this.shared;
    if (!this.#isInHead) this.#begunMs = this.#nowMs;
    this.#isInHead = false;
    this.#discardedBytes = 0;
    counters.requests++;
    counters.openRequests++;
    if (!this.#holdHead()) return;
    const exchange = new Http1Exchange(this, head);
    this.#exchange = exchange;
    exchange.begin();
  }

  #complete(): boolean {
    this.#exchange = undefined;
    this.#head.set(0);
    this.shared.counters.openRequests--;
    this.#begunMs = this.#nowMs;
    if (this.#isDraining) this.#end();
    return true;
  }

  /** Counts the present head; false if there is no budget left, and then all is over. */
  #holdHead(): boolean {
    if (this.#head.set(REQUEST_BYTES + this.#reader.headBytes)) return true;
    this.shared.counters.openRequests--;
    this.shared.budgetCounters.headBytesRefusals++;
    this.#owner.destroy();
    return false;
  }

  /** Counts what waits in the reader; ends the connection if there is no budget left. */
  #holdInput(): void {
    if (this.#input.set(this.ending ? 0 : this.#reader.bufferedBytes)) return;
    this.shared.budgetCounters.heldBytesRefusals++;
    this.#owner.destroy();
  }

  #feedTunnel(tunnel: CarriedTunnel): boolean {
    if (!tunnel.isOpen || this.#reader.bufferedBytes === 0) return false;
    tunnel.data(this.#reader.takeAll());
    return true;
  }

  #sweepIdle(idleMs: number): void {
    const { limits, counters } = this.shared;
    if (this.#isInHead || !this.#isIdentified) {
      if (idleMs < limits.headTimeoutMs) return;
      counters.requestTimeouts++;
      // A client that has sent nothing expects no answer.
      if (this.#isInHead) this.#refuse(HEAD_TIMEOUT);
      else this.#owner.destroy();
    } else if (idleMs >= limits.idleTimeoutMs) this.#end();
  }

  /** Ends the connection because of a request that cannot be served. */
  #refuse(refusal: Refusal): void {
    const { counters } = this.shared;
    if (refusal.status === 431) counters.headersTooLarge++;
    else if (refusal.status !== 408) counters.malformedRequests++;
    const hasBegun = this.#exchange?.hasBegun === true;
    if (refusal.silent || hasBegun) {
      if (hasBegun) this.#end();
      else this.#owner.destroy();
      return;
    }
    const text = refusalText(refusal);
    if (this.take(text.length)) writeText(this.out, text);
    this.#end();
  }

  #end(): void {
    if (this.ending) return;
    this.ending = true;
    this.#leave();
    this.#read(true);
    this.touched();
  }

  /** Nothing more is served: lets the exchange or the tunnel know. */
  #leave(): void {
    const exchange = this.#exchange;
    const tunnel = this.#tunnel;
    this.#exchange = undefined;
    this.#tunnel = undefined;
    if (exchange !== undefined) {
      this.shared.counters.openRequests--;
      exchange.aborted();
    }
    if (tunnel !== undefined) {
      this.shared.counters.openRequests--;
      tunnel.closed();
    }
  }

  #read(on: boolean): void {
    if (on === this.#isReading) return;
    this.#isReading = on;
    this.#owner.read(on);
  }
}

/** Bytes of one kind that a connection counts in a budget, as one figure that rises and falls. */
class CountedBytes {
  sizeBytes = 0;
  readonly #budget: ByteBudget;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  /** Counts so many bytes from now on. Returns false, and changes nothing, without a budget. */
  set(sizeBytes: number): boolean {
    const more = sizeBytes - this.sizeBytes;
    if (more > 0 && !this.#budget.take(more)) return false;
    if (more < 0) this.#budget.give(-more);
    this.sizeBytes = sizeBytes;
    return true;
  }
}
