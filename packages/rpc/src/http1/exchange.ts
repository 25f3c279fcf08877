/** A request on an HTTP/1.1 connection, as an HttpExchange. */
import type { HttpHead } from "@quorate/host";
import { Exchange } from "../http/exchange.ts";
import { promisedLength, type ResponseFields, responseFields } from "../http/fields.ts";
import type { ByteBudget } from "../http2/byte-budget.ts";
import type { Carrier } from "./carrier.ts";
import type { Http1Head } from "./head.ts";
import {
  CHUNK_FRAME_BYTES,
  CONTINUE_TEXT,
  type Framing,
  headText,
  LAST_CHUNK,
  type Persistence,
  switchingText,
  writeChunk,
  writeKnownHead,
  writeText,
} from "./response-head.ts";
import { Http1Tunnel } from "./tunnel.ts";

export class Http1Exchange extends Exchange {
  readonly head: HttpHead;
  /** The handler takes no body for now. */
  isPaused = false;
  /** The body was read to its end. */
  isBodyEnded = false;
  readonly #connection: Carrier;
  readonly #request: Http1Head;
  /** The connection stays open behind the response. */
  #isKept: boolean;
  #framing: Framing = "none";
  /** Bytes of the body that the head has promised and that were not sent. */
  #promisedBytes = 0;
  #isContinueDue: boolean;

  constructor(connection: Carrier, request: Http1Head) {
    super(connection.shared.context);
    this.#connection = connection;
    this.#request = request;
    this.#isKept = request.keepAlive;
    this.#isContinueDue = request.expectsContinue && request.contentLength !== 0;
    const { method, path, query, headers, repeatedHeaders } = request;
    const { peer } = connection;
    this.head = { method, path, query, headers, repeatedHeaders, isSecure: false, ...peer };
  }

  /** The response is complete. */
  get isResponded(): boolean {
    return this.phase === "ended";
  }

  /** A part of the response was sent, so that no other one can be. */
  get hasBegun(): boolean {
    return this.phase !== "open";
  }

  /** The client has still to send the body before there is a response. */
  get isBodyDue(): boolean {
    return this.phase === "open" && !this.isBodyEnded && !this.isPaused;
  }

  /** The rest of the body is dropped. */
  get isDiscarding(): boolean {
    return this.phase === "ended" && !this.isBodyEnded;
  }

  get bufferedBytes(): number {
    return this.#connection.unsentBytes;
  }

  /** Calls the handler, and asks for the body if the client waits for that. */
  begin(): void {
    this.serve();
    if (!this.#isContinueDue || this.phase !== "open") return;
    this.#isContinueDue = false;
    this.#write(CONTINUE_TEXT);
    this.#connection.touched();
  }

  body(piece: Uint8Array): void {
    this.deliver(piece);
  }

  bodyEnded(): void {
    this.isBodyEnded = true;
    this.deliverEnd();
  }

  drained(): void {
    this.notifyDrained();
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#connection.pump();
  }

  upgrade(headers: Readonly<Record<string, string>>): Http1Tunnel | undefined {
    const { upgrade, contentLength } = this.#request;
    if (this.phase !== "open" || upgrade === undefined || contentLength !== 0) return undefined;
    const { pairs } = responseFields(headers);
    const protocol = upgrade.split(",", 1)[0].trim();
    if (!this.#write(switchingText(protocol, pairs))) return undefined;
    this.phase = "ended";
    this.release(Number.POSITIVE_INFINITY);
    const tunnel = new Http1Tunnel(this.#connection, this.context.sendBudgetBytes);
    this.#connection.takenOver(tunnel);
    this.#connection.touched();
    return tunnel;
  }

  protected get held(): ByteBudget {
    return this.#connection.held;
  }

  protected refusedToHold(): void {
    this.#connection.shared.budgetCounters.heldBytesRefusals++;
  }

  protected sendHead(status: number, fields: ResponseFields, body?: Uint8Array): void {
    const length = promisedLength(status, fields, this.isBodiless, body);
    this.#framing = this.#framingOf(status, length);
    this.#promisedBytes = this.isBodiless ? 0 : (length ?? 0);
    this.#isKept &&= this.#mayKeep();
    if (body !== undefined && this.#sendKnown(status, fields, body)) return;
    const text = headText(
      status,
      fields,
      this.#framing,
      this.#persistence(),
      this.context.date.text,
    );
    if (body === undefined) this.#write(text);
    else {
      const size = this.isBodiless ? 0 : body.length;
      if (this.#connection.take(text.length + size)) {
        writeText(this.#connection.out, text);
        if (size > 0) this.#connection.out.append(body, 0, size);
      }
      this.#connection.responded(this.#isKept);
    }
    this.#connection.touched();
  }

  /** Sends a whole response with a head that is known; false where it is not. */
  #sendKnown(status: number, fields: ResponseFields, body: Uint8Array): boolean {
    if (!this.#isKept || this.#request.isOld || typeof this.#framing !== "object") return false;
    const connection = this.#connection;
    const start = connection.shared.knownHeads.startOf(status, fields);
    if (start === undefined) return false;
    const digits = String(this.#framing.length);
    const size = this.isBodiless ? 0 : body.length;
    if (connection.take(start.length + digits.length + 4 + size)) {
      writeKnownHead(connection.out, start, digits);
      connection.out.append(body, 0, size);
    }
    connection.responded(true);
    connection.touched();
    return true;
  }

  protected sendBody(piece: Uint8Array): boolean {
    const connection = this.#connection;
    if (typeof this.#framing === "object" && piece.length > this.#promisedBytes) {
      // Further bytes would be taken for the next response.
      connection.finish();
      return false;
    }
    if (!connection.take(piece.length)) return false;
    if (this.#framing === "chunked") {
      if (!connection.take(CHUNK_FRAME_BYTES)) return false;
      writeChunk(connection.out, piece);
    } else {
      this.#promisedBytes -= piece.length;
      connection.out.append(piece, 0, piece.length);
    }
    connection.touched();
    return true;
  }

  protected sendEnd(): void {
    const isShort = typeof this.#framing === "object" && this.#promisedBytes !== 0;
    if (this.#framing === "chunked" && !this.isBodiless) this.#write(LAST_CHUNK);
    this.#connection.responded(this.#isKept && !isShort);
    this.#connection.touched();
  }

  protected cut(): void {
    // Without a length or chunks, only an error of the connection shows that the body is cut off.
    if (this.#framing === "until-close") this.#connection.destroy();
    else this.#connection.responded(false);
  }

  protected awaitDrain(sizeBytes: number): void {
    this.#connection.awaitDrain(sizeBytes);
  }

  #framingOf(status: number, length: number | undefined): Framing {
    if (length !== undefined) return { length };
    if (status < 200 || status === 204 || status === 304) return "none";
    if (status === 205) return { length: 0 };
    if (!this.#request.isOld) return "chunked";
    return this.isBodiless ? "none" : "until-close";
  }

  /** Whether the connection can be kept: by its framing, and because the body's rest is short. */
  #mayKeep(): boolean {
    if (this.#framing === "until-close" || this.#connection.isLast) return false;
    if (this.isBodyEnded) return true;
    if (this.#isContinueDue) return false;
    const { bodyLeftBytes = 0, shared } = this.#connection;
    return bodyLeftBytes <= shared.limits.maxDiscardedBytes;
  }

  #persistence(): Persistence {
    if (!this.#isKept) return "close";
    return this.#request.isOld ? "kept" : "default";
  }

  #write(text: string): boolean {
    if (!this.#connection.take(text.length)) return false;
    writeText(this.#connection.out, text);
    return true;
  }
}
