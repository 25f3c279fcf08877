/** A read in slices over a view of one revision. */
import type { Mvcc, PinnedView, Steps } from "@quorate/store";
import type { SliceTask } from "./slice-task.ts";

/** Runs a read over a view that stays as it is now, and releases the view whatever happens. */
export function* pinned<T>(
  member: { readonly store: { readonly mvcc: Mvcc } },
  task: SliceTask,
  read: (view: PinnedView) => Steps<T>,
): Steps<T> {
  const view = member.store.mvcc.pin(task);
  try {
    return yield* read(view);
  } finally {
    view.release();
  }
}
