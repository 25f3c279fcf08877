/** How queued proposals go into Raft: in batches, and not too many in one turn. */
import type { Raft } from "@quorate/raft";
import type { Proposals } from "./proposals.ts";

/** Payload bytes that go into Raft as one append; a batch above it is split. */
const MAX_BATCH_BYTES = 1024 * 1024;
/**
 * Payload bytes that go into Raft in one turn, and one batch more: to write them and their
 * checksums takes some milliseconds.
 */
const MAX_TURN_BYTES = 4 * 1024 * 1024;

/**
 * Hands the queued proposals to Raft. What it does not take stays queued: there may be a leader, or
 * capacity, in a later turn. Returns true if more is left than fits into this turn.
 */
export function handProposals<R>(proposals: Proposals<R>, raft: Raft): boolean {
  if (proposals.queuedCount === 0 || raft.leader === 0n) return false;
  const queue = proposals.takeQueue(raft.term);
  let start = 0;
  let takenBytes = 0;
  while (start < queue.length) {
    if (takenBytes >= MAX_TURN_BYTES) {
      proposals.putBack(queue.slice(start));
      return true;
    }
    let end = start;
    let bytes = 0;
    for (
      ;
      end < queue.length && (end === start || bytes + queue[end].length <= MAX_BATCH_BYTES);
      end++
    )
      bytes += queue[end].length;
    if (
      raft.propose(start === 0 && end === queue.length ? queue : queue.slice(start, end)) !==
      "accepted"
    ) {
      proposals.putBack(queue.slice(start));
      return false;
    }
    start = end;
    takenBytes += bytes;
  }
  return false;
}
