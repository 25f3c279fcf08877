/** Programs that use a cluster, under the simulator, for the package for tests. */
export { runProgram } from "../src/program/program.ts";
export type {
  Program,
  ProgramOptions,
  ProgramWorld,
  SimulatedClient,
  SimulatedClock,
  SimulatedNemesis,
} from "../src/program/types.ts";
