/** A call of a front-end's on the member's thread: its caller, and what it sends into the ring. */
import type { Clock } from "@quorate/host";
import { fromUtf8 } from "@quorate/proto";
import {
  type CallShared,
  type HttpContext,
  type Peer,
  ServedCall,
  type SharedBudget,
  type Status,
} from "@quorate/rpc";
import type { FanOut } from "./fan-out.ts";
import type { Link } from "./link.ts";
import { given, PEER_TEXTS, ToFront, toFront } from "./protocol.ts";
import { RingError } from "./ring.ts";

/** What a front-end can do to a call. All throw RingError for what it may not do. */
export interface FrontCall {
  message(bytes: Uint8Array): void;
  /** The last message has come once more. */
  again(): void;
  halfClosed(): void;
  /** The front-end has taken bytes of messages. */
  taken(sizeBytes: number): void;
  /** The client has gone, the call's time is over, or the front-end is gone. */
  aborted(): void;
}

/** Who calls, with the metadata that services read. */
export class FrontCaller {
  readonly peerAddress: string;
  readonly peerCommonName: string | undefined;
  readonly peerSubject: string | undefined;
  readonly #texts: readonly (string | undefined)[];
  readonly #fields: ReadonlyMap<string, number>;

  /** @throws RingError for another number of texts */
  constructor(texts: readonly (string | undefined)[], fields: ReadonlyMap<string, number>) {
    if (texts.length !== PEER_TEXTS + fields.size) throw new RingError("an identity's texts");
    this.peerAddress = given(texts[0]);
    this.peerCommonName = texts[1];
    this.peerSubject = texts[2];
    this.#texts = texts;
    this.#fields = fields;
  }

  metadata(key: string): string | undefined {
    const index = this.#fields.get(key);
    return index === undefined ? undefined : this.#texts[PEER_TEXTS + index];
  }
}

/** What a call by gRPC or JSON begins with. */
export interface CallStart {
  readonly number: number;
  readonly caller: FrontCaller;
  readonly path: string;
  readonly startedMs: number;
  /** Until the deadline; below 0 or NaN for none. */
  readonly leftMs: number;
}

/** A call by gRPC or JSON. */
export abstract class FrontGrpcCall extends ServedCall<ServedContext> implements FrontCall {
  protected readonly number: number;
  readonly #caller: FrontCaller;

  constructor(shared: ServedContext, { number, caller, path, startedMs, leftMs }: CallStart) {
    super(shared, path, startedMs, leftMs >= 0 ? startedMs + leftMs : undefined);
    this.number = number;
    this.#caller = caller;
    this.observed();
  }

  abstract message(bytes: Uint8Array): void;
  abstract again(): void;
  abstract halfClosed(): void;
  abstract taken(sizeBytes: number): void;

  metadata(key: string): string | undefined {
    return this.#caller.metadata(key);
  }

  protected get peer(): Peer {
    return this.#caller;
  }

  /** The last record of the call. */
  protected sendEnd({ code, message }: Status): void {
    this.shared.link.send(toFront(ToFront.End, this.number, code), fromUtf8(message));
    this.shared.ended(this.number);
  }
}

/** What all calls of one front-end share on the member's thread. */
export interface ServedContext extends CallShared {
  readonly link: Link;
  /** Messages for many streams, which go into the link later in this turn. */
  readonly fanOut: FanOut;
  readonly clock: Clock;
  readonly http: HttpContext;
  /** Bytes of HTTP requests that handlers hold. */
  readonly held: SharedBudget;
  /** The end of a call was sent: its number may come again. */
  ended(call: number): void;
}
