/** The part of embed that needs Node. */
export {
  type LaunchedMember,
  launch,
  type MemberOptions,
  type Platform,
  startMember,
} from "./start-member.ts";
