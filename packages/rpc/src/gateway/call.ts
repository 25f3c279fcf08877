/**
 * The common part of unary calls and streams by HTTP and JSON: metadata, the body's memory, the
 * slot of a running call, and errors of the body.
 */
import type { HttpExchange, HttpExchangeListener } from "@quorate/host";
import { GrpcCode, type HttpRoute, JsonError, JsonLimitError } from "@quorate/proto";
import type { Peer } from "../http2/peer.ts";
import { HELD_TOO_MUCH, ServedCall, statusOf } from "../served-call.ts";
import type { Status } from "../service.ts";
import { metadataOf } from "./metadata.ts";
import type { GatewayShared } from "./settings.ts";

export const OK: Status = { code: GrpcCode.OK, message: "" };
const TOO_MANY_CALLS: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: too many calls wait for others to end",
};

export abstract class GatewayCall
  extends ServedCall<GatewayShared>
  implements HttpExchangeListener
{
  protected readonly exchange: HttpExchange;
  protected readonly route: HttpRoute;
  #slot: "none" | "waiting" | "taken" = "none";
  #run: (() => void) | undefined;
  #heldBytes = 0;

  /** @param timeoutMs the time that the client allows, from now; undefined for any */
  constructor(
    shared: GatewayShared,
    exchange: HttpExchange,
    route: HttpRoute,
    timeoutMs: number | undefined,
  ) {
    const nowMs = shared.clock.monotonicMs();
    super(shared, route.rpc.path, nowMs, timeoutMs === undefined ? undefined : nowMs + timeoutMs);
    this.exchange = exchange;
    this.route = route;
  }

  metadata(key: string): string | undefined {
    return metadataOf(this.exchange.head.headers, key);
  }

  protected get peer(): Peer {
    return this.exchange.head;
  }

  abstract data(bytes: Uint8Array): void;
  abstract ended(): void;
  abstract drained(): void;

  /**
   * Calls `run` with the call's slot taken and the observer notified, unless its time is over: a
   * body that is wrong has been refused before, as by etcd.
   */
  protected begin(run: () => void): void {
    if (this.deadlineMs !== undefined && this.deadlineMs <= this.shared.clock.monotonicMs()) {
      this.expired();
      return;
    }
    if (this.shared.slots.takeFree()) {
      this.#begun();
      run();
      return;
    }
    this.#run = () => {
      this.#begun();
      run();
    };
    this.#slot = "waiting";
    if (!this.shared.slots.wait(this.#run)) this.cancel(TOO_MANY_CALLS);
  }

  #begun(): void {
    this.#slot = "taken";
    this.observed();
  }

  protected override settle(code: number): boolean {
    if (!super.settle(code)) return false;
    const { slots } = this.shared;
    const slot = this.#slot;
    this.#slot = "none";
    if (slot === "taken") slots.release();
    else if (slot === "waiting" && this.#run !== undefined) slots.leave(this.#run);
    return true;
  }

  /** Decodes a body as the one request that it is, while the call goes on; refuses it otherwise. */
  protected decodeBody(body: Uint8Array, decoded: (message: Uint8Array) => void): void {
    this.shared.bodies.decode(this.route.request, body, {
      isWanted: () => !this.isEnded,
      decoded,
      refused: (error) => this.refuseBody(error),
    });
  }

  /** Ends the call for a body that is not what it should be. */
  protected refuseBody(error: unknown): void {
    const { counters } = this.shared;
    if (error instanceof JsonLimitError) {
      counters.tooLarge++;
      this.cancel({ code: GrpcCode.ResourceExhausted, message: error.message });
    } else if (error instanceof JsonError) {
      counters.malformed++;
      this.cancel({ code: GrpcCode.InvalidArgument, message: error.message });
    } else this.cancel(statusOf(error));
  }

  /** Ends the call for a message of the body that is too long. False if it is not. */
  protected refuseSize(sizeBytes: number, maxBytes: number): boolean {
    if (sizeBytes <= maxBytes) return false;
    this.shared.counters.tooLarge++;
    this.cancel({
      code: GrpcCode.ResourceExhausted,
      message: `grpc: received message larger than max (${sizeBytes} vs. ${maxBytes})`,
    });
    return true;
  }

  /** Counts bytes of the body as held; false if over the budget, and then the call has ended. */
  protected hold(sizeBytes: number): boolean {
    if (this.exchange.hold(sizeBytes)) {
      this.#heldBytes += sizeBytes;
      return true;
    }
    this.shared.counters.heldBytesRefusals++;
    this.cancel(HELD_TOO_MUCH);
    return false;
  }

  /** Releases all held bytes but the last `keepBytes`. */
  protected releaseTo(keepBytes: number): void {
    const sizeBytes = this.#heldBytes - keepBytes;
    if (sizeBytes <= 0) return;
    this.#heldBytes = keepBytes;
    this.exchange.release(sizeBytes);
  }

  protected get heldBytes(): number {
    return this.#heldBytes;
  }
}
