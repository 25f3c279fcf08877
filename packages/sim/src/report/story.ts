/** What happened: a hash over all of it, and the last of it in words for each member. */
import { crc32c, defined } from "@quorate/proto";

interface Line {
  readonly atMs: number;
  readonly text: string | (() => string);
}

/** What happened to one member or client. */
interface Chapter {
  /** Of its name. */
  readonly hash: number;
  readonly lines: Line[];
}

/** Lines kept for each member, where they are. */
export const STORY_LINES = 2000;

const PRIME = 0x01000193;

function hashOf(text: string, start: number): number {
  let hash = start;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), PRIME);
  return hash;
}

export class Story {
  readonly #now: () => number;
  readonly #keptLines: number;
  readonly #chapters = new Map<string, Chapter>();
  #low = 0;
  #high = 0x9e3779b9;

  /**
   * @param keptLines for each member; 0 where they are not read: what they would hold on to makes a
   * run longer. The hash is the same.
   */
  constructor(now: () => number, keptLines: number) {
    this.#now = now;
    this.#keptLines = keptLines;
  }

  /**
   * Something happened to `who`.
   * @param text its words, all of which are in the hash; or a function that returns them for a
   * reader: then what sets this event apart has to be in `bytes` or `mark`.
   * @param bytes belong to it, but are not for reading.
   * @param mark a number that belongs to it.
   */
  record(who: string, text: string | (() => string), bytes?: Uint8Array, mark = 0): void {
    const atMs = this.#now();
    let chapter = this.#chapters.get(who);
    if (chapter === undefined)
      this.#chapters.set(who, (chapter = { hash: hashOf(who, 0), lines: [] }));
    if (this.#keptLines > 0) {
      const { lines } = chapter;
      lines.push({ atMs, text });
      if (lines.length >= 2 * this.#keptLines) lines.splice(0, this.#keptLines);
    }
    // The time in microseconds.
    let hash = Math.imul(this.#low ^ Math.trunc(atMs * 1000), PRIME);
    hash = Math.imul(hash ^ chapter.hash, PRIME);
    if (mark !== 0) hash = Math.imul(hash ^ mark, PRIME);
    if (typeof text === "string") hash = hashOf(text, hash);
    this.#low = hash >>> 0;
    if (bytes !== undefined) this.#low = crc32c(this.#low, bytes);
    this.#high = (Math.imul(this.#high ^ this.#low, PRIME) + 1) >>> 0;
  }

  /** A hash over everything recorded so far, as 16 hexadecimal digits. */
  get hash(): string {
    return (
      this.#high.toString(16).padStart(8, "0") + (this.#low >>> 0).toString(16).padStart(8, "0")
    );
  }

  /** The last `count` events of each member. */
  last(count: number): string {
    const parts: string[] = [];
    for (const who of [...this.#chapters.keys()].sort()) {
      parts.push(`--- ${who}`);
      for (const { atMs, text } of defined(this.#chapters.get(who), "the chapter").lines.slice(
        -count,
      )) {
        parts.push(
          `${atMs.toFixed(3).padStart(12)} ms  ${typeof text === "string" ? text : text()}`,
        );
      }
    }
    return parts.join("\n");
  }
}
