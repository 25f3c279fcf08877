/** The part of embed that needs Node. */
export { type LaunchedMember, launch, type MemberOptions, type Platform } from "./launch.ts";
export { startMember } from "./start-member.ts";
