/** Messages for tests. */
import { raftpb } from "@quorate/proto";

export function heartbeat(from: bigint, to: bigint, commit = 0): raftpb.Message {
  return raftpb.Message.create({
    type: raftpb.MessageType.MsgHeartbeat,
    from,
    to,
    term: 1,
    commit,
  });
}

export function append(from: bigint, to: bigint, index: number, sizeBytes: number): raftpb.Message {
  const entries = [raftpb.Entry.create({ term: 1, index, data: new Uint8Array(sizeBytes) })];
  return raftpb.Message.create({
    type: raftpb.MessageType.MsgApp,
    from,
    to,
    term: 1,
    logTerm: 1,
    index: index - 1,
    entries,
  });
}

export function snapshotMessage(from: bigint, to: bigint): raftpb.Message {
  const metadata = raftpb.SnapshotMetadata.create({
    index: 7,
    term: 1,
    confState: raftpb.ConfState.create({}),
  });
  return raftpb.Message.create({
    type: raftpb.MessageType.MsgSnap,
    from,
    to,
    term: 1,
    snapshot: raftpb.Snapshot.create({ metadata }),
  });
}
