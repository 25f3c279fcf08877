/**
 * A Link over our own HTTP/2 engine: one connection to one endpoint, dialled when a call needs it.
 * The connection keeps the process alive only while calls are open.
 */
import type { ConnectionOptions } from "node:tls";
import { type Clock, type Timer, type TurnClock, Turns } from "@quorate/host";
import { GrpcCode } from "@quorate/proto";
import {
  type CallStart,
  type ClientCall,
  type ClientCallEvents,
  type ClientConnection,
  type ClientLimits,
  DeadlineQueue,
} from "@quorate/rpc";
import { Channel } from "@quorate/rpc/client";
import { unlessAborted } from "../src/caller.ts";
import type { Endpoint } from "../src/endpoint.ts";
import { type CallMetadata, type Link, LinkError, type LinkStream } from "../src/link.ts";
import { isUntrusted, reasonOf } from "./link-reasons.ts";

export interface EngineLinkOptions {
  /** TLS options of each dial; undefined for plain text. */
  readonly tls: (() => ConnectionOptions) | undefined;
  readonly dialTimeoutMs: number;
  readonly maxRequestBytes: number;
  readonly limits: Partial<ClientLimits>;
}

function metadataOf({ token, requireLeader }: CallMetadata): CallStart["metadata"] {
  const fields: { name: string; value: string }[] = [];
  if (token !== undefined && token !== "") fields.push({ name: "token", value: token });
  if (requireLeader === true) fields.push({ name: "hasleader", value: "true" });
  return fields;
}

/** A call whose signal was aborted. @param sent whether the request may have left */
function aborted(sent: boolean): LinkError {
  return new LinkError(GrpcCode.Canceled, "context canceled", sent);
}

export class EngineLink implements Link {
  readonly endpoint: string;
  readonly #channel: Channel;
  readonly #maxRequestBytes: number;
  readonly #deadlines = new DeadlineQueue(linkClock);
  /** Calls that have not ended, those that wait for a connection included. */
  #open = 0;
  /** Calls that the server's limit of streams holds back, in order. */
  readonly #waiting: (() => void)[] = [];
  readonly #streams = new Set<EngineStream>();
  #isClosed = false;

