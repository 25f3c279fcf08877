/** What exchanges of both HTTP versions share: rules for responses (RFC 9110 sections 5.5, 6.4). */
import type { Clock, HttpExchangeHandler, Logger } from "@quorate/host";

/** Whether a response with this status may have a body, and so a content-length. */
export function mayHaveBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 205 && status !== 304;
}

/**
 * Connection-specific fields, which the engine sets itself and HTTP/2 does not have (RFC 9113
 * section 8.2.2).
 */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const UNSAFE = /[^\t\x20-\x7e\x80-\xff]/g;

/** A response's fields by lower-case name, without those that belong to the connection. */
export interface ResponseFields {
  /** Pairs of name and value. */
  readonly pairs: readonly (readonly [string, string])[];
  /** The length that a handler promises; undefined without a content-length. */
  readonly contentLength: number | undefined;
  readonly hasDate: boolean;
  /** The same object for all responses with these headers, which cannot change. */
  readonly isShared: boolean;
}

/** Fields of headers that cannot change: most responses have the same ones. */
const known = new WeakMap<object, ResponseFields>();

/** The fields of a handler's response; those of frozen headers are made once. */
export function responseFields(headers: Readonly<Record<string, string>>): ResponseFields {
  const before = known.get(headers);
  if (before !== undefined) return before;
  const isShared = Object.isFrozen(headers);
  const fields = { ...fieldsOf(headers), isShared };
  if (isShared) known.set(headers, fields);
  return fields;
}

/**
 * A field whose name is not a token is left out, and characters
 * that a value must not have become "?": otherwise a value that comes from a client could begin
 * another response.
 */
function fieldsOf(headers: Readonly<Record<string, string>>): Omit<ResponseFields, "isShared"> {
  const pairs: (readonly [string, string])[] = [];
  let contentLength: number | undefined;
  let hasDate = false;
  for (const given in headers) {
    const name = given.toLowerCase();
    if (CONNECTION_FIELDS.has(name) || !NAME.test(name)) continue;
    const value = (headers[given] ?? "").replace(UNSAFE, "?");
    if (name === "content-length") {
      contentLength = Number(value);
      continue;
    }
    if (name === "date") hasDate = true;
    pairs.push([name, value]);
  }
  return { pairs, contentLength, hasDate };
}

/**
 * The content-length of a response; undefined for none. Only a response without a body on the wire
 * has the handler's (to HEAD, RFC 9110 section 8.6), or one whose body follows in pieces.
 * @param body the whole body; undefined where it follows
 */
export function promisedLength(
  status: number,
  fields: ResponseFields,
  isBodiless: boolean,
  body: Uint8Array | undefined,
): number | undefined {
  if (!mayHaveBody(status)) return undefined;
  if (body === undefined) return fields.contentLength;
  return isBodiless ? (fields.contentLength ?? body.length) : body.length;
}

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
