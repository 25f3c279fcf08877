/** Which of the two streams to a peer a message takes. */
import { raftpb } from "@quorate/proto";

/**
 * "urgent" for what is small and keeps the cluster together (votes, heartbeats, acknowledgements),
 * "bulk" for entries.
 */
export type ChannelKind = "urgent" | "bulk";

/**
 * The stream of a message. Entries, and proposals on their way to the leader, are bulk. All appends
 * use the same stream: an append that overtakes another one is refused as a gap.
 */
export function channelKindOf({ type }: raftpb.Message): ChannelKind {
  return type === raftpb.MessageType.MsgApp || type === raftpb.MessageType.MsgProp
    ? "bulk"
    : "urgent";
}