  constructor(endpoint: Endpoint, options: EngineLinkOptions) {
    this.endpoint = endpoint.text;
    this.#maxRequestBytes = options.maxRequestBytes;
    this.#channel = new Channel(
      {
        endpoint: endpoint.text,
        address: endpoint.address,
        tls: options.tls,
        dialTimeoutMs: options.dialTimeoutMs,
        limits: options.limits,
      },
      linkClock,
    );
  }

  async call(
    path: string,
    request: Uint8Array,
    metadata: CallMetadata,
    dialTimeoutMs: number,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    this.#checkSize(request);
    const deadlineMs = linkClock.monotonicMs() + timeoutMs;
    this.#begin();
    try {
      let connection = this.#channel.ready ?? (await this.#connected(dialTimeoutMs, signal));
      for (;;) {
        if (signal?.aborted) throw aborted(false);
        const leftMs = deadlineMs - linkClock.monotonicMs();
        if (leftMs <= 0)
          throw new LinkError(GrpcCode.DeadlineExceeded, "no response in time", false);
        const start = { path, metadata: metadataOf(metadata), timeoutMs: leftMs };
        const response = this.#unary(connection, start, request, deadlineMs, signal);
        if (response !== undefined) return await response;
        await this.#turn(deadlineMs, signal);
        connection = await this.#connected(dialTimeoutMs, signal);
      }
    } finally {
      this.#end();
    }
  }

  async stream(path: string, metadata: CallMetadata, dialTimeoutMs: number): Promise<LinkStream> {
    this.#begin();
    try {
      for (;;) {
        const connection = await this.#connected(dialTimeoutMs);
        const stream = new EngineStream(
          (request) => this.#checkSize(request),
          () => {
            this.#streams.delete(stream);
            this.#end();
          },
        );
        const start = { path, metadata: metadataOf(metadata), timeoutMs: undefined };
        const call = connection.call(start, stream);
        if (call !== undefined) {
          stream.opened(call);
          this.#streams.add(stream);
          return stream;
        }
        await this.#turn(undefined);
      }
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  /** Calls and streams end with CANCELED. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.close();
    this.#deadlines.clear();
    this.#channel.close();
    for (const go of this.#waiting.splice(0)) go();
  }

  #checkSize(request: Uint8Array): void {
    if (request.length > this.#maxRequestBytes)
      throw new LinkError(
        GrpcCode.ResourceExhausted,
        `trying to send message larger than max (${request.length} vs. ${this.#maxRequestBytes})`,
        false,
      );
  }

  /** The call's response; undefined if the connection takes no more calls now. */
  #unary(
    connection: ClientConnection,
    start: CallStart,
    request: Uint8Array,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> | undefined {
    let call: ClientCall | undefined;
    const result = new Promise<Uint8Array>((resolve, reject) => {
      let response: Uint8Array | undefined;
      const giveUp = (why: LinkError): void => {
        leave();
        call?.cancel();
        reject(why);
      };
      const deadline = {
        deadlineMs,
        expired: () => {
          giveUp(new LinkError(GrpcCode.DeadlineExceeded, "no response in time", true));
          // A connection of which nothing comes any more would make all later calls wait too.
          connection.doubt(linkClock.monotonicMs());
        },
      };
      const stop = (): void => giveUp(aborted(true));
      const leave = (): void => {
        this.#deadlines.remove(deadline);
        signal?.removeEventListener("abort", stop);
      };
      const events: ClientCallEvents = {
        message: (bytes) => {
          response = bytes;
        },
        ended: ({ code, message }, wasSent) => {
          leave();
          if (this.#isClosed && code === GrpcCode.Unavailable)
            reject(new LinkError(GrpcCode.Canceled, CLOSED, wasSent));
          else if (code !== 0) reject(new LinkError(code, reasonOf(message), wasSent));
          else if (response === undefined)
            reject(new LinkError(GrpcCode.Internal, "no message received", true));
          else resolve(response);
        },
      };
      call = connection.call(start, events);
      if (call === undefined) return;
      this.#deadlines.add(deadline);
      signal?.addEventListener("abort", stop);
      call.send(request, true);
    });
    return call === undefined ? undefined : result;
  }

  /** A connection. Rejects with LinkError: none of the call was sent. */
  async #connected(dialTimeoutMs: number, signal?: AbortSignal): Promise<ClientConnection> {
    const { ready } = this.#channel;
    if (ready !== undefined) return ready;
    let late: { cancel(): void } | undefined;
    try {
      const connecting = this.#channel.connect();
      return await Promise.race([
        signal === undefined ? connecting : unlessAborted(connecting, signal),
        new Promise<never>((_, reject) => {
          late = linkClock.after(dialTimeoutMs, () =>
            reject(new LinkError(GrpcCode.Unavailable, "no connection in time", false)),
          );
        }),
      ]);
    } catch (error) {
      if (signal?.aborted) throw aborted(false);
      if (error instanceof LinkError) throw error;
      const { code, message, cause } = error as Error & { code: number };
      const details = cause instanceof Error ? cause.message : message;
      const reason = reasonOf(details);
      if (!isUntrusted((cause as NodeJS.ErrnoException | undefined)?.code, reason))
        throw new LinkError(code, reason, false);
      throw new LinkError(code, `TLS with ${this.endpoint}: ${reason}`, false, true);
    } finally {
      late?.cancel();
    }
  }

  /** Resolves when another call has ended. Rejects with LinkError at the deadline. */
  #turn(deadlineMs: number | undefined, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#deadlines.remove(deadline);
        signal?.removeEventListener("abort", stop);
      };
      const giveUp = (why: LinkError): void => {
        leave();
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        reject(why);
      };
      const deadline = {
        deadlineMs,
        expired: () =>
          giveUp(new LinkError(GrpcCode.DeadlineExceeded, "no response in time", false)),
      };
      const stop = (): void => giveUp(aborted(false));
      const go = (): void => {
        leave();
        resolve();
      };
      this.#waiting.push(go);
      this.#deadlines.add(deadline);
      signal?.addEventListener("abort", stop);
    });
  }

  #begin(): void {
    if (this.#open++ === 0) this.#channel.setReferenced(true);
  }

  #end(): void {
    if (--this.#open === 0) this.#channel.setReferenced(false);
    this.#waiting.shift()?.();
  }
}

