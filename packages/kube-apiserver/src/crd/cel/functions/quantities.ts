/** Quantities such as "1.5Gi" (apiserver: pkg/cel/library/quantity.go). */
import { DECIMAL } from "@quorate/kube-storage";
import type { Environment } from "../lang/environment.ts";
import { LibraryValue, QUANTITY_TYPE } from "../lang/library.ts";
import { EvaluationError } from "../lang/values.ts";

const SCALE = 9;
const ONE = 10n ** BigInt(SCALE);

const BINARY = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const QUANTITY = /^([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?$/;
/** Longer texts are no quantities. */
const MAX_LENGTH = 256;

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

function parse(text: string): Quantity | undefined {
  const parts = text.length > MAX_LENGTH ? null : QUANTITY.exec(text);
  if (parts === null) return undefined;
  const [, sign, digits = "", binary, decimal = "", exponent] = parts;
  const [whole, fraction = ""] = digits.split(".");
  let value = BigInt(`${whole === "" ? "0" : whole}${fraction}`) * ONE;
  let power = exponent === undefined ? (DECIMAL[decimal] ?? 0) : Number(exponent);
  if (binary !== undefined) {
    value <<= BigInt(10 * (BINARY.indexOf(binary) + 1));
    power = 0;
  }
  const shift = power - fraction.length;
  if (shift >= 0) value *= 10n ** BigInt(shift);
  else {
    const divisor = 10n ** BigInt(-shift);
    // Smaller parts than a billionth count as one more.
    value = value / divisor + (value % divisor === 0n ? 0n : 1n);
  }
  return new Quantity(sign === "-" ? -value : value);
}

function required(text: string): Quantity {
  const quantity = parse(text);
  if (quantity !== undefined) return quantity;
  if (/^[+-]?[0-9.]+(?:[eEinumkKMGTP]+[-+]?[0-9]*|[-+][0-9]*)?$/.test(text))
    throw new EvaluationError("unable to parse quantity's suffix");
  throw new EvaluationError(
    "quantities must match the regular expression " +
      "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  );
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
    .function("isQuantity(string): bool", (text: string) => parse(text) !== undefined);
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
