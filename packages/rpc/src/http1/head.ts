/**
 * The head of a request (RFC 9112 sections 2 to 6), parsed strictly: what another program on the
 * way could read differently is refused, so that no request hides in another one.
 *
 *     GET /path?query HTTP/1.1 CRLF
 *     name ":" OWS value OWS CRLF        any number of times
 *     CRLF
 */

import { listItems } from "@quorate/host";
import { toLatin1 } from "@quorate/proto";
import { MAX_FIELD_BYTES } from "../field-limits.ts";
import { withRepeated } from "../http/repeated.ts";
import {
  FIELD_TOO_LARGE,
  NOT_HTTP,
  type Refusal,
  refusal,
  TARGET_TOO_LONG,
  TOO_MANY_FIELDS,
} from "./refusal.ts";

export interface Http1Head {
  readonly method: string;
  readonly path: string;
  /** Without "?". */
  readonly query: string;
  /** By lower-case name; values of one name are joined by ", ", cookies by "; ". */
  readonly headers: ReadonlyMap<string, string>;
  /** The values of names that came more than once. */
  readonly repeatedHeaders: ReadonlyMap<string, readonly string[]> | undefined;
  /** HTTP/1.0, which knows neither chunks nor 100. */
  readonly isOld: boolean;
  /** The body's length; -1 for a chunked body. */
  readonly contentLength: number;
  /** The client keeps the connection for further requests. */
  readonly keepAlive: boolean;
  /** The client waits for 100 before it sends the body. */
  readonly expectsContinue: boolean;
  /** The first protocol of the header Upgrade, if Connection names it. */
  readonly upgrade: string | undefined;
}

const CR = 13;
const SP = 32;
const HTAB = 9;
const COLON = 58;
const SLASH = 47;
const QUESTION = 63;

/** Longest method that is taken for one. */
const MAX_METHOD_CHARS = 32;

/** Longest target of a request; longer ones get 414. */
export const MAX_TARGET_BYTES: number = 16 << 10;

/** The options of a request without Connection. */
const NO_OPTIONS: readonly string[] = [];

/** Characters of a token (RFC 9110 section 5.6.2). */
const IS_TOKEN = table(/[!#$%&'*+\-.^_`|~0-9A-Za-z]/);
/** Characters of a field's value: visible, space, tab and obs-text (section 5.5). */
const IS_VALUE = table(/[\t\x20-\x7e\x80-\xff]/);
/** Characters of a target: visible ones without "#", which no client sends. */
const IS_TARGET = table(/[\x21\x22\x24-\x7e]/);

function table(allowed: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) =>
    allowed.test(String.fromCharCode(code)) ? 1 : 0,
  );
}

/** Fields that say how long a body is. */
const FRAMING_NAMES: ReadonlySet<string> = new Set(["content-length", "transfer-encoding"]);

/** Whether a byte may begin a request. */
export function mayBegin(byte: number): boolean {
  return IS_TOKEN[byte] === 1;
}

/**
 * The head in bytes[start, end), whose lines all end with CRLF, the last one empty; or what is
 * wrong with it.
 */
export function parseHead(
  bytes: Uint8Array,
  start: number,
  end: number,
  maxFields: number,
): Http1Head | Refusal {
  return new HeadParser(bytes, start, end, maxFields).parse();
}

class HeadParser {
  readonly #bytes: Uint8Array;
  readonly #text: string;
  readonly #start: number;
  readonly #maxFields: number;
  readonly #headers = new Map<string, string>();
  #repeated: Map<string, string[]> | undefined;
  #at = 0;
  #method = "";
  #path = "";
  #query = "";
  #authority: string | undefined;
  #isOld = false;
  #contentLength = 0;

  constructor(bytes: Uint8Array, start: number, end: number, maxFields: number) {
    this.#bytes = bytes;
    this.#start = start;
    this.#text = toLatin1(bytes, start, end);
    this.#maxFields = maxFields;
  }

