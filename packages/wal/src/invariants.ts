/**
 * What always holds in the log. A broken invariant is a defect of this package or of its caller,
 * never of the disk.
 */
import { type Assert, assertOf, type InvariantList } from "@quorate/proto";

export const invariants = {
  "WAL-1": "an appended record fits the records before it (LogRules)",
  "WAL-2": "syncNow runs while no other sync does",
  "WAL-3": "a snapshot mark beyond index 0 has a configuration",
  "WAL-4": "the size of a segment is a positive multiple of 8 bytes",
  "WAL-5": "a log does not shrink while it is opened",
  "WAL-6": "a log that was read to its end has a first record",
} as const satisfies InvariantList;

/** Throws InvariantError unless `condition` holds. */
export const assert: Assert<keyof typeof invariants> = assertOf(invariants);
