/**
 * Randomness of a member outside of a simulation.
 */
import { randomBytes } from "node:crypto";
import { SeededRandom } from "../src/random.ts";

/**
 * A stream with a seed from the operating system: members that start at the same moment draw
 * different numbers.
 */
export function nodeRandom(): SeededRandom {
  return new SeededRandom(randomBytes(8).readBigUInt64LE());
}