  parse(): Http1Head | Refusal {
    const wrong = this.#requestLine() ?? this.#fields() ?? this.#framing();
    if (wrong !== undefined) return wrong;
    const headers = this.#headers;
    const connection = headers.get("connection");
    const options = connection === undefined ? NO_OPTIONS : listItems(connection.toLowerCase());
    const isKept = this.#isOld ? options.includes("keep-alive") : !options.includes("close");
    const upgrade = options.includes("upgrade") ? headers.get("upgrade") : undefined;
    return {
      method: this.#method,
      path: this.#path,
      query: this.#query,
      headers,
      repeatedHeaders: this.#repeated,
      isOld: this.#isOld,
      contentLength: this.#contentLength,
      keepAlive: isKept,
      expectsContinue: !this.#isOld && headers.get("expect")?.toLowerCase() === "100-continue",
      upgrade: this.#isOld ? undefined : upgrade,
    };
  }

  #requestLine(): Refusal | undefined {
    const bytes = this.#bytes;
    const text = this.#text;
    const base = this.#start;
    let at = 0;
    while (IS_TOKEN[bytes[base + at]] === 1) at++;
    if (at === 0 || at > MAX_METHOD_CHARS || bytes[base + at] !== SP) return NOT_HTTP;
    this.#method = text.slice(0, at);
    const targetAt = ++at;
    let queryAt = -1;
    while (IS_TARGET[bytes[base + at]] === 1) {
      if (bytes[base + at] === QUESTION && queryAt === -1) queryAt = at + 1;
      at++;
    }
    const targetEnd = at;
    if (targetEnd - targetAt > MAX_TARGET_BYTES) return TARGET_TOO_LONG;
    if (bytes[base + at] !== SP) return this.#badLine(at);
    if (!text.startsWith(" HTTP/1.", at) || !text.startsWith("\r\n", at + 9))
      return this.#badLine(at);
    const minor = bytes[base + at + 8] - 48;
    if (minor !== 0 && minor !== 1) return refusal(505, "unsupported protocol version");
    this.#isOld = minor === 0;
    this.#at = at + 11;
    this.#path = text.slice(targetAt, queryAt === -1 ? targetEnd : queryAt - 1);
    this.#query = queryAt === -1 ? "" : text.slice(queryAt, targetEnd);
    return bytes[base + targetAt] === SLASH ? undefined : this.#oddTarget(targetAt, targetEnd);
  }

  /** A request line that is not one: an answer only where it claims to be HTTP/1. */
  #badLine(at: number): Refusal {
    const lineEnd = this.#text.indexOf("\r", at);
    return this.#text.slice(0, lineEnd).includes(" HTTP/1.")
      ? refusal(400, "malformed request line")
      : NOT_HTTP;
  }

  /** Absolute form, "*" of OPTIONS; others are refused (RFC 9112 section 3.2). */
  #oddTarget(targetAt: number, targetEnd: number): Refusal | undefined {
    const target = this.#text.slice(targetAt, targetEnd);
    if (target === "*" && this.#method === "OPTIONS") return undefined;
    const absolute = /^https?:\/\/([^/?]+)(\/[^?]*)?(?:\?(.*))?$/i.exec(target);
    if (absolute === null) return refusal(400, "malformed request target");
    this.#authority = absolute[1];
    this.#path = absolute[2] ?? "/";
    this.#query = absolute[3] ?? "";
    return undefined;
  }

  #fields(): Refusal | undefined {
    const bytes = this.#bytes;
    const text = this.#text;
    const base = this.#start;
    const headers = this.#headers;
    let at = this.#at;
    for (let count = 0; bytes[base + at] !== CR; count++) {
      if (count === this.#maxFields) return TOO_MANY_FIELDS;
      const nameAt = at;
      while (IS_TOKEN[bytes[base + at]] === 1) at++;
      if (at === nameAt || bytes[base + at] !== COLON) return refusal(400, "malformed header name");
      const name = lowerCase(text.slice(nameAt, at++));
      while (bytes[base + at] === SP || bytes[base + at] === HTAB) at++;
      const valueAt = at;
      while (IS_VALUE[bytes[base + at]] === 1) at++;
      if (at - nameAt > MAX_FIELD_BYTES) return FIELD_TOO_LARGE;
      // Lines end with CRLF, so behind a CR that is no line's end there is no LF.
      if (bytes[base + at] !== CR || text.charCodeAt(at + 1) !== 10)
        return refusal(400, "malformed header value");
      let valueEnd = at;
      while (
        valueEnd > valueAt &&
        (bytes[base + valueEnd - 1] === SP || bytes[base + valueEnd - 1] === HTAB)
      )
        valueEnd--;
      // Programs differ in whether they trim a tab, so the body's length must not depend on it.
      if (FRAMING_NAMES.has(name) && text.slice(nameAt, at).includes("\t"))
        return refusal(400, `malformed ${name}`);
      at += 2;
      const wrong = this.#add(headers, name, text.slice(valueAt, valueEnd));
      if (wrong !== undefined) return wrong;
    }
    // A line that begins with CR is not yet the empty one.
    return at + 2 === text.length ? undefined : refusal(400, "malformed header name");
  }

  #add(headers: Map<string, string>, name: string, value: string): Refusal | undefined {
    const before = headers.get(name);
    if (before === undefined) headers.set(name, value);
    else if (FRAMING_NAMES.has(name)) return refusal(400, `${name} comes twice`);
    else if (name === "host") return refusal(400, "too many Host headers");
    else if (before.length + 2 + value.length > MAX_FIELD_BYTES) return FIELD_TOO_LARGE;
    else {
      headers.set(name, before + (name === "cookie" ? "; " : ", ") + value);
      this.#repeated = withRepeated(this.#repeated, name, before, value);
    }
    return undefined;
  }

  /** How long the body is, and for which host the request is (RFC 9112 sections 3.2 and 6). */
  #framing(): Refusal | undefined {
    const headers = this.#headers;
    const length = headers.get("content-length");
    const encoding = headers.get("transfer-encoding");
    if (encoding !== undefined) {
      if (length !== undefined) return refusal(400, "content-length with transfer-encoding");
      if (this.#isOld) return refusal(400, "transfer-encoding in HTTP/1.0");
      if (encoding.toLowerCase() !== "chunked")
        return refusal(501, "unsupported transfer encoding");
      this.#contentLength = -1;
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) return refusal(400, "malformed content-length");
      this.#contentLength = Number(length);
    }
    const expect = headers.get("expect");
    if (expect !== undefined && expect.toLowerCase() !== "100-continue" && !this.#isOld)
      return refusal(417, "unknown expectation");
    return this.#host();
  }

  #host(): Refusal | undefined {
    const host = this.#headers.get("host");
    if (host === undefined && !this.#isOld) return refusal(400, "missing required Host header");
    if (host !== undefined && !/^[\w.~!$&'()*+,;=:[\]%-]*$/.test(host))
      return refusal(400, "malformed Host header");
    if (this.#authority === undefined) return undefined;
    if (host !== undefined && host !== this.#authority)
      return refusal(400, "Host differs from the request target");
    this.#headers.set("host", this.#authority);
    return undefined;
  }
}

/** Lower-case names by the spellings of usual clients: one string each, without a conversion. */
const KNOWN_NAMES = new Map<string, string>(
  [
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Cache-Control",
    "Connection",
    "Content-Length",
    "Content-Type",
    "Cookie",
    "Host",
    "If-Match",
    "If-None-Match",
    "Origin",
    "Transfer-Encoding",
    "Upgrade",
    "User-Agent",
  ].flatMap((name) => [
    [name, name.toLowerCase()],
    [name.toLowerCase(), name.toLowerCase()],
  ]),
);

function lowerCase(name: string): string {
  return KNOWN_NAMES.get(name) ?? name.toLowerCase();
}

/** Whether bytes[start, end) are trailers: fields that end with CRLF, and an empty line. */
export function areTrailers(bytes: Uint8Array, start: number, end: number): boolean {
  // Fields for the body's length and the host come too late here (RFC 9110 section 6.5.1).
  if (/(?:^|\n)(?:content-length|transfer-encoding|host):/i.test(toLatin1(bytes, start, end)))
    return false;
  let at = start;
  while (bytes[at] !== CR) {
    const nameAt = at;
    while (IS_TOKEN[bytes[at]] === 1) at++;
    if (at === nameAt || bytes[at++] !== COLON) return false;
    while (IS_VALUE[bytes[at]] === 1) at++;
    if (bytes[at] !== CR || bytes[at + 1] !== 10) return false;
    at += 2;
  }
  return at + 2 === end;
}
