/** An HTTP request of a front-end's on the member's thread. */
import type { HttpHead } from "@quorate/host";
import { EMPTY } from "@quorate/proto";
import { type ByteBudget, Exchange, type ResponseFields } from "@quorate/rpc";
import type { FrontCall, ServedContext } from "./front-call.ts";
import { Inbox, type InboxOwner } from "./inbox.ts";
import {
  decodeTexts,
  EXCHANGE_TEXTS,
  encodeTexts,
  given,
  SendWindow,
  ToFront,
  toFront,
} from "./protocol.ts";
import { RingError } from "./ring.ts";

export class FrontExchange extends Exchange implements FrontCall, InboxOwner {
  override readonly head: HttpHead;
  readonly #shared: ServedContext;
  readonly #number: number;
  protected override readonly held: ByteBudget;
  readonly #sending = new SendWindow();
  readonly #inbox = new Inbox(this);

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
    this.#inbox.pause();
  }

  override resume(): void {
    this.#inbox.resume();
  }

  /** What takes connections over is served by the front-end itself. */
  override upgrade(): undefined {
    return undefined;
  }

  message(bytes: Uint8Array): void {
    this.#inbox.message(bytes);
  }

  again(): void {
    throw new RingError("a part of a body comes again");
  }

  halfClosed(): void {
    this.#inbox.halfClosed();
  }

  get isOpen(): boolean {
    return this.takesBody;
  }

  take(message: Uint8Array): void {
    this.deliver(message);
  }

  takeEnd(): void {
    this.deliverEnd();
  }

  tell(kind: number, value = 0): void {
    this.#shared.link.send(toFront(kind, this.#number, 0, value), EMPTY);
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

  #end(kind: number): void {
    this.tell(kind);
    this.#over();
  }

  #over(): void {
    this.held.leave();
    this.#inbox.clear();
    this.#shared.ended(this.#number);
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
