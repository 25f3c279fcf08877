/**
 * The invariants of one machine. Each has a number, one place that enforces it and one test that
 * names it (test/invariants.test.ts checks both). A broken invariant throws InvariantError, and the
 * member stops because its state cannot be trusted.
 *
 * Invariants between machines (such as election safety) are checked by random clusters of
 * packages/sim. A message that breaks the protocol is not a broken invariant: message.ts refuses
 * it.
 */
import { type InvariantList, type Violated, violatedOf } from "@quorate/proto";

/** The list by number. */
export const invariants = {
  "RAFT-1":
    "a machine starts from a coherent state: entries follow the snapshot without a gap, terms do not fall, indexes are in range",
  "RAFT-2": "the commit index never passes the end of the log",
  "RAFT-3": "a committed entry is never replaced",
  "RAFT-4": "entries are appended without a gap and with terms that do not fall",
  "RAFT-5": "only indexes that the log holds are read from it",
  "RAFT-6": "nothing counts as applied before it was handed out to be applied",
  "RAFT-7": "nothing counts as durable before it was handed out to be written",
  "RAFT-8": "compaction never passes the applied index",
  "RAFT-9": "the term never falls",
  "RAFT-10": "a vote once cast in a term is not taken back in that term",
  "RAFT-11": "only a candidate becomes leader, and a leader never campaigns",
  "RAFT-12": "a follower acknowledges only entries that the leader has",
  "RAFT-13":
    "the window of messages in flight takes rising indexes and no more messages than its limit",
  "RAFT-14":
    "no member is voter and learner at once, and only a joint configuration has the fields of one",
  "RAFT-15": "a committed configuration change fits the configuration it is applied to",
  "RAFT-16": "no term is higher than MAX_TERM",
  "RAFT-17": "a follower is sent a snapshot only after the log was compacted",
  "RAFT-18": "no message is addressed to the machine that sends it",
  "RAFT-19": "while a machine leads, its log only grows",
  "RAFT-20":
    "a machine that starts after applied configuration changes is given the resulting configuration",
  "RAFT-21":
    "a leader counts the bytes of its own term's uncommitted entries, never fewer than none, and none once its whole log is committed",
} as const satisfies InvariantList;

export type InvariantNumber = keyof typeof invariants;

/** Callers test the condition themselves, so that `detail` is built only on failure. */
export const violated: Violated<InvariantNumber> = violatedOf(invariants);
