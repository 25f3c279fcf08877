/** The model's reads as RangeRequests, and back. */
import {
  fromLatin1,
  RangeRequest,
  RangeRequest_SortOrder as SortOrder,
  RangeRequest_SortTarget as SortTarget,
  toLatin1,
} from "@quorate/proto";
import type { ModelOp } from "./model.ts";

export type ModelRead = Extract<ModelOp, { kind: "range" }>;

const SORTS = {
  key: SortTarget.KEY,
  version: SortTarget.VERSION,
  create: SortTarget.CREATE,
  mod: SortTarget.MOD,
  value: SortTarget.VALUE,
} as const;
const SORT_NAMES = ["key", "version", "create", "mod", "value"] as const;

export function toRange(read: ModelRead): RangeRequest {
  const { key, end, limit = 0, sortBy, descending, keysOnly = false, countOnly = false } = read;
  return RangeRequest.create({
    key: fromLatin1(key),
    rangeEnd: fromLatin1(end),
    limit,
    keysOnly,
    countOnly,
    sortTarget: SORTS[sortBy ?? "key"],
    sortOrder:
      descending === undefined ? SortOrder.NONE : descending ? SortOrder.DESCEND : SortOrder.ASCEND,
    minModRevision: read.minMod ?? 0,
    maxModRevision: read.maxMod ?? 0,
    minCreateRevision: read.minCreate ?? 0,
    maxCreateRevision: read.maxCreate ?? 0,
  });
}

/** Its fields come in the order in which clients write them: texts of requests are compared. */
export function fromRange(request: RangeRequest): ModelRead {
  const { key, rangeEnd, limit, sortTarget, sortOrder, keysOnly, countOnly } = request;
  const { minModRevision, maxModRevision, minCreateRevision, maxCreateRevision } = request;
  const isOrdered = sortOrder !== SortOrder.NONE;
  return {
    kind: "range",
    key: toLatin1(key),
    end: toLatin1(rangeEnd),
    ...(limit > 0 && { limit }),
    ...((isOrdered || sortTarget !== SortTarget.KEY) && { sortBy: SORT_NAMES[sortTarget] }),
    ...(isOrdered && { descending: sortOrder === SortOrder.DESCEND }),
    ...(minModRevision > 0 && { minMod: minModRevision }),
    ...(maxModRevision > 0 && { maxMod: maxModRevision }),
    ...(minCreateRevision > 0 && { minCreate: minCreateRevision }),
    ...(maxCreateRevision > 0 && { maxCreate: maxCreateRevision }),
    ...(keysOnly && { keysOnly }),
    ...(countOnly && { countOnly }),
  };
}
