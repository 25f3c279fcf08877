/** What happened: a hash over all of it, and the last of it in words for each member. */
import { crc32c } from "@quorate/proto";

interface Line {
  readonly atMs: number;
  readonly text: string;
}

/** Lines kept for each member. */
const MAX_LINES = 2000;

export class Story {
  readonly #now: () => number;
  readonly #lines = new Map<string, Line[]>();
  #low = 0;
  #high = 0x9e3779b9;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Something happened to `who`; `bytes` belong to it, but are not for reading. */
  tell(who: string, text: string, bytes?: Uint8Array): void {
    const atMs = this.#now();
    let lines = this.#lines.get(who);
    if (lines === undefined) this.#lines.set(who, (lines = []));
    lines.push({ atMs, text });
    if (lines.length >= 2 * MAX_LINES) lines.splice(0, MAX_LINES);
    // The time in microseconds; of a text its characters.
    let hash = Math.imul(this.#low ^ Math.trunc(atMs * 1000), 0x01000193);
    for (let i = 0; i < who.length; i++) hash = Math.imul(hash ^ who.charCodeAt(i), 0x01000193);
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    this.#low = hash >>> 0;
    if (bytes !== undefined) this.#low = crc32c(this.#low, bytes);
    this.#high = (Math.imul(this.#high ^ this.#low, 0x01000193) + 1) >>> 0;
  }

  /** A hash over everything told so far, as 16 hexadecimal digits. */
  get hash(): string {
    return this.#high.toString(16).padStart(8, "0") + (this.#low >>> 0).toString(16).padStart(8, "0");
  }

  /** The last `count` events of each member. */
  last(count: number): string {
    const parts: string[] = [];
    for (const who of [...this.#lines.keys()].sort()) {
      parts.push(`--- ${who}`);
      for (const { atMs, text } of this.#lines.get(who)!.slice(-count)) parts.push(`${atMs.toFixed(3).padStart(12)} ms  ${text}`);
    }
    return parts.join("\n");
  }
}
