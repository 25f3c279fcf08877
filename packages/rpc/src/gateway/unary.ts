/** A unary call by HTTP: the whole body is one request, the whole response one message. */
import type { HttpExchange } from "@quorate/host";
import { GrpcCode, type HttpRoute, wireToJson } from "@quorate/proto";
import { statusOf } from "../served-call.ts";
import {
  deliver,
  isLate,
  joinMessage,
  messageSize,
  type Receiver,
  type Status,
  type UnaryHandler,
  type UnaryResponse,
  type UnaryResult,
} from "../service.ts";
import { CollectedBody } from "./body.ts";
import { GatewayCall, OK } from "./call.ts";
import { MessageWriter, NOW_BYTES } from "./message-writer.ts";
import { errorResponse, MESSAGE_HEADERS } from "./responses.ts";
import type { GatewayShared } from "./settings.ts";

/** What a call takes in memory beside its request, about. */
const CALL_BYTES = 2048;
const LINGERING_TOO_MUCH: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: requests of clients that have gone hold too much memory",
};

export class GatewayUnary extends GatewayCall implements Receiver<UnaryResponse> {
  readonly #handler: UnaryHandler;
  readonly #body = new CollectedBody();
  #requestBytes = 0;
  /** The service is processing the request. */
  #isWorking = false;
  /** Counted in shared.lingeringBytes. */
  #isLingering = false;
  #writer: MessageWriter | undefined;

  constructor(
    shared: GatewayShared,
    exchange: HttpExchange,
    route: HttpRoute,
    timeoutMs: number | undefined,
    handler: UnaryHandler,
  ) {
    super(shared, exchange, route, timeoutMs);
    this.#handler = handler;
  }

  override data(bytes: Uint8Array): void {
    if (this.isEnded || !this.hold(bytes.length)) return;
    this.#body.push(bytes);
    this.refuseSize(this.#body.sizeBytes, this.shared.limits.maxBodyBytes);
  }

  override ended(): void {
    if (this.isEnded) return;
    this.decodeBody(this.#body.take(), (message) => this.#decoded(message));
  }

  #decoded(request: Uint8Array): void {
    const { limits, lingeringBytes } = this.shared;
    if (this.refuseSize(request.length, limits.maxRequestBytes)) return;
    if (lingeringBytes > limits.maxLingeringBytes) this.cancel(LINGERING_TOO_MUCH);
    else this.begin(() => this.#handle(request));
  }

  #handle(request: Uint8Array): void {
    this.#requestBytes = request.length;
    this.received(request.length);
    let result: UnaryResult;
    try {
      result = this.#handler(request, this);
    } catch (error) {
      this.finish(statusOf(error));
      return;
    }
    if (isLate(result)) {
      this.#isWorking = true;
      deliver(result, this);
    } else this.#respond(result);
  }

  resolved(message: UnaryResponse): void {
    this.#stopWorking();
    this.#respond(message);
  }

  rejected(error: unknown): void {
    this.#stopWorking();
    this.finish(statusOf(error));
  }

  #stopWorking(): void {
    this.#isWorking = false;
    if (this.#isLingering) this.shared.lingeringBytes -= this.#requestBytes + CALL_BYTES;
  }

  #respond(message: UnaryResponse): void {
    if (this.isEnded) return;
    const size = messageSize(message);
    const { maxResponseBytes } = this.shared.limits;
    if (size > maxResponseBytes) {
      const text = `grpc: trying to send message larger than max (${size} vs. ${maxResponseBytes})`;
      this.finish({ code: GrpcCode.ResourceExhausted, message: text });
      return;
    }
    if (size > NOW_BYTES) {
      this.#writeLong(message, size);
      return;
    }
    let body: Uint8Array;
    try {
      body = wireToJson(this.route.response, joinMessage(message));
    } catch (error) {
      this.finish(statusOf(error));
      return;
    }
    this.settle(OK.code);
    this.sent(size);
    this.exchange.respond({ status: 200, headers: MESSAGE_HEADERS, body });
  }

  /** The client sees by the missing end that a response which failed in the middle is not whole. */
  #writeLong(message: UnaryResponse, sizeBytes: number): void {
    const { exchange, route, shared } = this;
    this.settle(OK.code);
    this.sent(sizeBytes);
    exchange.start(200, MESSAGE_HEADERS);
    const fail = (): void => exchange.abort();
    this.#writer = new MessageWriter(exchange, shared.clock, route.response, "message", fail);
    this.#writer.write(message);
    this.#writer.whenEmpty(() => exchange.end());
  }

  override drained(): void {
    this.#writer?.drained();
  }

  override aborted(): void {
    this.#writer?.stop();
    super.aborted();
  }

  protected override sendEnd(status: Status): void {
    this.exchange.respond(errorResponse(status));
  }

  protected override abandoned(): void {
    this.#body.clear();
    if (!this.#isWorking || this.#isLingering) return;
    this.#isLingering = true;
    this.shared.lingeringBytes += this.#requestBytes + CALL_BYTES;
  }
}
