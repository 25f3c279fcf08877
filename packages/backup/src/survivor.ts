/** Whose data a cluster goes on with when so many of its members are lost that none is a quorum. */

/** How far a member is. */
export interface Reach {
  readonly term: number;
  readonly index: number;
}

/**
 * The member that has both the highest term and the highest index: it has all that the others
 * have. Undefined where these are of different members.
 */
export function survivorOf<T extends Reach>(left: readonly T[]): T | undefined {
  const term = Math.max(...left.map((one) => one.term));
  const index = Math.max(...left.map((one) => one.index));
  return left.find((one) => one.term === term && one.index === index);
}
