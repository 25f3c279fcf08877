/**
 * Tolerations of two lists in one, without those that another one covers (kubernetes:
 * pkg/util/tolerations). The time is in proportion to their number: what covers a toleration is
 * found by the few names that it can have.
 */

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number | null;
}

/** In order. Of equal ones the first stays; of those that cover each other, the last. */
export function mergedTolerations(all: readonly Toleration[]): Toleration[] {
  const byText = new Map<string, Toleration>();
  for (const one of all) {
    const { key = "", operator = "", value = "", effect = "" } = one;
    const text = JSON.stringify([key, operator, value, effect, one.tolerationSeconds ?? null]);
    if (!byText.has(text)) byText.set(text, one);
  }
  return uncovered(uncovered([...byText.values()].reverse()).reverse());
}

/** Those that none of those before them covers. */
function uncovered(tolerations: readonly Toleration[]): Toleration[] {
  const longest = new Map<string, number>();
  return tolerations.filter((one) => {
    const isCovered = coveringNames(one).some(
      (name) => (longest.get(name) ?? Number.NEGATIVE_INFINITY) >= secondsOf(one),
    );
    const name = nameOf(one);
    longest.set(name, Math.max(longest.get(name) ?? Number.NEGATIVE_INFINITY, reachOf(one)));
    return !isCovered;
  });
}

function secondsOf({ tolerationSeconds }: Toleration): number {
  return tolerationSeconds ?? Number.POSITIVE_INFINITY;
}

/** The longest time that it covers: only taints that evict have one. */
function reachOf(one: Toleration): number {
  return one.effect === "NoExecute" ? secondsOf(one) : Number.POSITIVE_INFINITY;
}

function nameOf({ key = "", operator = "", value = "", effect = "" }: Toleration): string {
  return JSON.stringify([key, effect, operator, operator === "Exists" ? "" : value]);
}

/** The names of those that cover it, if their time is long enough. */
function coveringNames(one: Toleration): string[] {
  const { key = "", effect = "" } = one;
  const isEqual = one.operator === "Equal";
  return [...new Set([effect, ""])].flatMap((covered) => [
    nameOf({ operator: "Exists", key, effect: covered }),
    nameOf({ operator: "Exists", effect: covered }),
    ...(isEqual ? ["Equal", ""] : []).map((operator) =>
      nameOf({ ...one, operator, effect: covered }),
    ),
  ]);
}
