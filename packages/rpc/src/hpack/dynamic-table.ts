/**
 * The dynamic table (RFC 7541 sections 2.3.2 and 4): a queue of fields, newest first, bounded by
 * their size.
 */
import type { HeaderField } from "./header-field.ts";

export class DynamicTable {
  /** A ring; its length is a power of two and at least `length`. */
  #ring: (HeaderField | undefined)[] = [];
  /** Where the next field goes. */
  #next = 0;
  #length = 0;
  #sizeBytes = 0;
  #maxSizeBytes: number;
  /** Number of changes: while it stays the same, each index means the same field. */
  version = 0;

  /** @param maxSizeBytes the maximum sum of the sizes of all fields */
  constructor(maxSizeBytes: number) {
    this.#maxSizeBytes = maxSizeBytes;
  }

  get length(): number {
    return this.#length;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get maxSizeBytes(): number {
    return this.#maxSizeBytes;
  }

  /** The field at an index that counts from the newest, 0; undefined past the oldest. */
  at(index: number): HeaderField | undefined {
    return index < this.#length
      ? this.#ring[(this.#next - 1 - index) & (this.#ring.length - 1)]
      : undefined;
  }

  /**
   * Adds a field, after dropping as many old ones as needed. A field larger than the table empties
   * it.
   */
  insert(field: HeaderField): void {
    this.version++;
    this.#evictTo(this.#maxSizeBytes - field.sizeBytes);
    if (field.sizeBytes > this.#maxSizeBytes) return;
    if (this.#length === this.#ring.length) this.#grow();
    this.#ring[this.#next] = field;
    this.#next = (this.#next + 1) & (this.#ring.length - 1);
    this.#length++;
    this.#sizeBytes += field.sizeBytes;
  }

  resize(maxSizeBytes: number): void {
    this.version++;
    this.#maxSizeBytes = maxSizeBytes;
    this.#evictTo(maxSizeBytes);
  }

  #evictTo(sizeBytes: number): void {
    while (this.#length > 0 && this.#sizeBytes > sizeBytes) {
      const oldest = (this.#next - this.#length) & (this.#ring.length - 1);
      this.#sizeBytes -= this.#ring[oldest]!.sizeBytes;
      this.#ring[oldest] = undefined;
      this.#length--;
    }
  }

  #grow(): void {
    const fields = Array.from({ length: this.#length }, (_, i) => this.at(this.#length - 1 - i));
    this.#ring = [...fields, ...new Array<undefined>(Math.max(8, this.#length)).fill(undefined)];
    this.#next = this.#length;
  }
}
