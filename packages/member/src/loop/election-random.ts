/** Randomness for elections from one stream, drawn below any bound. */
import type { Random } from "@quorate/host";

/** Returns a function that draws a whole number from 0 to its bound, excluded. */
export function electionRandom(random: Random): (bound: number) => number {
  const stream = random.fork("elections");
  return (bound) => stream.below(bound);
}
