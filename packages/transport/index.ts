/** Members talking to members: the transport's contract. The real twin is in ./node. */
export {
  type AskMembers,
  type DirectoryParts,
  MemberDirectory,
  type ToldMember,
} from "./src/member-directory.ts";
export type { PeerAnswer, PeerCall } from "./src/peer-call.ts";
export { RareLog } from "./src/rare-log.ts";
export * from "./src/transport.ts";
