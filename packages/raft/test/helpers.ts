/** Machines for unit tests, with settings that stay out of the way. */
import { EMPTY, raftpb } from "@quorate/proto";
import {
  bootstrapEntries,
  confChangeOf,
  type InitialState,
  Raft,
  type RaftConfig,
} from "../index.ts";

export function testConfig(id: bigint, changes: Partial<RaftConfig> = {}): RaftConfig {
  return {
    id,
    electionTicks: 10,
    heartbeatTicks: 1,
    randomBelow: () => 0,
    preVote: false,
    checkQuorum: false,
    readOnly: "quorum",
    maxMessageBytes: 1 << 20,
    maxInflightMessages: 256,
    maxInflightBytes: 1 << 30,
    maxUncommittedBytes: 1 << 30,
    maxCommittedBytesPerReady: 1 << 30,
    maxPendingReads: 100,
    ...changes,
  };
}

/** What a member of a new cluster of voters 1 to count starts with. */
export function newCluster(count: number): InitialState {
  const entries = bootstrapEntries(
    Array.from({ length: count }, (_, i) => ({ id: BigInt(i + 1), context: EMPTY })),
  );
  return {
    hardState: { term: 1, vote: 0n, commit: count },
    snapshot: raftpb.SnapshotMetadata.create(),
    entries,
    applied: 0,
  };
}

/** Performs all work at once, and returns the messages. */
export function pump(raft: Raft): raftpb.Message[] {
  const messages: raftpb.Message[] = [];
  while (raft.hasReady()) {
    const ready = raft.ready();
    messages.push(...ready.messages);
    raft.persisted(ready.number);
    messages.push(...ready.messagesAfterSync);
    if (ready.snapshot !== undefined) raft.applied(ready.snapshot.metadata.index);
    for (const entry of ready.committed) {
      const change = confChangeOf(entry);
      if (change !== undefined) raft.applyConfChange(change);
      raft.applied(entry.index);
    }
  }
  return messages;
}

/** Member 1 of a new cluster, elected by member 2, with all its work done. */
export function newLeader(count: number, changes: Partial<RaftConfig> = {}): Raft {
  const raft = new Raft(testConfig(1n, changes), newCluster(count));
  pump(raft);
  raft.campaign();
  pump(raft);
  if (count > 1)
    raft.step(
      raftpb.Message.create({ type: raftpb.MessageType.MsgVoteResp, from: 2n, to: 1n, term: 2 }),
    );
  pump(raft);
  return raft;
}
