/** Members talking to members: the transport's contract. The HTTP/2 implementation is in ./node. */
export {
  encodeWithLength,
  etcdDecoder,
  etcdEncoder,
  type MessageDecoder,
  type MessageEncoder,
  SnapshotBodyReader,
} from "./src/etcd-frames.ts";
export {
  type ChannelKind,
  channelKindOf,
  decodeMessage,
  END_FRAME,
  FrameBatch,
  FrameError,
  FrameReader,
  takeMessages,
} from "./src/frames.ts";
export { type AskMembers, MemberDirectory, type ReportedMember } from "./src/member-directory.ts";
export type { PeerAnswer, PeerCall } from "./src/peer-call.ts";
export { RareLog } from "./src/rare-log.ts";
export * from "./src/transport.ts";
export { FRAME_HEAD_BYTES, openingOf, PREFACE, Tunnel } from "./src/tunnel.ts";
