/**
 * Clusters in tests, and simulations of programs that use one. The npm package `@quorate/testing`
 * exports this file.
 */
export type { ConfigFile } from "@quorate/server";
export {
  type CallFailure,
  type ClusterOptions,
  FILLER_PREFIX,
  type TestCluster,
  testCluster,
} from "./node/cluster.ts";
export { QuorateContainer, type StartedQuorateContainer } from "./node/container.ts";
export {
  findSeed,
  type Program,
  type ProgramOptions,
  type ProgramWorld,
  type SeedOptions,
  type Simulated,
  type SimulatedClient,
  type SimulatedClock,
  type SimulatedNemesis,
  SimulationError,
  simulate,
} from "./node/simulate.ts";
export type { TestMember } from "./node/test-member.ts";
