/** Quantities such as "1.5Gi" (apiserver: pkg/cel/library/quantity.go). */
import { quantityNanos } from "@quorate/kube-storage";
import type { Environment } from "../lang/environment.ts";
import { LibraryValue, QUANTITY_TYPE } from "../lang/library.ts";
import { EvaluationError } from "../lang/values.ts";

const SCALE = 9;
const ONE = 10n ** BigInt(SCALE);

/** A number of billionths. */
class Quantity extends LibraryValue {
  readonly celType = QUANTITY_TYPE;
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    super();
    this.nanos = nanos;
  }

  equals(other: unknown): boolean {
    return other instanceof Quantity && other.nanos === this.nanos;
  }
}

function required(text: string): Quantity {
  try {
    return new Quantity(quantityNanos(text));
  } catch (error) {
    throw new EvaluationError((error as Error).message);
  }
}

function isQuantity(text: string): boolean {
  try {
    quantityNanos(text);
    return true;
  } catch {
    return false;
  }
}

function compare(a: Quantity, b: Quantity): number {
  return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0;
}

function isInteger({ nanos }: Quantity): boolean {
  return nanos % ONE === 0n && BigInt.asIntN(64, nanos / ONE) === nanos / ONE;
}

function asInteger(quantity: Quantity): bigint {
  const { nanos } = quantity;
  if (!isInteger(quantity)) throw new EvaluationError("cannot convert value to integer");
  return nanos / ONE;
}

export function registerQuantities(environment: Environment): void {
  environment
    .type(QUANTITY_TYPE)
    .function("quantity(string): kubernetes.Quantity", required)
    .function("isQuantity(string): bool", isQuantity);
  const type = "kubernetes.Quantity";
  environment
    .function(`${type}.isInteger(): bool`, isInteger)
    .function(`${type}.asInteger(): int`, asInteger)
    .function(
      `${type}.asApproximateFloat(): double`,
      ({ nanos }: Quantity) => Number(nanos) / 10 ** SCALE,
    )
    .function(`${type}.sign(): int`, ({ nanos }: Quantity) =>
      nanos === 0n ? 0n : nanos < 0n ? -1n : 1n,
    )
    .function(`${type}.compareTo(${type}): int`, (a, b) => BigInt(compare(a, b)))
    .function(`${type}.isLessThan(${type}): bool`, (a, b) => compare(a, b) < 0)
    .function(`${type}.isGreaterThan(${type}): bool`, (a, b) => compare(a, b) > 0)
    .function(
      `${type}.add(${type}): ${type}`,
      (a: Quantity, b: Quantity) => new Quantity(a.nanos + b.nanos),
    )
    .function(
      `${type}.add(int): ${type}`,
      (a: Quantity, b: bigint) => new Quantity(a.nanos + b * ONE),
    )
    .function(
      `${type}.sub(${type}): ${type}`,
      (a: Quantity, b: Quantity) => new Quantity(a.nanos - b.nanos),
    )
    .function(
      `${type}.sub(int): ${type}`,
      (a: Quantity, b: bigint) => new Quantity(a.nanos - b * ONE),
    );
}
