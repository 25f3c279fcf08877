/**
 * Reading the changes of a range of revisions again, for watchers that are behind. The records are
 * those that were told when they were made, and are read beside other work; what is compacted
 * meanwhile may be among them or not.
 */
import { KeyValue, toHex, toLatin1 } from "@quorate/proto";
import { Bucket } from "../backend.ts";
import { StoreDamageError } from "../errors.ts";
import { decodeRevision, encodeRevision } from "./revision.ts";
import type { MvccState } from "./state.ts";
import type { Change } from "./write-txn.ts";

/** What is decoded in one turn of the event loop: some 2 ms of small records. */
const SLICE_BYTES: number = 64 << 10;

/** Changes in order, and the revision up to which nothing is missing among those given so far. */
export interface HistorySlice {
  readonly changes: readonly Change[];
  readonly through: number;
}

/** Changes after which a slice may end within a revision. */
const MAX_OPEN_CHANGES = 4096;

/**
 * The changes from revision `first` to `last` (both included, at most the current one), in order,
 * in slices of whole revisions; one with many changes is cut, and its last slice says that it is
 * complete. Flushes the backend when it begins. What it has opened is closed when the caller leaves
 * the loop.
 */
export async function* readHistory(
  state: MvccState,
  first: number,
  last: number,
): AsyncGenerator<HistorySlice> {
  const snapshot = await state.backend.snapshot();
  try {
    let changes: Change[] = [];
    const from = encodeRevision(first, 0, false);
    const to = encodeRevision(last + 1, 0, false);
    for await (const slice of snapshot.scan(Bucket.key, from, to, SLICE_BYTES)) {
      // The last revision of the slice before may have gone on in this one. It is kept back with
      // its slice, so that a short history is one.
      const open = changes[changes.length - 1]?.main;
      const next = slice.map(([key, record]) => changeOf(state, key, record));
      const end = next.findIndex(({ main }) => main !== open);
      if (open === undefined || end < 0) {
        changes = changes.concat(next);
        if (changes.length < MAX_OPEN_CHANGES) continue;
        // Whether the last revision is complete shows in the next slice only.
        yield { changes, through: changes[changes.length - 1].main - 1 };
        changes = [];
        continue;
      }
      yield { changes: changes.concat(next.slice(0, end)), through: open };
      changes = next.slice(end);
    }
    yield { changes, through: last };
  } finally {
    await snapshot.close();
  }
}

function changeOf(state: MvccState, key: Uint8Array, record: Uint8Array): Change {
  const revision = decodeRevision(key);
  if (revision === undefined)
    throw new StoreDamageError(
      state.path,
      `bucket key, key ${toHex(key)}`,
      "the key is not a revision",
    );
  const { main, sub, tombstone } = revision;
  return { main, sub, key: toLatin1(KeyValue.decode(record).key), record, deleted: tombstone };
}
