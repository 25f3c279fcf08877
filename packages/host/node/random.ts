/**
 * Random for members outside of the simulator.
 */
import { randomBytes } from "node:crypto";
import { SeededRandom } from "../src/random.ts";

/**
 * A stream seeded by the operating system, so that members that start together draw different
 * numbers.
 */
export function nodeRandom(): SeededRandom {
  return new SeededRandom(randomBytes(8).readBigUInt64LE());
}
