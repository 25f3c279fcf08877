/** Functions of lists and sets: isSorted, sum, min, max, indexOf, sets.contains. */
import { budget } from "../base/budget.ts";
import type { CelEnvironment } from "../library.ts";

type Ordered = bigint | number | string;

const ORDERED = ["int", "double", "string"];

export function registerLists(environment: CelEnvironment): void {
  for (const type of ORDERED) {
    environment
      .registerFunction(`list<${type}>.isSorted(): bool`, isSorted)
      .registerFunction(`list<${type}>.min(): ${type}`, (list) => extreme(list, "min", -1))
      .registerFunction(`list<${type}>.max(): ${type}`, (list) => extreme(list, "max", 1));
  }
  environment
    .registerFunction("list<int>.sum(): int", (list: bigint[]) => list.reduce((a, b) => a + b, 0n))
    .registerFunction("list<double>.sum(): double", (list: number[]) =>
      list.reduce((a, b) => a + b, 0),
    );
  for (const type of [...ORDERED, "bool"]) {
    environment
      .registerFunction(`list<${type}>.indexOf(${type}): int`, (list: unknown[], item: unknown) =>
        BigInt(list.indexOf(item)),
      )
      .registerFunction(`list<${type}>.lastIndexOf(${type}): int`, (list: unknown[], item) =>
        BigInt(list.lastIndexOf(item)),
      );
  }
  registerSets(environment);
}

function isSorted(list: readonly Ordered[]): boolean {
  return list.every((item, i) => i === 0 || list[i - 1] <= item);
}

function extreme(list: readonly Ordered[], name: string, sign: number): Ordered {
  if (list.length === 0) throw new RangeError(`${name} called on empty list`);
  return list.reduce((best, item) => ((sign < 0 ? item < best : item > best) ? item : best));
}

class SetsNamespace {}

function registerSets(environment: CelEnvironment): void {
  environment
    .registerType("SetsNamespace", SetsNamespace)
    .registerConstant("sets", "SetsNamespace", new SetsNamespace());
  for (const type of [...ORDERED, "bool"]) {
    const lists = `list<${type}>, list<${type}>`;
    environment
      .registerFunction(`SetsNamespace.contains(${lists}): bool`, (_, a, b) => contains(a, b))
      .registerFunction(
        `SetsNamespace.equivalent(${lists}): bool`,
        (_, a, b) => contains(a, b) && contains(b, a),
      )
      .registerFunction(`SetsNamespace.intersects(${lists}): bool`, (_, a, b: unknown[]) => {
        const all = new Set(a);
        return b.some((item) => all.has(item));
      });
  }
}

function contains(list: readonly unknown[], wanted: readonly unknown[]): boolean {
  budget.charge(list.length + wanted.length);
  const all = new Set(list);
  return wanted.every((item) => all.has(item));
}
