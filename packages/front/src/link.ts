/**
 * One end of two rings: messages of any length in both directions.
 *
 *     send -- the ring has space --> written, published at the turn's end, one wake-up
 *          \- it is full ---------> queued, in order, until the other end has taken something
 *     woken -> records -> whole messages -> owner.received
 *
 * What is queued is bounded. Beyond it, and for whatever the other end may not send, the link is
 * broken: the owner is told once, and nothing goes on.
 */
import { ChunkQueue, defined } from "@quorate/proto";
import { isPieceSource, messageSize, type UnaryResponse } from "@quorate/rpc";
import {
  MAX_PIECE_BYTES,
  RECORD_BYTES,
  type RecordHead,
  RingError,
  RingReader,
  type RingRecord,
  RingWriter,
} from "./ring.ts";

/** Batches that are read before others have their turn, however fast the other end writes. */
const MAX_BATCHES_A_TURN = 4;

/** The rings of one end. */
export interface LinkRings {
  readonly inbound: SharedArrayBuffer;
  readonly outbound: SharedArrayBuffer;
}

export interface LinkDeps {
  /** Has the other end's `woken` run, once for each call or for several. */
  wake(): void;
  /** Runs `task` at the end of this turn of the event loop. */
  atTurnsEnd(task: () => void): void;
  /** Runs `task` in the next turn, when all else that waits has had its own. */
  nextTurn(task: () => void): void;
}

export interface LinkOwner {
  /** Messages that the other end has published together follow. */
  batchBegins(): void;
  /**
   * Takes a message, of which `record` has all but the bytes. Throws for one that may not come.
   * @param message bytes that stay as they are
   */
  received(record: RingRecord, message: Uint8Array): void;
  /** The turn ends: what the owner has held back for one record is to be sent now. */
  turnEnds(): void;
  /** All that was queued is written. */
  drained(): void;
  /** The other end, or the memory, does what it may not. Called once. */
  broken(error: Error): void;
}

export interface LinkLimits {
  /** Of one message that comes. */
  readonly maxMessageBytes: number;
  /** Of what waits for space in the ring. */
  readonly maxQueuedBytes: number;
}

export class Link {
  readonly #reader: RingReader;
  readonly #writer: RingWriter;
  readonly #owner: LinkOwner;
  readonly #deps: LinkDeps;
  readonly #limits: LinkLimits;
  readonly #queue: Outgoing[] = [];
  #queuedBytes = 0;
  /** The pieces of a message whose last one has not come. */
  readonly #pieces = new ChunkQueue();
  #pieceKind = 0;
  #pieceCall = 0;
  #isTouched = false;
  #isOver = false;

  /** Begins when `woken` is called for the first time. */
  constructor(rings: LinkRings, limits: LinkLimits, owner: LinkOwner, deps: LinkDeps) {
    this.#reader = new RingReader(rings.inbound);
    this.#writer = new RingWriter(rings.outbound);
    this.#limits = limits;
    this.#owner = owner;
    this.#deps = deps;
  }

