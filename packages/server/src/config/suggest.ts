/** Finding what a mistyped name was meant to be. */

/**
 * How many characters must be added, dropped, changed or swapped with their neighbour to turn `a`
 * into `b`.
 */
export function editDistance(a: string, b: string): number {
  const at = (costs: readonly number[], place: number): number => costs[place] ?? 0;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, at(beforeLast, j - 2) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last.at(-1) ?? 0;
}

/**
 * The name nearest to `wanted`, or undefined if none is near: at most a third of the characters may
 * differ. The first of equals wins.
 */
export function nearest(wanted: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.floor(wanted.length / 3) + 1;
  for (const name of names) {
    if (Math.abs(name.length - wanted.length) >= bestDistance) continue;
    const distance = editDistance(wanted, name);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}
