/**
 * Quorate inside a Node.js program: the client, and members that run in the program's own process.
 * The npm package `quorate` of a release exports this file.
 */
export * from "@quorate/client";
export { type Logger, silentLogger } from "@quorate/host";
export { ConfigError } from "@quorate/member";
export type { ConfigFile } from "@quorate/server";
export {
  type HeldLoop,
  type LeaderChange,
  type LocalClientOptions,
  type MemberEvents,
  type MemberOptions,
  type RunningMember,
  StartError,
} from "./node/launch.ts";
export { startMember } from "./node/start-member.ts";
