/**
 * Pings in both directions: grpc-go's policy against clients that ping too often, and the server's
 * own pings to silent clients.
 */
import type { Http2Limits } from "./limits.ts";

/** As in grpc-go: the third ping that comes too early ends the connection. */
const MAX_STRIKES = 2;
/** As in grpc-go: the minimum time between pings of a client without open calls. */
const IDLE_PERIOD_MS = 2 * 60 * 60 * 1000;

export class KeepAlive {
  readonly #minTimeMs: number;
  readonly #intervalMs: number;
  readonly #timeoutMs: number;
  #strikes = 0;
  #lastPingMs = Number.NEGATIVE_INFINITY;
  #lastReadMs: number;
  #pingedMs: number | undefined = undefined;
  /**
   * Set when a frame with content is sent; it resets the count of early pings, because a client may
   * ping while it receives.
   */
  sent = false;

  constructor(limits: Http2Limits, nowMs: number) {
    this.#minTimeMs = limits.keepAliveMinTimeMs;
    this.#intervalMs = limits.keepAliveTimeoutMs > 0 ? limits.keepAliveIntervalMs : 0;
    this.#timeoutMs = limits.keepAliveTimeoutMs;
    this.#lastReadMs = nowMs;
  }

  /** The client has pinged. False if that is one ping too many. */
  pinged(nowMs: number, openStreams: number): boolean {
    const lastMs = this.#lastPingMs;
    this.#lastPingMs = nowMs;
    if (this.#minTimeMs === 0) return true;
    if (this.sent) {
      this.sent = false;
      this.#strikes = 0;
      return true;
    }
    if (lastMs + (openStreams === 0 ? IDLE_PERIOD_MS : this.#minTimeMs) > nowMs) this.#strikes++;
    return this.#strikes <= MAX_STRIKES;
  }

  /** Bytes have arrived. */
  read(nowMs: number): void {
    this.#lastReadMs = nowMs;
    this.#pingedMs = undefined;
  }

  /** The action that is due: send a ping, or give up on a client that did not acknowledge one. */
  due(nowMs: number): "ping" | "lost" | undefined {
    if (this.#intervalMs === 0) return undefined;
    if (this.#pingedMs !== undefined)
      return nowMs - this.#pingedMs >= this.#timeoutMs ? "lost" : undefined;
    if (nowMs - this.#lastReadMs < this.#intervalMs) return undefined;
    this.#pingedMs = nowMs;
    return "ping";
  }
}
