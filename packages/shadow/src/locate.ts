/**
 * Which key it is that two histories differ in, once a revision is known at which they do.
 *
 *     changed at that revision   the keys with that revision here, and those that the voter lists
 *     before it, or compacted    all keys as of it, in pages; the lowest revision that differs
 */
import { compare, type KeyValue, toLatin1 } from "@quorate/proto";

/** Keys and values as of a revision, from the shadow or from one voter. */
export interface KeyReader {
  /**
   * At most `limit` keys from `from` on, in order, of all or of those that were changed at `only`.
   * Rejects where the reader may not, or the revision is compacted.
   */
  page(request: PageRequest): Promise<readonly KeyValue[]>;
}

export interface PageRequest {
  readonly revision: number;
  /** As latin1. */
  readonly from: string;
  readonly limit: number;
  /** Only keys whose last change is of this revision. */
  readonly only?: number | undefined;
}

/** A key that differs. Values are not in it. */
export interface KeyDifference {
  readonly key: Uint8Array;
  /** The revision of the change that differs. */
  readonly revision: number;
  readonly seen: string;
}

const PAGE_KEYS = 200;
/** Keys that are read at the most, of either. */
const MAX_KEYS = 5_000_000;

/** @returns undefined where no read shows a difference */
export async function locate(
  own: KeyReader,
  theirs: KeyReader,
  { revision, only }: Pick<PageRequest, "revision" | "only">,
): Promise<KeyDifference | undefined> {
  let first: KeyDifference | undefined;
  const a = new Pages(own, revision, only);
  const b = new Pages(theirs, revision, only);
  for (;;) {
    const [ours, other] = [await a.peek(), await b.peek()];
    if (ours === undefined && other === undefined) return first;
    const order = compareKeys(ours?.key, other?.key);
    if (order <= 0) a.next();
    if (order >= 0) b.next();
    const found =
      order < 0
        ? difference(ours!, "the shadow has this key, the voter has not")
        : order > 0
          ? difference(other!, "the voter has this key, the shadow has not")
          : compareRecords(ours!, other!);
    if (found !== undefined && (first === undefined || found.revision < first.revision))
      first = found;
  }
}

function compareKeys(a: Uint8Array | undefined, b: Uint8Array | undefined): number {
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return compare(a, b);
}

const difference = ({ key, modRevision }: KeyValue, seen: string): KeyDifference => ({
  key,
  revision: modRevision,
  seen,
});

function compareRecords(ours: KeyValue, theirs: KeyValue): KeyDifference | undefined {
  for (const field of ["modRevision", "createRevision", "version", "lease"] as const) {
    if (ours[field] === theirs[field]) continue;
    const revision = Math.min(ours.modRevision, theirs.modRevision);
    const seen = `${field}: ${ours[field]} here, ${theirs[field]} there`;
    return { key: ours.key, revision, seen };
  }
  const [a, b] = [ours.value, theirs.value];
  if (a.length !== b.length)
    return difference(ours, `values of ${a.length} bytes here, ${b.length} there`);
  const at = a.findIndex((byte, i) => byte !== b[i]);
  return at < 0
    ? undefined
    : difference(ours, `values of ${a.length} bytes, which differ from byte ${at} on`);
}

/** The keys of a reader one after the other. */
class Pages {
  readonly #reader: KeyReader;
  readonly #revision: number;
  readonly #only: number | undefined;
  #page: readonly KeyValue[] = [];
  #at = 0;
  #from = "\0";
  #readKeys = 0;
  #isLast = false;

  constructor(reader: KeyReader, revision: number, only: number | undefined) {
    this.#reader = reader;
    this.#revision = revision;
    this.#only = only;
  }

  async peek(): Promise<KeyValue | undefined> {
    if (this.#at >= this.#page.length && !this.#isLast) await this.#read();
    return this.#page[this.#at];
  }

  next(): void {
    this.#at++;
  }

  async #read(): Promise<void> {
    if (this.#readKeys >= MAX_KEYS)
      throw new Error(`more than ${MAX_KEYS} keys: not all were compared`);
    this.#page = await this.#reader.page({
      revision: this.#revision,
      from: this.#from,
      limit: PAGE_KEYS,
      only: this.#only,
    });
    this.#at = 0;
    this.#readKeys += this.#page.length;
    this.#isLast = this.#page.length < PAGE_KEYS;
    const last = this.#page.at(-1);
    if (last !== undefined) this.#from = `${toLatin1(last.key)}\0`;
  }
}
