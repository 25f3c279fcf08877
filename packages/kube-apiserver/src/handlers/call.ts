/**
 * One request on its way through the server: its identity, its body, its response.
 *
 *     exchange -> Call -> filters (src/server/api-server.ts) -> handlers (src/handlers)
 *
 * The first response counts; a later one is dropped, so that a handler that is late (after a
 * timeout) changes nothing.
 */
import {
  HeldBody,
  type HttpExchange,
  type HttpExchangeListener,
  type HttpHead,
} from "@quorate/host";
import {
  ANONYMOUS,
  badRequest,
  Canceller,
  serviceUnavailable,
  type UserInfo,
  unlessAborted,
} from "@quorate/kube-storage";
import { EMPTY, fromUtf8 } from "@quorate/proto";
import type { RequestAudit } from "../audit/request-audit.ts";
import { bodyTooLarge } from "./statuses.ts";
import type { Query, Target } from "./target.ts";

/** The longest body of a request (apiserver: MaxRequestBodyBytes). */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;

/** Why a call was cancelled without a timeout. */
export const CLIENT_GONE = badRequest("the client has closed the connection");

export class Call {
  readonly exchange: HttpExchange;
  readonly target: Target;
  readonly query: Query;
  readonly auditId: string;
  /** Monotonic time of its arrival. */
  readonly startedMs: number;
  readonly canceller = new Canceller();
  readonly #warnings = new Warnings();
  readonly #headers: Record<string, string> = {};
  readonly #body: BodyReader;
  /** Set by authentication and impersonation. */
  user: UserInfo = ANONYMOUS;
  /** Its record in the audit log, where the policy wants one. */
  audit: RequestAudit | undefined;
  /** Of the response; 0 before there is one. */
  status = 0;
  /** Bytes of the response's body. */
  sentBytes = 0;
  /** The response is complete or cut off. */
  isOver = false;
  #onDrain: (() => void) | undefined;
  #onLost: (() => void) | undefined;
  #onOver: (() => void)[] = [];

  constructor(
    exchange: HttpExchange,
    parsed: { readonly target: Target; readonly query: Query },
    auditId: string,
    startedMs: number,
  ) {
    this.exchange = exchange;
    this.target = parsed.target;
    this.query = parsed.query;
    this.auditId = auditId;
    this.startedMs = startedMs;
    this.#body = new BodyReader(exchange);
  }

  get head(): HttpHead {
    return this.exchange.head;
  }

  header(name: string): string {
    return this.exchange.head.headers.get(name) ?? "";
  }

  get userAgent(): string {
    return this.header("user-agent");
  }

  /** For the engine. */
  get listener(): HttpExchangeListener {
    return {
      data: (bytes) => this.#body.data(bytes),
      ended: () => this.#body.ended(),
      drained: () => {
        const resume = this.#onDrain;
        this.#onDrain = undefined;
        resume?.();
      },
      aborted: () => {
        this.canceller.abort(CLIENT_GONE);
        this.#body.fail(CLIENT_GONE);
        this.#over();
      },
    };
  }

