/** What services read with: a view of one revision in slices, and who asks for it. */
import { type CallContext, clientOf } from "@quorate/rpc";
import type { Mvcc, PinnedView, Steps } from "@quorate/store";
import type { Caller, SliceTask } from "./slice-task.ts";

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

/** A call's caller. */
export function callerOf(context: CallContext): Caller {
  return {
    client: clientOf(context),
    connection: context.peerAddress,
    get cancelled() {
      return context.cancelled;
    },
    onCancel: (listener) => context.onCancel(listener),
  };
}

/** A read of the member's own. */
export const LOCAL_CALLER: Caller = {
  client: "",
  connection: "",
  cancelled: false,
  onCancel: () => {},
};
