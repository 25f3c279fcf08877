/**
 * The list of known differences (differences-*.txt): what is not in it fails, and so does what no
 * longer happens, so that it can only shrink. One difference a line, sorted:
 *
 *     scenario | command line | column | what differs | reason
 *
 * What differs is one or more of exit, stdout and stderr.
 */

/** Where a command line came out otherwise than with etcdctl and etcd. */
export interface Difference {
  readonly scenario: string;
  /** As typed; "#2" after it if the scenario has it for the second time. */
  readonly line: string;
  readonly column: string;
  /** "exit", "stdout", "stderr", or several with commas. */
  readonly what: string;
}

export interface KnownDifference extends Difference {
  readonly reason: string;
}

const SEPARATOR = " | ";

function keyOf({ scenario, line, column, what }: Difference): string {
  return [scenario, line, column, what].join(SEPARATOR);
}

/**
 * Reads a list; lines that begin with # are comments. Throws Error for a line without a reason and
 * for lines out of order.
 */
export function parseDifferences(text: string): KnownDifference[] {
  const known: KnownDifference[] = [];
  for (const [i, line] of text.split("\n").entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [scenario, ...rest] = line.split(SEPARATOR);
    const [reason, what, column] = [rest.pop(), rest.pop(), rest.pop()];
    if (rest.length === 0 || !reason || !what || !column)
      throw new Error(`line ${i + 1}: not "scenario | line | column | what | reason": ${line}`);
    const one = { scenario: scenario, line: rest.join(SEPARATOR), column, what, reason };
    const before = known.at(-1);
    if (before !== undefined && keyOf(before) >= keyOf(one))
      throw new Error(`line ${i + 1}: not in order, or twice: ${line}`);
    known.push(one);
  }
  return known;
}

/** The list as it is written. */
export function formatDifferences(known: readonly KnownDifference[]): string {
  return [...known]
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    .map((one) => `${keyOf(one)}${SEPARATOR}${one.reason}\n`)
    .join("");
}

/** What was seen and is not known, and what is known and was not seen. */
export function judge<T extends Difference>(
  seen: readonly T[],
  known: readonly KnownDifference[],
): {
  readonly unknown: T[];
  readonly gone: KnownDifference[];
  readonly listed: { readonly seen: T; readonly known: KnownDifference }[];
} {
  const byKey = new Map(known.map((one) => [keyOf(one), one]));
  const seenKeys = new Set(seen.map(keyOf));
  return {
    unknown: seen.filter((one) => !byKey.has(keyOf(one))),
    gone: known.filter((one) => !seenKeys.has(keyOf(one))),
    listed: seen.flatMap((one) => {
      const entry = byKey.get(keyOf(one));
      return entry === undefined ? [] : [{ seen: one, known: entry }];
    }),
  };
}
