/**
 * What always holds for input of the writer. A broken invariant is a defect of this package or of
 * its caller, never of a file.
 */
import { type Assert, assertOf, type InvariantList } from "@quorate/proto";

export const invariants = {
  "BOLT-1": "a key has from 1 to 32,768 bytes",
  "BOLT-2": "a value has at most 2^31 - 2 bytes",
  "BOLT-3": "the keys of a bucket ascend",
  "BOLT-4": "a branch page has two entries or more",
  "BOLT-5": "both passes over the records yield the same",
  "BOLT-6": "the pages that are reserved for a bucket suffice",
} as const satisfies InvariantList;

/** Throws InvariantError unless `condition` holds. */
export const assert: Assert<keyof typeof invariants> = assertOf(invariants);
