/** A request of the comparison. */

/** One request. In headers, "{token:USER}" stands for the user's latest token. */
export interface GatewayRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes as latin1. */
  readonly body: string;
}
