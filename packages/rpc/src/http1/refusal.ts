/** The responses of the engine itself, which end the connection. */

export interface Refusal {
  readonly status: number;
  /** The rule that the request breaks; sent in the body, as Go's server does. */
  readonly reason: string;
  /** The bytes are not HTTP/1: the connection ends without a response. */
  readonly silent: boolean;
}

export function refusal(status: number, reason: string): Refusal {
  return { status, reason, silent: false };
}

export const NOT_HTTP: Refusal = { status: 400, reason: "not HTTP/1", silent: true };
export const BARE_LF = refusal(400, "a line ends without CR");
export const HEAD_TOO_LARGE = refusal(431, "headers are too large");
export const TARGET_TOO_LONG = refusal(414, "the request target is longer than 16 KiB");
export const FIELD_TOO_LARGE = refusal(431, "a header is longer than 16 KiB");
export const TOO_MANY_FIELDS = refusal(431, "too many headers");
export const HEAD_TIMEOUT = refusal(408, "the headers did not end in time");
export const BODY_TIMEOUT = refusal(408, "the request did not end in time");
export const BAD_CHUNK = refusal(400, "malformed chunked body");
export const EXTENSIONS_TOO_LARGE = refusal(413, "chunk extensions are too large");
export const TRAILERS_TOO_LARGE = refusal(431, "trailers are too large");
export const BAD_TRAILERS = refusal(400, "malformed trailers");
