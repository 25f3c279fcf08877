/** How a member draws its election timeouts. */
import type { Random } from "@quorate/host";

/** Randomness for elections from one stream, drawn below any bound. */
export function electionRandom(random: Random): (bound: number) => number {
  const stream = random.fork("elections");
  return (bound) => stream.below(bound);
}
