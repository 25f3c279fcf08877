/**
 * What must always hold inside one machine. Each invariant has a number, one place that enforces it
 * and one test that names it (test/invariants.test.ts checks both). A broken one throws an
 * InvariantError, and the member has to stop: its state is not to be trusted.
 *
 * What must hold between machines (election safety and the like) cannot be seen from inside one;
 * test/sim/safety.ts checks that. What another member may not say is no invariant: check.ts refuses
 * it.
 */

/** The numbered list. The text says what holds, in the terms of the file that enforces it. */
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
  "RAFT-12": "nobody acknowledges entries that the leader does not have",
  "RAFT-13":
    "the window of messages in flight takes rising indexes and no more messages than its limit",
  "RAFT-14":
    "nobody is voter and learner at once, and only a joint configuration has the marks of one",
  "RAFT-15": "a committed configuration change fits the configuration it is applied to",
  "RAFT-16": "no term is higher than MAX_TERM",
  "RAFT-17": "a follower is sent a snapshot only after the log was compacted",
  "RAFT-18": "no message is addressed to the machine that sends it",
  "RAFT-19": "while a machine leads, its log only grows",
  "RAFT-20": "who starts with configuration changes applied is told the configuration they led to",
} as const;

export type InvariantNumber = keyof typeof invariants;

/** An invariant is broken: the message starts with its number, code is the number alone. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
  readonly code: InvariantNumber;

  constructor(code: InvariantNumber, detail: string) {
    super(`${code}: ${invariants[code]}${detail === "" ? "" : ` (${detail})`}`);
    this.code = code;
  }
}

/**
 * Throws the InvariantError of a number. Callers test the condition themselves, so that the detail
 * costs nothing while all is well.
 */
export function violated(code: InvariantNumber, detail = ""): never {
  throw new InvariantError(code, detail);
}
