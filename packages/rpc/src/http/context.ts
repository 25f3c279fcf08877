/** What the exchanges of both HTTP versions share. */
import type { Clock, HttpExchangeHandler, Logger } from "@quorate/host";

export interface HttpContext {
  readonly handler: HttpExchangeHandler;
  readonly logger: Logger;
  /** Bytes of a response that may wait to be sent before `send` returns false. */
  readonly sendBudgetBytes: number;
  readonly date: HttpDate;
}

/** The value of the header Date (RFC 9110 section 6.6.1), made once a second. */
export class HttpDate {
  readonly #clock: Clock;
  #second = -1;
  #text = "";

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get text(): string {
    const second = Math.floor(this.#clock.wallMs() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = new Date(second * 1000).toUTCString();
    }
    return this.#text;
  }
}
