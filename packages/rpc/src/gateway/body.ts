/** A request body that is collected whole, and decoded in slices where it is large. */
import { type Turns, TurnWork } from "@quorate/host";
import {
  concat,
  EMPTY,
  type JsonMessage,
  jsonToWire,
  type RequestTranscoding,
  transcodeRequest,
} from "@quorate/proto";

/** A body up to this size is decoded at once: about 0.3 ms. */
const NOW_DECODED_BYTES: number = 64 << 10;
/** All larger ones together take so much of a turn: a short call that comes waits no longer. */
const SHARE_MS = 1;
/** Larger ones in steps of this size: 0.1 to 0.4 ms. */
const STEP_BYTES: number = 32 << 10;

export class CollectedBody {
  #chunks: Uint8Array[] = [];
  sizeBytes = 0;

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.sizeBytes += chunk.length;
  }

  /** The whole body; it is not kept. */
  take(): Uint8Array {
    const chunks = this.#chunks;
    this.#chunks = [];
    const [first = EMPTY, ...others] = chunks;
    return others.length === 0 ? first : concat(chunks);
  }

  /** Frees the memory of a body that is not wanted any more. */
  clear(): void {
    this.#chunks = [];
  }
}

/** Where a decoded body goes. */
export interface BodyReceiver {
  /** False for a call that has ended: its body is not decoded any further. */
  isWanted(): boolean;
  decoded(message: Uint8Array): void;
  /** @param error a JsonError, or what made decoding fail */
  refused(error: unknown): void;
}

/**
 * Bodies on their way to messages. A short one is decoded at once; the large ones of all calls
 * share one slice of each turn of the event loop, in which each gets a step after the other. So
 * many large bodies at a time hold the loop no longer than one.
 */
export class BodyDecodings {
  readonly #work: TurnWork;
  /** The next step is the first one's. */
  readonly #large = new Map<BodyReceiver, RequestTranscoding>();

  constructor(turns: Turns) {
    this.#work = new TurnWork(turns, { shareMs: SHARE_MS, step: () => this.#step() });
  }

  /** Decodes a body as one message, for a receiver that has no other body here. */
  decode(type: JsonMessage, body: Uint8Array, receiver: BodyReceiver): void {
    if (body.length > NOW_DECODED_BYTES) {
      this.#large.set(receiver, transcodeRequest(type, body));
      this.#work.plan();
    } else deliver(receiver, () => jsonToWire(type, body));
  }

  /** Returns whether there is more to do. */
  #step(): boolean {
    for (const [receiver, decoding] of this.#large) {
      this.#large.delete(receiver);
      if (!receiver.isWanted()) continue;
      if (!deliver(receiver, () => decoding.run(STEP_BYTES))) this.#large.set(receiver, decoding);
      break;
    }
    return this.#large.size > 0;
  }
}

/** Hands the receiver what `decode` returns or throws; false if that is nothing yet. */
function deliver(receiver: BodyReceiver, decode: () => Uint8Array | undefined): boolean {
  let message: Uint8Array | undefined;
  try {
    message = decode();
  } catch (error) {
    receiver.refused(error);
    return true;
  }
  if (message !== undefined) receiver.decoded(message);
  return message !== undefined;
}