  /** Bytes that wait for space in the ring. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Sends a message, now or when there is space; its bytes must not change meanwhile. */
  send(head: RecordHead, message: UnaryResponse): void {
    if (this.#isOver) return;
    try {
      const size = messageSize(message);
      const isWhole = size <= MAX_PIECE_BYTES && !isPieceSource(message);
      if (this.#queue.length > 0 || !isWhole || !this.#writer.write(head, message, size, true))
        this.#enqueue(new Outgoing(head, message, size));
    } catch (error) {
      this.#broken(error);
    }
    this.touch();
  }

  /** Has `turnEnds` called at the end of this turn, before all that was sent is published. */
  touch(): void {
    if (this.#isTouched || this.#isOver) return;
    this.#isTouched = true;
    this.#deps.atTurnsEnd(() => {
      if (!this.#isOver) this.#owner.turnEnds();
      this.#isTouched = false;
      if (!this.#isOver && this.#writer.publish()) this.#deps.wake();
    });
  }

  /** Reads what the other end has published, and writes what waits for space. */
  woken(): void {
    const reader = this.#reader;
    try {
      for (let batches = 0; !this.#isOver; ) {
        if (!reader.readBatch()) {
          if (reader.sleep()) break;
          continue;
        }
        this.#owner.batchBegins();
        if (reader.takesFromFull()) this.#deps.wake();
        while (!this.#isOver && reader.next()) this.#take(reader);
        if (++batches < MAX_BATCHES_A_TURN) continue;
        this.#deps.nextTurn(() => this.woken());
        break;
      }
      this.#drain();
    } catch (error) {
      this.#broken(error);
    }
    this.touch();
  }

  /** Sends and takes nothing any more. */
  close(): void {
    this.#isOver = true;
    this.#queue.length = 0;
    this.#queuedBytes = 0;
  }

  #take(record: RingReader): void {
    const { kind, call, payload, isLast } = record;
    const pieces = this.#pieces;
    if (pieces.sizeBytes > 0 && (kind !== this.#pieceKind || call !== this.#pieceCall))
      throw new RingError("a piece of another message");
    if (isLast && pieces.sizeBytes === 0) {
      this.#owner.received(record, payload);
      return;
    }
    if (payload.length === 0) throw new RingError("a piece without bytes");
    if (pieces.sizeBytes + payload.length > this.#limits.maxMessageBytes)
      throw new RingError("a message that is too long");
    this.#pieceKind = kind;
    this.#pieceCall = call;
    pieces.push(payload);
    if (isLast) this.#owner.received(record, pieces.take(pieces.sizeBytes));
  }

  #enqueue(one: Outgoing): void {
    this.#queue.push(one);
    this.#queuedBytes += one.costBytes;
    this.#drain();
    if (this.#queuedBytes > this.#limits.maxQueuedBytes)
      throw new RingError("the other end takes too little");
  }

  #drain(): void {
    const queue = this.#queue;
    if (queue.length === 0) return;
    let sent = 0;
    for (const one of queue) {
      if (!one.writeTo(this.#writer)) break;
      this.#queuedBytes -= one.costBytes;
      sent++;
    }
    queue.splice(0, sent);
    if (queue.length === 0) this.#owner.drained();
  }

  #broken(error: unknown): void {
    if (this.#isOver) return;
    this.close();
    this.#owner.broken(error instanceof Error ? error : new Error(String(error)));
  }
}

/** A message that does not go into the ring at once. */
class Outgoing {
  readonly #head: RecordHead;
  readonly #message: UnaryResponse;
  readonly costBytes: number;
  #leftBytes: number;
  /** Which piece of a list comes next, and what is left of the one before. */
  #index = 0;
  #rest: Uint8Array | undefined;
  /** The payload that comes next, and its bytes; undefined where it is to be gathered. */
  #payload: readonly Uint8Array[] | undefined;
  #payloadBytes = 0;

  constructor(head: RecordHead, message: UnaryResponse, sizeBytes: number) {
    this.#head = { ...head };
    this.#message = message;
    this.#leftBytes = sizeBytes;
    this.costBytes = sizeBytes + RECORD_BYTES;
  }

  /** Writes what is left; false where there is no space for all of it. */
  writeTo(writer: RingWriter): boolean {
    for (;;) {
      this.#payload ??= this.#gather();
      if (!writer.write(this.#head, this.#payload, this.#payloadBytes, this.#leftBytes === 0))
        return false;
      this.#payload = undefined;
      if (this.#leftBytes === 0) return true;
    }
  }

  /** The next payload, as long as one may be. */
  #gather(): readonly Uint8Array[] {
    let wanted = Math.min(this.#leftBytes, MAX_PIECE_BYTES);
    this.#payloadBytes = wanted;
    this.#leftBytes -= wanted;
    const payload: Uint8Array[] = [];
    while (wanted > 0) {
      const piece = this.#rest ?? this.#nextPiece();
      const part = piece.length > wanted ? piece.subarray(0, wanted) : piece;
      this.#rest = part === piece ? undefined : piece.subarray(wanted);
      payload.push(part);
      wanted -= part.length;
    }
    return payload;
  }

  #nextPiece(): Uint8Array {
    const message = this.#message;
    if (message instanceof Uint8Array) return message;
    const piece = isPieceSource(message) ? message.next() : message[this.#index++];
    return defined(piece, "a piece");
  }
}
