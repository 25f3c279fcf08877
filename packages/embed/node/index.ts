/** The part of embed that needs Node. */
export {
  freePorts,
  type LaunchedMember,
  type LocalClientOptions,
  launch,
  type MemberOptions,
  newMemory,
  type Platform,
} from "./launch.ts";
export { startMember } from "./start-member.ts";
