/** An HTTP request of a front-end's on the member's thread. */
import type { HttpHead } from "@quorate/host";
import { type ByteBudget, Exchange, type ResponseFields } from "@quorate/rpc";
import { type FrontCall, toFront } from "./front-call.ts";
import {
  decodeTexts,
  EXCHANGE_TEXTS,
  encodeTexts,
  given,
  ReceiveWindow,
  SendWindow,
  ToFront,
} from "./protocol.ts";
import { RingError } from "./ring.ts";
import type { ServedContext } from "./served-context.ts";

const NOTHING = new Uint8Array(0);

export class FrontExchange extends Exchange implements FrontCall {
  override readonly head: HttpHead;
  readonly #shared: ServedContext;
  readonly #number: number;
  protected override readonly held: ByteBudget;
  readonly #sending = new SendWindow();
  readonly #receiving = new ReceiveWindow();
  /** Pieces of the body that came while it was paused; bounded by the window. */
  #waiting: Uint8Array[] = [];
  #isPaused = false;
  #isDelivering = false;
  #isHalfClosed = false;
  #isEndDelivered = false;

  /** @throws RingError for texts that are no head of a request */
  constructor(shared: ServedContext, number: number, organizations: number, texts: Uint8Array) {
    super(shared.http);
    this.#shared = shared;
    this.#number = number;
    this.head = headOf(decodeTexts(texts), organizations);
    this.held = shared.held.join(Number.POSITIVE_INFINITY, this.head.peerAddress, () =>
      this.abort(),
    );
  }

  /** Gives the request to the handler. */
  begin(): void {
    this.serve();
  }

  override get bufferedBytes(): number {
    return this.#sending.sentBytes;
  }

  override pause(): void {
    if (this.#isPaused || !this.takesBody) return;
    this.#isPaused = true;
    this.#send(ToFront.Paused);
  }

  override resume(): void {
    if (!this.#isPaused || !this.takesBody) return;
    this.#isPaused = false;
    this.#send(ToFront.Resumed);
    this.#report();
    this.#deliver();
  }

  /** What takes connections over is served by the front-end itself. */
  override upgrade(): undefined {
    return undefined;
  }

  message(bytes: Uint8Array): void {
    if (this.#isHalfClosed) throw new RingError("a message after the last one");
    this.#receiving.received(bytes.length);
    this.#waiting.push(bytes);
    this.#deliver();
    if (!this.#isPaused) this.#report();
  }

  halfClosed(): void {
    if (this.#isHalfClosed) throw new RingError("a second half-close");
    this.#isHalfClosed = true;
    this.#deliver();
  }

  cancelledByFront(): void {
    this.aborted();
  }

  taken(sizeBytes: number): void {
    if (this.#sending.taken(sizeBytes)) this.notifyDrained();
  }

  override aborted(): void {
    if (!this.takesBody) return;
    super.aborted();
    this.#end(ToFront.End);
  }

  protected override refusedToHold(): void {}

  protected override sendHead(status: number, fields: ResponseFields, body?: Uint8Array): void {
    const pairs: string[] = fields.pairs.flat();
    if (fields.contentLength !== undefined)
      pairs.push("content-length", String(fields.contentLength));
    const texts = encodeTexts(pairs);
    const { link } = this.#shared;
    if (body === undefined) {
      link.send(toFront(ToFront.Head, this.#number, status), texts);
      return;
    }
    link.send(toFront(ToFront.Answer, this.#number, status, texts.length), [texts, body]);
    this.#over();
  }

  protected override sendBody(piece: Uint8Array): boolean {
    this.#shared.link.send(toFront(ToFront.Message, this.#number), piece);
    this.#sending.sent(piece.length);
    return true;
  }

  protected override sendEnd(): void {
    this.#end(ToFront.End);
  }

  protected override cut(): void {
    this.#end(ToFront.Cut);
  }

  protected override awaitDrain(): void {}

  #send(kind: number, value = 0): void {
    this.#shared.link.send(toFront(kind, this.#number, 0, value), NOTHING);
  }

  #end(kind: number): void {
    this.#send(kind);
    this.#over();
  }

  #over(): void {
    this.held.leave();
    this.#waiting = [];
    this.#shared.ended(this.#number);
  }

  #report(): void {
    const taken = this.#receiving.take(false);
    if (taken > 0 && this.takesBody) this.#send(ToFront.Taken, taken);
  }

  #deliver(): void {
    // A listener that calls resume is inside this loop already.
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    let next = 0;
    while (next < this.#waiting.length && !this.#isPaused && this.takesBody)
      this.deliver(this.#waiting[next++]);
    this.#waiting.splice(0, next);
    this.#isDelivering = false;
    if (!this.#isHalfClosed || this.#isEndDelivered || this.#isPaused) return;
    this.#isEndDelivered = true;
    this.deliverEnd();
  }
}

function headOf(texts: readonly (string | undefined)[], organizations: number): HttpHead {
  const headersAt = EXCHANGE_TEXTS + organizations;
  if (headersAt > texts.length || (texts.length - headersAt) % 2 !== 0)
    throw new RingError("an exchange's texts");
  const headers = new Map<string, string>();
  for (let i = headersAt; i < texts.length; i += 2)
    headers.set(given(texts[i]), given(texts[i + 1]));
  const [method, path, query, address, peerCommonName, peerSubject, hash, error, secure] = texts;
  return {
    method: given(method),
    path: given(path),
    query: given(query),
    headers,
    peerAddress: given(address),
    peerCommonName,
    isSecure: secure !== undefined,
    ...(peerSubject === undefined ? {} : { peerSubject }),
    ...(organizations === 0
      ? {}
      : { peerOrganizations: texts.slice(EXCHANGE_TEXTS, headersAt).map(given) }),
    ...(hash === undefined ? {} : { peerCertificateSha256: hash }),
    ...(error === undefined ? {} : { peerCertificateError: error }),
  };
}
