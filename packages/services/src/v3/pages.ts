/** Pages of ranges, for lists that are sent while they are read. */

import type { Member, SliceTask } from "@quorate/member";
import { callerOf, pinned } from "@quorate/member";
import { errorOf, RangeRequest } from "@quorate/proto";
import type { UnaryHandler, UnaryResponse } from "@quorate/rpc";
import { checkRange, keyRange, rangeChunk, type Steps } from "@quorate/store";
import { messageOf, RangeWriter } from "./range-answer.ts";

/**
 * Bounds of one page: what a list keeps in memory at a time, and encodes in a few milliseconds. One
 * record may be larger.
 */
export const PAGE_BOUNDS: { readonly maxKeys: number; readonly maxBytes: number } = {
  maxKeys: 1000,
  maxBytes: 256 << 10,
};

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
  const { revision, keysOnly } = request;
  const { maxKeys, maxBytes } = PAGE_BOUNDS;
  const chunk = {
    keys: keyRange(request.key, request.rangeEnd),
    revision,
    keysOnly,
    maxBytes,
    limit: request.limit > 0 ? Math.min(request.limit, maxKeys) : maxKeys,
  };
  const read = yield* pinned(member, task, (view) => rangeChunk(view, chunk, writer));
  const more = read.last !== undefined;
  return messageOf(writer.finish(member.header(read.revision), { more, count: 0 }));
}
