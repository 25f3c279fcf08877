/** Writes heads of responses and chunks of bodies (RFC 9112 sections 4, 6 and 7.1). */
import { fromLatin1, writeLatin1 } from "@quorate/proto";
import type { HttpDate, ResponseFields } from "../http/fields.ts";
import type { Output } from "../http2/output.ts";
import type { Refusal } from "./refusal.ts";

const REASONS: Readonly<Record<number, string>> = {
  100: "Continue",
  101: "Switching Protocols",
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  205: "Reset Content",
  206: "Partial Content",
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  304: "Not Modified",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  406: "Not Acceptable",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  411: "Length Required",
  412: "Precondition Failed",
  413: "Request Entity Too Large",
  414: "Request URI Too Long",
  415: "Unsupported Media Type",
  416: "Requested Range Not Satisfiable",
  417: "Expectation Failed",
  426: "Upgrade Required",
  428: "Precondition Required",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  505: "HTTP Version Not Supported",
  507: "Insufficient Storage",
};

/** The status line for 101, and others without fields of a handler. */
export function statusLine(status: number): string {
  // Three digits; a client would not accept others.
  const code = status >= 100 && status <= 999 ? Math.trunc(status) : 500;
  return `HTTP/1.1 ${code} ${REASONS[code] ?? `status code ${code}`}\r\n`;
}

/** How the body behind a head is delimited. */
export type Framing = { readonly length: number } | "chunked" | "until-close" | "none";

/** What the connection does behind the response; "kept" is said to HTTP/1.0 only. */
export type Persistence = "close" | "kept" | "default";

/** A head, with the empty line. @param date the value of Date, unless the fields have one */
export function headText(
  status: number,
  fields: ResponseFields,
  framing: Framing,
  persistence: Persistence,
  date: string,
): string {
  let text = statusLine(status);
  for (const [name, value] of fields.pairs) text += `${name}: ${value}\r\n`;
  if (!fields.hasDate) text += `date: ${date}\r\n`;
  if (framing === "chunked") text += "transfer-encoding: chunked\r\n";
  else if (typeof framing === "object") text += `content-length: ${framing.length}\r\n`;
  if (persistence === "close") text += "connection: close\r\n";
  else if (persistence === "kept") text += "connection: keep-alive\r\n";
  return `${text}\r\n`;
}

/** Heads of other shared fields than these many are made for each response. */
export const MAX_KNOWN_HEADS = 64;

/**
 * Heads of whole responses whose headers are the same for many requests: each is made once a
 * second, for its Date, but for the length at its end.
 */
export class KnownHeads {
  readonly #date: HttpDate;
  #dateText = "";
  readonly #starts = new Map<ResponseFields, { readonly status: number; bytes: Uint8Array }>();

  constructor(date: HttpDate) {
    this.#date = date;
  }

  /** A head up to the digits of its content-length; undefined where it is no known one. */
  startOf(status: number, fields: ResponseFields): Uint8Array | undefined {
    if (!fields.isShared || fields.hasDate) return undefined;
    const { text } = this.#date;
    if (text !== this.#dateText) {
      this.#dateText = text;
      this.#starts.clear();
    }
    const known = this.#starts.get(fields);
    if (known !== undefined) return known.status === status ? known.bytes : undefined;
    if (this.#starts.size >= MAX_KNOWN_HEADS) return undefined;
    const whole = headText(status, fields, { length: 0 }, "default", text);
    const bytes = fromLatin1(whole.slice(0, whole.lastIndexOf("0")));
    this.#starts.set(fields, { status, bytes });
    return bytes;
  }
}

export const CONTINUE_TEXT: string = `${statusLine(100)}\r\n`;
/** The end of a chunked body. */
export const LAST_CHUNK = "0\r\n\r\n";

/** The head of a response with 101. */
export function switchingText(
  upgrade: string,
  pairs: readonly (readonly [string, string])[],
): string {
  let text = `${statusLine(101)}upgrade: ${upgrade}\r\nconnection: Upgrade\r\n`;
  for (const [name, value] of pairs) text += `${name}: ${value}\r\n`;
  return `${text}\r\n`;
}

/** A whole response of the engine itself, as Go's server words it. */
export function refusalText({ status, reason }: Refusal): string {
  const line = statusLine(status);
  const body = `${line.slice(9, -2)}: ${reason}`;
  return `${line}content-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n${body}`;
}

/** Appends a latin1 text. */
export function writeText(out: Output, text: string): void {
  const at = out.reserve(text.length);
  writeLatin1(out.bytes, text, at);
}

/** Appends a head by its known start: the digits of the length and the empty line behind it. */
export function writeKnownHead(out: Output, start: Uint8Array, digits: string): void {
  const at = out.reserve(start.length + digits.length + 4);
  out.bytes.set(start, at);
  writeLatin1(out.bytes, `${digits}\r\n\r\n`, at + start.length);
}

/** Appends a piece as one chunk; it must not change any more. */
export function writeChunk(out: Output, piece: Uint8Array): void {
  writeText(out, `${piece.length.toString(16)}\r\n`);
  out.append(piece, 0, piece.length);
  writeText(out, "\r\n");
}

/** An upper bound of what a chunk's frame adds to its piece. */
export const CHUNK_FRAME_BYTES = 12;
