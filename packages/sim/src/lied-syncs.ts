/**
 * What syncs of a log that lied may have lost: which of the log's errors they explain, and for how
 * long.
 */
import type { WalDamageError } from "@quorate/wal";

/**
 * How a log shows that sectors of it never reached the disk. No other reason is an excuse: a loss
 * leaves zeros or an earlier length, and the rolling checksum covers the order of the records.
 */
const LOSSES: ReadonlySet<string> = new Set([
  "the checksum does not match",
  "the length word makes no sense",
  "a length word of zero is followed by other bytes",
  "the record runs past the end of the file",
  "the file ends inside a length word",
  "the record cannot be decoded",
  "the padding is not zero",
  "the segment ends before its metadata",
  "the segment does not go on from the one before: the checksum differs",
]);
const MISSING_SEGMENT = /^segment \d+ is missing before it$/;
const SEGMENT = /\.wal$/;

export class LiedSyncs {
  /** By segment: the first byte that a sync was to bring down and did not. */
  readonly #from = new Map<string, number>();
  #lostPower = false;

  /**
   * A sync of a file has lied. @param from the first byte that it left in the system's memory;
   * undefined if there was none
   */
  add(path: string, from: number | undefined): void {
    if (!SEGMENT.test(path) || from === undefined) return;
    this.#from.set(path, Math.min(from, this.#from.get(path) ?? Number.POSITIVE_INFINITY));
  }

  /** The machine loses power: what has not come down by now is lost. */
  lostPower(): void {
    this.#lostPower = true;
  }

  /** A member has read its log whole. What was not lost by then is on the disk. */
  wasRead(): void {
    if (this.#lostPower) this.#from.clear();
    this.#lostPower = false;
  }

  /**
   * Whether an error of the log is what a loss looks like, and where there was one: behind what was
   * on the disk before the first lie, or in a later segment, which continues what is lost.
   */
  explains({ path, offset, reason }: WalDamageError): boolean {
    // What a later durable mark says follows the reason itself.
    const [loss] = reason.split(", and byte ") as [string];
    if (!MISSING_SEGMENT.test(reason) && !LOSSES.has(loss)) return false;
    return [...this.#from].some(([lied, from]) => (path === lied ? offset >= from : path > lied));
  }
}
