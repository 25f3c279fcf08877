/** Pings of a client on a silent connection (grpc-go: keepalive.ClientParameters). */
import type { ClientLimits } from "./client-limits.ts";

export class ClientPings {
  readonly #limits: ClientLimits;
  #lastReadMs: number;
  #pingedMs: number | undefined;

  constructor(limits: ClientLimits, nowMs: number) {
    this.#limits = limits;
    this.#lastReadMs = nowMs;
  }

  /** The monotonic time at which the last bytes came, or the connection began. */
  get lastReadMs(): number {
    return this.#lastReadMs;
  }

  /** Bytes have come: whatever they are, the server lives. */
  read(nowMs: number): void {
    this.#lastReadMs = nowMs;
    this.#pingedMs = undefined;
  }

  /** What is due now: a ping, or to give the server up. */
  due(nowMs: number, openCalls: number): "ping" | "lost" | undefined {
    const { keepAliveTimeMs, keepAliveTimeoutMs, pingsWhenIdle } = this.#limits;
    if (keepAliveTimeMs === 0) return undefined;
    if (this.#pingedMs !== undefined)
      return nowMs - this.#pingedMs >= keepAliveTimeoutMs ? "lost" : undefined;
    if (openCalls === 0 && !pingsWhenIdle) return undefined;
    if (nowMs - this.#lastReadMs < keepAliveTimeMs) return undefined;
    this.#pingedMs = nowMs;
    return "ping";
  }
}