/**
 * The process's clock, as far as connections need it. Its timers do not keep the process alive:
 * open calls do, by their socket.
 */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** A delay that Node's timers take: they warn of others, and fire at once. */
export function timerMs(delayMs: number): number {
  return Math.max(0, Math.min(delayMs, MAX_DELAY_MS));
}

const time: TurnClock = {
  monotonicMs: () => performance.now(),
  endOfTurn: (task) => void setImmediate(task),
};

export const linkClock: Clock = {
  ...time,
  turns: new Turns(time),
  wallMs: () => Date.now(),
  after(delayMs, task): Timer {
    // A whole millisecond more: Node's timers may be early by a fraction.
    const handle = setTimeout(task, timerMs(Math.ceil(delayMs) + 1)).unref();
    return { cancel: () => clearTimeout(handle) };
  },
  every(periodMs, task): Timer {
    const handle = setInterval(task, periodMs).unref();
    return { cancel: () => clearInterval(handle) };
  },
};

/** Why the calls of a closed link ended. */
export const CLOSED = "the client is closed";

/** The call of a stream, as the client ends, holds back and feeds it. */
export type OpenedCall = Pick<ClientCall, "send" | "finish" | "cancel" | "pause" | "resume">;

/** Bytes of messages that wait for the loop before the stream is held back. */
const MAX_WAITING_BYTES: number = 256 * 1024;

/** A stream of our own engine as an async iterable, with backpressure. */
export class EngineStream implements LinkStream, ClientCallEvents {
  readonly #check: (request: Uint8Array) => void;
  readonly #over: () => void;
  #call: OpenedCall | undefined;
  readonly #queue: Uint8Array[] = [];
  #waitingBytes = 0;
  #status: { readonly code: number; readonly message: string } | undefined;
  #isCancelled = false;
  #wake: () => void = () => {};

  /**
   * @param check throws for a request that is too large
   * @param over called once when the stream has ended
   */
  constructor(check: (request: Uint8Array) => void, over: () => void) {
    this.#check = check;
    this.#over = over;
  }

  /** The call has begun, whose events this receives. */
  opened(call: OpenedCall): void {
    this.#call = call;
  }

  send(message: Uint8Array): void {
    try {
      this.#check(message);
    } catch (error) {
      // As in gRPC: the stream ends with the error.
      const { grpcCode, message: why } = error as LinkError;
      this.#call?.cancel();
      this.ended({ code: grpcCode, message: why });
      return;
    }
    this.#call?.send(message);
  }

  finish(): void {
    this.#call?.finish();
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    if (this.#status === undefined) {
      this.#call?.cancel();
      this.#status = { code: GrpcCode.Canceled, message: "" };
      this.#over();
    }
    this.#wake();
  }

  /** The link is closed: the stream ends with CANCELED. */
  close(): void {
    this.#call?.cancel();
    this.ended({ code: GrpcCode.Canceled, message: CLOSED });
  }

  message(bytes: Uint8Array): void {
    this.#queue.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#call?.pause();
    this.#wake();
  }

  ended(status: { readonly code: number; readonly message: string }): void {
    if (this.#status !== undefined) return;
    this.#status = status;
    this.#over();
    this.#wake();
  }

  async *responses(): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.#isCancelled) return;
      const message = this.#queue.shift();
      if (message !== undefined) {
        this.#waitingBytes -= message.length;
        if (this.#waitingBytes <= MAX_WAITING_BYTES >>> 1) this.#call?.resume();
        yield message;
      } else if (this.#status !== undefined) {
        const { code, message: why } = this.#status;
        if (code === 0) return;
        throw new LinkError(code, reasonOf(why), true);
      } else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}
