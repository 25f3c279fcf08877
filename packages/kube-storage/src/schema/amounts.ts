/** Amounts by resource, as quotas count them (apiserver: pkg/quota/v1/resources.go). */
import { addQuantities, compareQuantities, subtractQuantities } from "../meta/quantity.ts";

export type Amounts = Readonly<Record<string, string>>;

/** The sum of both; what one of them lacks is 0. */
export function added(a: Amounts, b: Amounts): Amounts {
  return merged(a, b, addQuantities);
}

/** The larger one of each. */
export function maximum(a: Amounts, b: Amounts): Amounts {
  return merged(a, b, (one, other) => (compareQuantities(other, one) > 0 ? other : one));
}

/** What `a` has more than `b`, and 0 where it has less. */
export function excess(a: Amounts, b: Amounts): Amounts {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  const entries = [...names].map((name): [string, string] => {
    const [one = "0", other = "0"] = [a[name], b[name]];
    return [name, compareQuantities(one, other) > 0 ? subtractQuantities(one, other) : "0"];
  });
  return Object.fromEntries(entries);
}

/** Those with one of the names. */
export function masked(amounts: Amounts, names: Iterable<string>): Amounts {
  const wanted = new Set(names);
  return Object.fromEntries(Object.entries(amounts).filter(([name]) => wanted.has(name)));
}

export function withoutZeros(amounts: Amounts): Amounts {
  return Object.fromEntries(
    Object.entries(amounts).filter(([, amount]) => compareQuantities(amount, "0") !== 0),
  );
}

export function sameAmounts(a: Amounts, b: Amounts): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => {
      const [one, other] = [a[name], b[name]];
      return one !== undefined && other !== undefined && compareQuantities(one, other) === 0;
    })
  );
}

/** "cpu=1,pods=2" */
export function shownAmounts(amounts: Amounts): string {
  const names = Object.keys(amounts).sort();
  return names.map((name) => `${name}=${amounts[name]}`).join(",");
}

function merged(a: Amounts, b: Amounts, join: (one: string, other: string) => string): Amounts {
  const all: Record<string, string> = { ...a };
  for (const [name, amount] of Object.entries(b)) {
    const own = all[name];
    all[name] = own === undefined ? amount : join(own, amount);
  }
  return all;
}
