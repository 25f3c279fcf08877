/**
 * Pings, in both directions: grpc-go's policy against clients that ping too much, and our own to
 * clients that have fallen silent.
 */
import type { Http2Limits } from "./limits.ts";

/** As in grpc-go: three pings too early are one too many. */
const MAX_STRIKES = 2;
/** As in grpc-go: how often a client may ping that has no call open. */
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
   * Set when a frame of substance goes out, which clears the client of the suspicion of pinging
   * without need.
   */
  sent = false;

  constructor(limits: Http2Limits, nowMs: number) {
    this.#minTimeMs = limits.keepAliveMinTimeMs;
    this.#intervalMs = limits.keepAliveTimeoutMs > 0 ? limits.keepAliveIntervalMs : 0;
    this.#timeoutMs = limits.keepAliveTimeoutMs;
    this.#lastReadMs = nowMs;
  }

  /** The client has pinged. False if it is one time too many. */
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

  /** Bytes have come. */
  read(nowMs: number): void {
    this.#lastReadMs = nowMs;
    this.#pingedMs = undefined;
  }

  /** What is due: to send a ping, or to give up on a client that has not answered one. */
  due(nowMs: number): "ping" | "lost" | undefined {
    if (this.#intervalMs === 0) return undefined;
    if (this.#pingedMs !== undefined)
      return nowMs - this.#pingedMs >= this.#timeoutMs ? "lost" : undefined;
    if (nowMs - this.#lastReadMs < this.#intervalMs) return undefined;
    this.#pingedMs = nowMs;
    return "ping";
  }
}
