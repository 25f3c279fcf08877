/** Pages of ranges, for lists that are sent while they are read. */
import { errorOf, RangeRequest } from "@quorate/proto";
import type { UnaryHandler, UnaryResponse } from "@quorate/rpc";
import { checkRange, type PageBounds, pageInto, type Steps } from "@quorate/store";
import { callerOf } from "../member/caller.ts";
import type { Member } from "../member/member.ts";
import { pinned } from "../reads/pinned.ts";
import type { SliceTask } from "../reads/slice-task.ts";
import { messageOf, RangeWriter } from "./range-answer.ts";

/**
 * Bounds of one page: what a list keeps in memory at a time, and encodes in a few milliseconds. One
 * record may be larger.
 */
export const PAGE_BOUNDS: PageBounds = { maxKeys: 1000, maxBytes: 256 << 10 };

/** Range, bounded by PAGE_BOUNDS, and by the request's limit where that is less. */
export function pageHandler(member: Member): UnaryHandler {
  return (bytes, context) => {
    const request = RangeRequest.decode(bytes);
    const error = checkRange(request);
    if (error !== undefined) throw errorOf(error);
    const caller = callerOf(context);
    return member.read(caller, {
      access: { kind: "range", request },
      linearizable: !request.serializable,
      run: () => member.slices.run(caller, (task) => pageSteps(member, request, task)),
    });
  };
}

function* pageSteps(member: Member, request: RangeRequest, task: SliceTask): Steps<UnaryResponse> {
  const writer = new RangeWriter(task.charge);
  const { limit } = request;
  const maxKeys = limit > 0 ? Math.min(limit, PAGE_BOUNDS.maxKeys) : PAGE_BOUNDS.maxKeys;
  const bounds = { ...PAGE_BOUNDS, maxKeys };
  const read = (view: Parameters<typeof pageInto>[0]) => pageInto(view, request, writer, bounds);
  const { revision, more } = yield* pinned(member, task, read);
  return messageOf(writer.finish(member.header(revision), { more, count: 0 }));
}
