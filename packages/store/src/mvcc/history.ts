/**
 * Reads the changes of a range of revisions again, for watchers that are behind. The records are
 * those that were reported when they were committed, and are read between other work; changes that
 * are compacted meanwhile may or may not be among them.
 */
import { KeyValue, toHex, toLatin1 } from "@quorate/proto";
import { Bucket } from "../backend/backend.ts";
import { StoreDamageError } from "../backend/errors.ts";
import { decodeRevision, encodeRevision } from "./revision.ts";
import type { MvccState } from "./state.ts";
import type { Change } from "./write-txn.ts";

/** Changes in order, and the revision up to which the slices so far are complete. */
export interface HistorySlice {
  readonly changes: readonly Change[];
  readonly through: number;
}

/**
 * The changes from revision `first` to `last` (both included, at most the current one), in order,
 * in slices of whole revisions; a revision with many changes is cut, and its last slice marks it
 * complete. Flushes the backend at the start. Leaving the loop closes what was opened.
 */
export async function* readHistory(
  state: MvccState,
  first: number,
  last: number,
): AsyncGenerator<HistorySlice> {
  const { openChanges, sliceBytes } = state.bounds;
  const snapshot = await state.backend.snapshot();
  try {
    let changes: Change[] = [];
    const from = encodeRevision(first, 0, false);
    const to = encodeRevision(last + 1, 0, false);
    for await (const slice of snapshot.scan(Bucket.key, from, to, sliceBytes)) {
      // The last revision of the previous slice may continue in this one. Its slice is held back,
      // so that a short history is a single slice.
      const open = changes[changes.length - 1]?.main;
      const next = slice.map(([key, record]) => changeOf(state, key, record));
      const end = next.findIndex(({ main }) => main !== open);
      if (open === undefined || end < 0) {
        changes = changes.concat(next);
        if (changes.length < openChanges) continue;
        // Only the next slice shows whether the last revision is complete.
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
