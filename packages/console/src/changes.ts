/**
 * The keys of a range that differ between two revisions: a walk through the index as of each of
 * them, so no value is read.
 */
import type { SliceTask } from "@quorate/member";
import { fromLatin1, toBase64 } from "@quorate/proto";
import type { KeyIndex, KeyRange, PinnedView, Steps } from "@quorate/store";

/** Keys of a result that exist at the later revision, and as many of those that do not. */
export const MAX_CHANGES = 500;
const MAX_NAME_CHARS = 16 * 1024;

/** A key that differs. Sizes are of its records in bytes; null where it does not exist. */
export interface Change {
  /** In base64. */
  readonly name: string;
  readonly before: number | null;
  readonly after: number | null;
}

export interface Changes {
  readonly from: number;
  readonly to: number;
  /** How many keys there are of each kind; those without a row as well. */
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  /** In key order. */
  readonly rows: readonly Change[];
}

/** What is compared. */
export interface ChangesRequest {
  readonly range: KeyRange;
  readonly from: number;
  /** 0 for the newest. */
  readonly to: number;
}

/** Walks the keys of both revisions. Throws EtcdError for one that is compacted, or yet to come. */
export function* changesSteps(
  view: PinnedView,
  task: SliceTask,
  request: ChangesRequest,
): Steps<Changes> {
  const [from, to] = [view.resolve(request.from), view.resolve(request.to)];
  const counts = { added: 0, changed: 0, removed: 0 };
  const found: [key: string, change: Change][] = [];
  const sizeAt = (index: KeyIndex, at: number): number | null =>
    index.existsAt(at) ? index.sizeAt(index.find(at)) : null;
  const note = (key: string, index: KeyIndex, kind: keyof typeof counts): void => {
    counts[kind]++;
    const room = kind === "removed" ? 2 * MAX_CHANGES : MAX_CHANGES;
    if (found.length >= room || key.length > MAX_NAME_CHARS) return;
    task.charge(key.length + 128);
    const name = toBase64(fromLatin1(key));
    found.push([key, { name, before: sizeAt(index, from), after: sizeAt(index, to) }]);
  };
  yield* view.each(request.range, to, (key, index) => {
    const place = index.find(to);
    if (!index.existsAt(from)) note(key, index, "added");
    else if (!index.isValueAt(index.mainAt(place), index.subAt(place), from))
      note(key, index, "changed");
    return true;
  });
  yield* view.each(request.range, from, (key, index) => {
    if (!index.existsAt(to)) note(key, index, "removed");
    return true;
  });
  found.sort(([a], [b]) => (a < b ? -1 : 1));
  return { from, to, ...counts, rows: found.map(([, change]) => change) };
}
