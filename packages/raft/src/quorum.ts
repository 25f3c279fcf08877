/** Majorities, alone and joint. test/quorum.test.ts holds the slow twins. */

export type VoteResult = "won" | "lost" | "pending";

/**
 * The highest value that a majority has reached: of n values the (n/2+1)-th highest. No values hold
 * nothing back: Infinity. Sorts `values` in place; there are few, and insertion is then the fastest
 * way.
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

/** Where the vote of one majority stands. An empty one is won: it has nobody to ask. */
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

/** Both majorities have to be won; losing one loses. */
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
