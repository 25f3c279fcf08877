/** A plain HTTP request on an HTTP/2 stream, as an HttpExchange. */
import type { HttpHead, HttpResponse } from "@quorate/host";
import { fromUtf8 } from "@quorate/proto";
import { NameId } from "../hpack/header-field.ts";
import type { ByteBudget } from "../http2/byte-budget.ts";
import type { Http2Connection } from "../http2/connection.ts";
import { ErrorCode } from "../http2/constants.ts";
import type { RequestHead } from "../http2/request-head.ts";
import type { Http2Stream, StreamConsumer } from "../http2/stream.ts";
import { Exchange } from "./exchange.ts";
import { type HttpContext, promisedLength, type ResponseFields, responseFields } from "./fields.ts";
import { withRepeated } from "./repeated.ts";

const HEADERS_TOO_LARGE: HttpResponse = {
  status: 431,
  headers: { "content-type": "text/plain; charset=utf-8" },
  body: "request headers too large\n",
};
const CONTINUE = { fields: [{ name: ":status", value: "100" }], constant: false };

export class Http2Exchange extends Exchange implements StreamConsumer {
  readonly head: HttpHead;
  readonly #connection: Http2Connection;
  readonly #stream: Http2Stream;
  #isPaused = false;
  /** Body bytes that arrived while paused; the stream's window bounds them. */
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #bodyEnded = false;
  #isDelivering = false;

  constructor(
    context: HttpContext,
    connection: Http2Connection,
    stream: Http2Stream,
    bodyEnded: boolean,
  ) {
    super(context);
    this.#connection = connection;
    this.#stream = stream;
    this.head = headOf(stream.head, connection);
    stream.consumer = this;
    this.serve();
    if (bodyEnded) this.ended();
    else if (this.phase === "open" && this.head.headers.get("expect") === "100-continue")
      connection.sender.headers(stream, CONTINUE, false);
  }

  /** Besides, up to outputTargetBytes of the connection may wait for the socket. */
  get bufferedBytes(): number {
    return this.#stream.pendingBytes;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#deliverWaiting();
    this.#connection.touched();
  }

  /** HTTP/2 has no Upgrade (RFC 9113 section 8.6). */
  upgrade(): undefined {
    return undefined;
  }

  data(bytes: Uint8Array, start: number, end: number): void {
    if (!this.takesBody) return;
    const size = end - start;
    if (!this.#isPaused && this.#waitingBytes === 0) {
      this.#connection.credit(this.#stream, size);
      this.deliver(bytes.subarray(start, end));
    } else if (this.held.take(size)) {
      this.#waiting.push(bytes.subarray(start, end));
      this.#waitingBytes += size;
    } else {
      this.refusedToHold();
      this.#connection.reset(this.#stream, ErrorCode.EnhanceYourCalm);
      this.aborted();
    }
  }

  ended(): void {
    this.#bodyEnded = true;
    this.#deliverWaiting();
  }

  override aborted(): void {
    this.#dropWaiting();
    super.aborted();
  }

  drained(): void {
    this.notifyDrained();
  }

  protected get held(): ByteBudget {
    return this.#connection.held;
  }

  protected refusedToHold(): void {
    this.#connection.counters.heldBytesRefusals++;
  }

