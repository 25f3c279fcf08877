/** A request body that is collected whole, and decoded in slices where it is large. */
import type { Clock } from "@quorate/host";
import { concat, EMPTY, type JsonMessage, jsonToWire, transcodeRequest } from "@quorate/proto";

/** A body up to this size is decoded at once: about 0.3 ms. */
export const NOW_DECODED_BYTES: number = 64 << 10;
/** Larger ones in slices of this size, one in each turn of the event loop: 1 to 3 ms. */
const SLICE_BYTES: number = 256 << 10;

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
    if (chunks.length === 0) return EMPTY;
    return chunks.length === 1 ? chunks[0] : concat(chunks);
  }

  /** Frees the memory of a body that is not wanted any more. */
  clear(): void {
    this.#chunks = [];
  }
}

/**
 * Decodes a body as one message and calls `done`, at once for a short body. Where decoding fails,
 * it calls `failed`. Calls neither once `isWanted` returns false.
 */
export function decodeBody(
  type: JsonMessage,
  body: Uint8Array,
  clock: Clock,
  isWanted: () => boolean,
  done: (message: Uint8Array) => void,
  failed: (error: unknown) => void,
): void {
  const decoding = body.length > NOW_DECODED_BYTES ? transcodeRequest(type, body) : undefined;
  const step = (): void => {
    if (!isWanted()) return;
    let message: Uint8Array | undefined;
    try {
      message = decoding === undefined ? jsonToWire(type, body) : decoding.run(SLICE_BYTES);
    } catch (error) {
      failed(error);
      return;
    }
    if (message !== undefined) done(message);
    else clock.after(0, step);
  };
  step();
}
