/**
 * Quorate inside a Node.js program: the client, and members that run in the program's own process.
 * The npm package `quorate` of a release exports this file.
 */
export {
  type MemberOptions,
  type RunningMember,
  StartError,
  startMember,
} from "./node/start-member.ts";