  /** The whole body. Rejects with ApiError 413, or 503 where memory for requests is used up. */
  body(): Promise<Uint8Array> {
    return unlessAborted(this.canceller, this.#body.whole);
  }

  warn(text: string): void {
    this.#warnings.add(text);
  }

  /** Adds a header to the response. */
  setHeader(name: string, value: string): void {
    this.#headers[name] = value;
  }

  get hasResponse(): boolean {
    return this.status !== 0;
  }

  /** Sends the whole response. */
  respond(status: number, headers: Readonly<Record<string, string>>, body: Uint8Array | string) {
    if (this.hasResponse || this.#losesAnswer(status)) return;
    this.status = status;
    const bytes = typeof body === "string" ? fromUtf8(body) : body;
    this.sentBytes = bytes.length;
    this.audit?.responded(status);
    this.exchange.respond({ status, headers: this.#allHeaders(headers), body: bytes });
    this.#over();
  }

  /** Begins a response in pieces. Returns false if there is one already: send nothing. */
  start(status: number, headers: Readonly<Record<string, string>>): boolean {
    if (this.hasResponse || this.isOver || this.#losesAnswer(status)) return false;
    this.status = status;
    this.audit?.responded(status);
    this.exchange.start(status, this.#allHeaders(headers));
    return true;
  }

  /**
   * Takes the connection over for another protocol.
   * @param open does it with the response's headers, and calls `over` when the connection has
   *   ended; where it returns undefined it has sent a response
   */
  switchProtocols<T>(
    headers: Readonly<Record<string, string>>,
    open: (
      exchange: HttpExchange,
      headers: Readonly<Record<string, string>>,
      over: () => void,
    ) => T | undefined,
  ): T | undefined {
    if (this.hasResponse || this.isOver) return undefined;
    const opened = open(this.exchange, this.#allHeaders(headers), () => this.#over());
    this.status = opened === undefined ? 400 : 101;
    this.audit?.responded(this.status);
    if (opened === undefined) this.#over();
    return opened;
  }

  /**
   * Sends a piece of the response that `start` began. Returns false when no more should be sent
   * until `drained` is called.
   */
  send(piece: Uint8Array, drained: () => void): boolean {
    if (this.isOver) return true;
    this.sentBytes += piece.length;
    if (this.exchange.send(piece)) return true;
    this.#onDrain = drained;
    return false;
  }

  /** Ends the response that `start` began. */
  end(): void {
    if (this.isOver) return;
    this.exchange.end();
    this.#over();
  }

  /** Cuts the response off. */
  abort(): void {
    if (this.isOver) return;
    this.exchange.abort();
    this.#over();
  }

  /** From now on a response of success is cut off before it begins; `onLost` is then called. */
  loseAnswer(onLost: () => void): void {
    this.#onLost = onLost;
  }

  /** Calls `listener` once the response is complete or cut off, at once if it is. */
  whenOver(listener: () => void): void {
    if (this.isOver) listener();
    else this.#onOver.push(listener);
  }

  #losesAnswer(status: number): boolean {
    if (this.#onLost === undefined || status >= 300 || this.isOver) return false;
    this.status = status;
    this.audit?.responded(status);
    this.#onLost();
    this.abort();
    return true;
  }

  #allHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
    const warning = this.#warnings.header;
    const all: Record<string, string> = { ...this.#headers, ...headers };
    if (warning !== undefined) all["warning"] = warning;
    return all;
  }

  #over(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.audit?.completed();
    const listeners = this.#onOver;
    this.#onOver = [];
    for (const listener of listeners) listener();
    // Who waits for the send budget goes on, and finds that the call is over.
    const resume = this.#onDrain;
    this.#onDrain = undefined;
    resume?.();
  }
}

/** Collects the body within its limit and the server's budget. */
class BodyReader {
  readonly #body: HeldBody;
  readonly #done = Promise.withResolvers<Uint8Array>();

  constructor(exchange: HttpExchange) {
    this.#body = new HeldBody(exchange, MAX_BODY_BYTES);
    // A request whose body no handler reads.
    this.#done.promise.catch(() => {});
  }

  get whole(): Promise<Uint8Array> {
    return this.#done.promise;
  }

  data(bytes: Uint8Array): void {
    const why = this.#body.push(bytes);
    if (why === "too long") this.fail(bodyTooLarge(MAX_BODY_BYTES));
    else if (why === "no memory")
      this.fail(serviceUnavailable("requests being received hold too much memory"));
  }

  ended(): void {
    if (!this.#body.isRefused) this.#done.resolve(this.#body.take());
  }

  fail(error: Error): void {
    this.#body.drop();
    this.#done.reject(error);
  }
}

/** The pieces in one array. */
export function joined(pieces: readonly Uint8Array[], sizeBytes: number): Uint8Array {
  const [first = EMPTY] = pieces;
  if (pieces.length < 2) return first;
  const all = new Uint8Array(sizeBytes);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/**
 * Characters of all warnings of a response (apiserver: pkg/endpoints/filters/warning.go); above it
 * each is cut to MAX_ITEM_CHARS.
 */
const MAX_TOTAL_CHARS = 4 * 1024;
const MAX_ITEM_CHARS = 256;

/** Warnings in their order, each once. */
export class Warnings {
  readonly #texts = new Set<string>();

  add(text: string): void {
    if (text !== "" && this.#texts.size < MAX_TOTAL_CHARS) this.#texts.add(text);
  }

  /** The value of the header; undefined without warnings. */
  get header(): string | undefined {
    if (this.#texts.size === 0) return undefined;
    const texts = [...this.#texts];
    const isLong = texts.reduce((sum, text) => sum + text.length, 0) > MAX_TOTAL_CHARS;
    const items: string[] = [];
    let written = 0;
    for (const text of texts) {
      const item = isLong ? text.slice(0, MAX_ITEM_CHARS) : text;
      if (written + item.length > MAX_TOTAL_CHARS) break;
      written += item.length;
      items.push(`299 - ${quoted(item)}`);
    }
    return items.join(", ");
  }
}

/** A quoted-string; control characters, which headers cannot hold, become spaces. */
function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it removes
  const printable = text.replace(/[\u0000-\u001f\u007f]/g, " ");
  return `"${printable.replace(/[\\"]/g, "\\$&")}"`;
}