  protected sendHead(status: number, fields: ResponseFields, body?: Uint8Array): void {
    const isWhole = body !== undefined;
    if (isWhole) this.#dropWaiting();
    const more = this.isBodiless ? undefined : body;
    sendHead(this.#connection, this.#stream, {
      status,
      fields,
      date: this.context.date.text,
      length: promisedLength(status, fields, this.isBodiless, body),
      ends: this.isBodiless || more?.length === 0,
    });
    if (more !== undefined && more.length > 0) this.#sendData(more, "plain");
    this.#connection.touched();
  }

  protected sendBody(piece: Uint8Array): boolean {
    const isSent = this.#sendData(piece);
    this.#connection.touched();
    return isSent;
  }

  protected sendEnd(): void {
    this.#dropWaiting();
    if (this.isBodiless) return;
    this.#connection.sender.finish(this.#stream, "plain");
    this.#connection.touched();
  }

  protected cut(): void {
    this.#dropWaiting();
    this.#connection.reset(this.#stream, ErrorCode.InternalError);
    this.#connection.touched();
  }

  protected awaitDrain(sizeBytes: number): void {
    this.#stream.drainBytes = sizeBytes;
  }

  #sendData(piece: Uint8Array, ending?: "plain"): boolean {
    if (this.#connection.sender.data(this.#stream, [piece], piece.length, ending)) return true;
    this.#connection.counters.pendingBytesRefusals++;
    this.#connection.reset(this.#stream, ErrorCode.EnhanceYourCalm);
    return false;
  }

  /** Delivers what waits until the handler pauses, then the end of the body if it has arrived. */
  #deliverWaiting(): void {
    // A listener that calls resume is inside this loop already.
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    let next = 0;
    while (!this.#isPaused && this.takesBody) {
      const piece = this.#waiting[next];
      if (piece === undefined) break;
      next++;
      this.#waitingBytes -= piece.length;
      this.held.give(piece.length);
      this.#connection.credit(this.#stream, piece.length);
      this.deliver(piece);
    }
    if (next > 0) this.#waiting.splice(0, next);
    this.#isDelivering = false;
    if (!this.#bodyEnded || this.#isPaused || this.#waitingBytes > 0) return;
    this.#bodyEnded = false;
    this.deliverEnd();
  }

  #dropWaiting(): void {
    this.held.give(this.#waitingBytes);
    this.#waitingBytes = 0;
    this.#waiting = [];
  }
}

interface SentHead {
  readonly status: number;
  readonly fields: ResponseFields;
  readonly date: string;
  /** The content-length; undefined for none. */
  readonly length: number | undefined;
  /** The response has no body behind it. */
  readonly ends: boolean;
}

function sendHead(connection: Http2Connection, stream: Http2Stream, sent: SentHead): void {
  const fields = [{ name: ":status", value: String(sent.status) }];
  if (sent.length !== undefined)
    fields.push({ name: "content-length", value: String(sent.length) });
  for (const [name, value] of sent.fields.pairs) fields.push({ name, value });
  if (!sent.fields.hasDate) fields.push({ name: "date", value: sent.date });
  connection.sender.headers(stream, { fields, constant: false }, sent.ends);
}

/** Responds to a request whose headers are too long. */
export function refuseHttpHeaders(
  context: HttpContext,
  connection: Http2Connection,
  stream: Http2Stream,
): void {
  const { status, headers } = HEADERS_TOO_LARGE;
  const body = fromUtf8(HEADERS_TOO_LARGE.body as string);
  const fields = responseFields(headers);
  const date = context.date.text;
  sendHead(connection, stream, { status, fields, date, length: body.length, ends: false });
  connection.sender.data(stream, [body], body.length, "plain");
}

function headOf(head: RequestHead, connection: Http2Connection): HttpHead {
  const target = head.path.value;
  const mark = target.indexOf("?");
  return {
    method: head.method,
    path: mark === -1 ? target : target.slice(0, mark),
    query: mark === -1 ? "" : target.slice(mark + 1),
    ...headerMaps(head),
    isSecure: false,
    ...connection.peer,
  };
}

/**
 * The fields by name. Values of one name are joined by commas, cookies by semicolons (RFC 9113
 * section 8.2.3).
 */
function headerMaps(head: RequestHead): Pick<HttpHead, "headers" | "repeatedHeaders"> {
  const map = new Map<string, string>();
  let repeatedHeaders: Map<string, string[]> | undefined;
  for (const { name, value, nameId } of head.fields) {
    if (name.startsWith(":")) continue;
    const before = map.get(name);
    if (before !== undefined) repeatedHeaders = withRepeated(repeatedHeaders, name, before, value);
    map.set(
      name,
      before === undefined ? value : before + (nameId === NameId.Cookie ? "; " : ", ") + value,
    );
  }
  if (head.authority !== undefined && !map.has("host")) map.set("host", head.authority);
  return { headers: map, repeatedHeaders };
}
