/** Majorities, simple and joint. test/quorum.test.ts compares them with slow reference models. */

export type VoteResult = "won" | "lost" | "pending";

/**
 * The highest value that a majority has reached: of n values the (n/2+1)-th highest. Infinity for
 * no values, so that an empty half of a configuration restricts nothing. Sorts `values` in place by
 * insertion, the fastest way for so few.
 */
export function majorityValue(values: number[]): number {
  const n = values.length;
  if (n === 0) return Number.POSITIVE_INFINITY;
  for (let i = 1; i < n; i++) {
    const value = values[i];
    let j = i - 1;
    for (; j >= 0 && values[j] > value; j--) values[j + 1] = values[j];
    values[j + 1] = value;
  }
  return values[n - 1 - (n >> 1)];
}

/** The state of a vote by one majority. An empty one is won. */
export function majorityVote(
  voters: readonly bigint[],
  votes: ReadonlyMap<bigint, boolean>,
): VoteResult {
  const needed = (voters.length >> 1) + 1;
  let granted = 0;
  let missing = 0;
  for (const id of voters) {
    const vote = votes.get(id);
    if (vote === undefined) missing++;
    else if (vote) granted++;
  }
  if (voters.length === 0 || granted >= needed) return "won";
  return granted + missing >= needed ? "pending" : "lost";
}

/** Both majorities must be won; one that is lost decides. */
export function jointVote(
  incoming: readonly bigint[],
  outgoing: readonly bigint[],
  votes: ReadonlyMap<bigint, boolean>,
): VoteResult {
  const one = majorityVote(incoming, votes);
  const other = majorityVote(outgoing, votes);
  if (one === other) return one;
  return one === "lost" || other === "lost" ? "lost" : "pending";
}
