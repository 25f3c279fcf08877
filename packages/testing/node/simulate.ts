/**
 * A program under the simulator: its clients reach a simulated cluster over a simulated network, in
 * simulated time, while things go wrong as a seed decides.
 *
 *     await simulate(17, async ({ clients: [a, b], nemesis, clock }) => { ... });
 */
import { check, checkOptions, FLAG, INTEGER } from "@quorate/host";
import { CodedError } from "@quorate/proto";
import { type Program, type ProgramOptions, runProgram } from "@quorate/sim/node";

export type {
  Program,
  ProgramOptions,
  ProgramWorld,
  SimulatedClient,
  SimulatedClock,
  SimulatedNemesis,
} from "@quorate/sim/node";

/** A program has failed under a seed. */
export class SimulationError extends CodedError<"Failed"> {
  readonly seed: number;
  /** Over all that happened; the same each time the seed runs. */
  readonly hash: string;

  constructor(seed: number, hash: string, failure: unknown, story: string) {
    const what = failure instanceof Error ? failure.message : String(failure);
    super(
      "SimulationError",
      "Failed",
      `${what}\nseed ${seed}, hash ${hash}: simulate(${seed}, ...) repeats it. What happened last:\n${story}`,
      failure,
    );
    this.seed = seed;
    this.hash = hash;
  }
}

/** How a simulation went that found nothing. */
export interface Simulated {
  readonly hash: string;
  readonly simulatedMs: number;
}

const SHAPE = { clients: INTEGER, members: INTEGER, faults: FLAG, limitMs: INTEGER };

/**
 * Runs a program under a seed. Rejects with SimulationError, which names the seed, if the program
 * throws or does not end within `limitMs` of simulated time. One at a time in a process.
 */
export async function simulate(
  seed: number,
  program: Program,
  options: ProgramOptions = {},
): Promise<Simulated> {
  check("simulate", "seed", seed, INTEGER);
  checkOptions("simulate", options, SHAPE);
  const { failure, hash, simulatedMs, story } = await runProgram(seed, program, options);
  if (failure !== undefined) throw new SimulationError(seed, hash, failure, story);
  return { hash, simulatedMs };
}

/** Which seeds to run. */
export interface SeedOptions extends ProgramOptions {
  /** The first one; default 1. */
  readonly first?: number;
  /** How many at the most; default 1000. */
  readonly count?: number;
}

/**
 * Runs a program under one seed after the other until one fails; resolves with that failure, or
 * undefined.
 */
export async function findSeed(
  program: Program,
  { first = 1, count = 1000, ...options }: SeedOptions = {},
): Promise<SimulationError | undefined> {
  for (let seed = first; seed < first + count; seed++) {
    try {
      await simulate(seed, program, options);
    } catch (error) {
      if (error instanceof SimulationError) return error;
      throw error;
    }
  }
  return undefined;
}
