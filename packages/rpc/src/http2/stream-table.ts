/** The streams of one connection: those that are open, and the latest that closed. */
import { ClosedStreams } from "./closed-streams.ts";
import type { Http2Stream } from "./stream.ts";

export class StreamTable extends ClosedStreams {
  readonly #open = new Map<number, Http2Stream>();
  /** The highest stream id that the client has used. */
  lastId = 0;

  /** Number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  get(id: number): Http2Stream | undefined {
    return this.#open.get(id);
  }

  values(): Iterable<Http2Stream> {
    return this.#open.values();
  }

  add(stream: Http2Stream): void {
    this.#open.set(stream.id, stream);
  }

  delete(id: number): void {
    this.#open.delete(id);
  }

  /**
   * Whether a stream id is the server's, 0, or one that the client has not used yet ("idle",
   * section 5.1).
   */
  isIdle(id: number): boolean {
    return (id & 1) === 0 || id > this.lastId;
  }
}
