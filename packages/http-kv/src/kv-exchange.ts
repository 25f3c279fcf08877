/**
 * One exchange of the HTTP interface for keys: its body, bounded; what is sent, at the client's
 * pace; and how it ends.
 *
 *     head -> data* -> ended -> action(exchange) -> response, or the problem that the action throws
 */
import {
  HeldBody,
  type HttpExchange,
  type HttpExchangeListener,
  type HttpHead,
} from "@quorate/host";
import { EMPTY, fromUtf8 } from "@quorate/proto";
import { ExchangeCaller } from "@quorate/services";
import { Problem, problemOf } from "./problems.ts";

/** Serves a request whose body is complete. Rejects with what the client gets as a problem. */
export type KvAction = (exchange: KvExchange) => Promise<void>;

export interface KvExchangeDeps {
  readonly action: KvAction;
  /** 0: the method has no body, and what comes is dropped. */
  readonly maxBodyBytes: number;
}

export class KvExchange implements HttpExchangeListener {
  readonly caller: ExchangeCaller;
  /** Called when the client is gone; set by an action that listens for it. */
  onGone: (() => void) | undefined;
  /** Called when the send budget is free again; set by an action that streams by itself. */
  onDrain: (() => void) | undefined;
  readonly #exchange: HttpExchange;
  readonly #deps: KvExchangeDeps;
  readonly #body: HeldBody;
  #isOver = false;
  #hasStarted = false;
  #waiting: (() => void) | undefined;

  constructor(exchange: HttpExchange, deps: KvExchangeDeps) {
    this.#exchange = exchange;
    this.#deps = deps;
    this.#body = new HeldBody(exchange, deps.maxBodyBytes);
    this.caller = new ExchangeCaller(exchange.head);
    const announced = Number(this.head.headers.get("content-length") ?? 0);
    if (deps.maxBodyBytes > 0 && announced > deps.maxBodyBytes) this.fail(this.#tooLarge());
  }

  get head(): HttpHead {
    return this.#exchange.head;
  }

  get isHead(): boolean {
    return this.head.method === "HEAD";
  }

  /** No more can be sent: the response is complete, or the client is gone. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get bufferedBytes(): number {
    return this.#exchange.bufferedBytes;
  }

  // --- The request ---

  data(bytes: Uint8Array): void {
    if (this.#isOver || this.#deps.maxBodyBytes === 0) return;
    const why = this.#body.push(bytes);
    if (why === "too long") this.fail(this.#tooLarge());
    else if (why === "no memory")
      this.fail(new Problem("unavailable", "requests being received hold too much memory"));
  }

  ended(): void {
    if (this.#isOver) return;
    this.#deps.action(this).catch((error: unknown) => this.fail(error));
  }

  drained(): void {
    this.onDrain?.();
    this.#release();
  }

  aborted(): void {
    this.#isOver = true;
    this.#body.drop();
    this.caller.cancel();
    this.onGone?.();
    this.#release();
  }

  /** The whole body. To be called once. */
  takeBody(): Uint8Array {
    return this.#body.take();
  }

  #tooLarge(): Problem {
    const { maxBodyBytes } = this.#deps;
    return new Problem("body-too-large", `the body has more than ${maxBodyBytes} bytes`);
  }

  // --- The response ---

  /** Sends the whole response. */
  respond(
    status: number,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array | string = EMPTY,
  ): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#body.drop();
    this.#exchange.respond({ status, headers, body });
  }

  /** Begins a response in pieces; of a HEAD it is all there is. */
  start(status: number, headers: Readonly<Record<string, string>>): void {
    if (this.#isOver) return;
    this.#hasStarted = true;
    this.#exchange.start(status, headers);
    if (this.isHead) this.end();
  }

  /** Sends a piece; false: no more until `onDrain`. */
  send(piece: Uint8Array): boolean {
    return this.#isOver || this.#exchange.send(piece);
  }

  /** Sends a piece, and resolves when the client takes more; with false if it is gone. */
  async sendAndWait(piece: Uint8Array): Promise<boolean> {
    if (!this.#isOver && !this.#exchange.send(piece))
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    return !this.#isOver;
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#exchange.end();
  }

  /** Ends with the problem that an error is; cuts off a response that has begun. */
  fail(error: unknown): void {
    if (this.#isOver) return;
    const problem = problemOf(error);
    if (!this.#hasStarted) this.respond(problem.status, problem.headers, this.#bodyOf(problem));
    else {
      this.#isOver = true;
      this.#exchange.abort();
    }
  }

  #bodyOf(problem: Problem): Uint8Array {
    return this.isHead ? EMPTY : fromUtf8(`${problem.document}\n`);
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.();
  }
}
