/** Programs that use a cluster, under the simulator, for the package for tests. */
export type { SimulatedClient, SimulatedClock } from "../src/program/client.ts";
export type { SimulatedNemesis } from "../src/program/nemesis.ts";
export {
  type Program,
  type ProgramOptions,
  type ProgramWorld,
  runProgram,
} from "../src/program/program.ts";
