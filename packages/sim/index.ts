/** Whole clusters in one thread, from a seed, on a simulated clock, network and disk; and the checkers that judge them. */
export { type CompactionCall, checkHistory, type Operation, type Outcome, type Verdict } from "./src/history.ts";
export { type Answer, difference, type ModelKey, type ModelRequest, ModelState } from "./src/model.ts";
export { FAULT_KINDS, type FaultKind, optionsOf, type SimOptions } from "./src/options.ts";
export { PLANTED_BUGS, type PlantedBug } from "./src/planted.ts";
export { Safety, Violation } from "./src/safety.ts";
export { type RunResult, runSeed } from "./src/world.ts";
