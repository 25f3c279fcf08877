/**
 * What always holds in the store. A broken invariant is a defect of the program, on which the
 * member stops.
 */
import {
  type Assert,
  assertOf,
  type InvariantList,
  type Violated,
  violatedOf,
} from "@quorate/proto";

export const invariants = {
  "STORE-1": "one batch at a time is on its way to the disk",
  "STORE-2": "a configuration change that is applied has a known type",
  "STORE-3": "entries are applied in the order of their indexes, without a gap",
  "STORE-7": "a key that is detached from a lease was attached to it",
  "STORE-8": "one entry at a time stages its changes",
  "STORE-9": "an entry is applied after the one before it is finished",
  "STORE-10": "a batch holds whole entries",
  "STORE-11": "the records that wait for a batch have ascending revisions",
  "MVCC-1": "the changes of a key have ascending revisions",
  "MVCC-2": "a key that is deleted exists",
  "MVCC-3": "a transaction commits at the revision after the current one",
  "MVCC-4": "every key of the bucket key is a revision",
  "MVCC-5": "a transaction is committed once",
  "MVCC-6": "one write transaction is open at a time",
  "MVCC-7": "the key of a put with ignore_value or ignore_lease exists",
  "MVCC-8": "history is read up to the current revision at most",
} as const satisfies InvariantList;

/** Throws InvariantError unless `condition` holds. */
export const assert: Assert<keyof typeof invariants> = assertOf(invariants);

/** For what is tested for each entry and key: the text costs nothing while all is well. */
export const violated: Violated<keyof typeof invariants> = violatedOf(invariants);
