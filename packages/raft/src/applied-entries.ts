/**
 * The entries that a log keeps after they are applied, for followers that are behind: copied into a
 * few blocks of bytes, and found by arrays of numbers.
 *
 *     block    | data of 7 | data of 8 | data of 9 | ...        64 KiB
 *     ends           ^           ^           ^
 *     terms, types   of each entry
 *
 * Most entries of a log are here, and live for minutes. As objects, an entry and the view of its
 * data would be copied twice by collections of young objects and marked by each full one, which was
 * half of all that survives a put. Entries on their way to the disk, to followers and to the store
 * are objects, which are gone before the next collection; one is made of an entry here when a
 * follower wants it. A block goes as a whole, when the log is compacted beyond its last entry.
 */
import { copyBytes, EMPTY, type raftpb } from "@quorate/proto";

const BLOCK_BYTES = 64 << 10;
const BLOCK_ENTRIES = 256;
/** Larger data keeps its own memory: it would leave too much of a block unused. */
const MAX_COPIED_BYTES = BLOCK_BYTES / 8;

/** Consecutive entries. */
class Block {
  /** Index of the first one. */
  readonly first: number;
  readonly #bytes = new Uint8Array(BLOCK_BYTES);
  readonly #ends = new Int32Array(BLOCK_ENTRIES);
  readonly #terms = new Float64Array(BLOCK_ENTRIES);
  readonly #types = new Uint8Array(BLOCK_ENTRIES);
  readonly #large = new Map<number, Uint8Array>();
  #count = 0;

  constructor(first: number) {
    this.first = first;
  }

  /** Index of the last entry. */
  get last(): number {
    return this.first + this.#count - 1;
  }

  #start(at: number): number {
    return at === 0 ? 0 : this.#ends[at - 1];
  }

  /** Adds the entry that follows the last one; false: there is no space. */
  add({ type, term, data }: raftpb.Entry): boolean {
    const at = this.#count;
    const start = this.#start(at);
    const isLarge = data.length > MAX_COPIED_BYTES;
    const end = start + (isLarge ? 0 : data.length);
    if (at === BLOCK_ENTRIES || end > BLOCK_BYTES) return false;
    if (isLarge) this.#large.set(at, data);
    else copyBytes(data, 0, data.length, this.#bytes, start);
    this.#ends[at] = end;
    this.#terms[at] = term;
    this.#types[at] = type;
    this.#count = at + 1;
    return true;
  }

  termAt(index: number): number {
    return this.#terms[index - this.first];
  }

  dataBytesAt(index: number): number {
    const at = index - this.first;
    return this.#large.get(at)?.length ?? this.#ends[at] - this.#start(at);
  }

  entryAt(index: number): raftpb.Entry {
    const at = index - this.first;
    const start = this.#start(at);
    const length = this.#ends[at] - start;
    const copied = length === 0 ? EMPTY : new Uint8Array(this.#bytes.buffer, start, length);
    const data = this.#large.get(at) ?? copied;
    return { type: this.#types[at], term: this.#terms[at], index, data };
  }
}

export class AppliedEntries {
  readonly #blocks: Block[] = [];

  /** Adds the entry that follows the last one; the first may have any index. */
  add(entry: raftpb.Entry): void {
    if (this.#blocks.at(-1)?.add(entry) === true) return;
    const block = new Block(entry.index);
    block.add(entry);
    this.#blocks.push(block);
  }

  /** The term of an entry that is here. */
  termAt(index: number): number {
    return this.#blockOf(index).termAt(index);
  }

  /** The bytes of the data of an entry that is here. */
  dataBytesAt(index: number): number {
    return this.#blockOf(index).dataBytesAt(index);
  }

  /** An entry that is here. Its data is a view, and keeps the memory of the entries around it. */
  entryAt(index: number): raftpb.Entry {
    return this.#blockOf(index).entryAt(index);
  }

  /** Lets go of the memory of entries up to `index`, where whole blocks are of such. */
  dropTo(index: number): void {
    const kept = this.#blocks.findIndex((block) => block.last > index);
    this.#blocks.splice(0, kept === -1 ? this.#blocks.length : kept);
  }

  /** The block of an entry; the last entries are asked for most. */
  #blockOf(index: number): Block {
    const blocks = this.#blocks;
    let low = 0;
    let high = blocks.length - 1;
    if (blocks[high].first <= index) return blocks[high];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (blocks[middle].last < index) low = middle + 1;
      else high = middle;
    }
    return blocks[low];
  }
}
