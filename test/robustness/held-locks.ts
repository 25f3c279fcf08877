/** What is promised of locks. */

/** A lock as its owner had it, in milliseconds: surely from there to there. */
export interface HeldLock {
  readonly name: string;
  readonly owner: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** LOCK-1: no two have a lock at one time. */
export function checkLocks(held: readonly HeldLock[]): string | undefined {
  const sorted = held.filter(({ fromMs, untilMs }) => fromMs < untilMs);
  sorted.sort((a, b) => a.fromMs - b.fromMs);
  const last = new Map<string, HeldLock>();
  for (const one of sorted) {
    const before = last.get(one.name);
    if (before !== undefined && one.fromMs < before.untilMs)
      return (
        `LOCK-1: ${one.owner} has a lock from ${Math.round(one.fromMs)} ms, ` +
        `and ${before.owner} until ${Math.round(before.untilMs)} ms`
      );
    if (before === undefined || before.untilMs < one.untilMs) last.set(one.name, one);
  }
  return undefined;
}
