/**
 * resource.Quantity: the canonical text of an amount such as "1500m", "2Gi" or "1e3"
 * (apimachinery: pkg/api/resource/quantity.go). Amounts are kept exactly, down to 10^-9.
 */

/** Powers of ten by suffix. */
const DECIMAL: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const SMALLEST_EXPONENT = -9;
const MAX_BINARY = 2n ** 63n - 1n;
/** Longer texts are refused; Go takes any length. */
const MAX_TEXT_LENGTH = 256;
/** Larger exponents are refused, since the exact amount would take too much memory. */
const MAX_EXPONENT = 1000;

const WRONG_FORMAT =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX = "unable to parse quantity's suffix";
const WRONG_NUMBER = "unable to parse numeric part of quantity";

type Format = "decimal" | "binary" | "exponent";

/** mantissa * 10^exponent */
interface Amount {
  readonly mantissa: bigint;
  readonly exponent: number;
}

/** The text under which Kubernetes writes a quantity. Throws SyntaxError with Go's text. */
export function canonicalQuantity(input: string): string {
  const text = input.trim();
  const { sign, whole, fraction, format, power } = partsOf(text);
  const digits = (whole.replace(/^0+/, "") || "0") + fraction;
  if (isKept(digits, fraction.length, format, power)) return text;
  const magnitude = BigInt(digits);
  if (magnitude === 0n) return "0";
  const exponent = -fraction.length + (format === "binary" ? 0 : power);
  const factor = format === "binary" ? 2n ** BigInt(power) : 1n;
  let amount = roundUp({ mantissa: magnitude * factor, exponent });
  if (format === "binary" && floorOf(amount) > MAX_BINARY)
    amount = { mantissa: MAX_BINARY, exponent: 0 };
  return (sign === "-" ? "-" : "") + write(amount, format);
}

/** The amount of a quantity, rounded to a number. Throws SyntaxError with Go's text. */
export function quantityNumber(text: string): number {
  const { sign, whole, fraction, format, power } = partsOf(text);
  return Number(`${sign}${whole}.${fraction}`) * (format === "binary" ? 2 : 10) ** power;
}

/** In billionths; smaller parts are rounded away from zero. Throws SyntaxError with Go's text. */
export function quantityNanos(text: string): bigint {
  const { sign, whole, fraction, format, power } = partsOf(text);
  const factor = format === "binary" ? 2n ** BigInt(power) : 1n;
  const { mantissa, exponent } = roundUp({
    mantissa: BigInt(`${whole}${fraction}`) * factor,
    exponent: -fraction.length + (format === "binary" ? 0 : power),
  });
  const nanos = mantissa * 10n ** BigInt(exponent - SMALLEST_EXPONENT);
  return sign === "-" ? -nanos : nanos;
}

/** In thousandths, rounded up. Throws SyntaxError with Go's text. */
export function quantityMilli(text: string): number {
  const nanos = quantityNanos(text);
  const milli = nanos / 1_000_000n;
  return Number(nanos % 1_000_000n > 0n ? milli + 1n : milli);
}

/** Above, below or at 0 where `a` is more than, less than or equal to `b`. Throws SyntaxError. */
export function compareQuantities(a: string, b: string): number {
  const [one, other] = [quantityNanos(a), quantityNanos(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The canonical text of the sum, in the form of `a`, or of `b` where `a` is 0. */
export function addQuantities(a: string, b: string): string {
  return nanosText(quantityNanos(a) + quantityNanos(b), a, b);
}

/** The canonical text of the difference, as that of a sum. */
export function subtractQuantities(a: string, b: string): string {
  return nanosText(quantityNanos(a) - quantityNanos(b), a, b);
}

function nanosText(nanos: bigint, a: string, b: string): string {
  if (nanos === 0n) return "0";
  const { format } = partsOf(quantityNanos(a) === 0n ? b : a);
  const mantissa = nanos < 0n ? -nanos : nanos;
  return (nanos < 0n ? "-" : "") + write({ mantissa, exponent: SMALLEST_EXPONENT }, format);
}

interface Parts {
  readonly sign: string;
  /** Digits before and behind the point; at least one of both is not empty. */
  readonly whole: string;
  readonly fraction: string;
  readonly format: Format;
  /** Of 2 in the binary format, else of 10. */
  readonly power: number;
}

/** Throws SyntaxError with Go's text. */
function partsOf(text: string): Parts {
  if (text === "" || text.length > MAX_TEXT_LENGTH) throw new SyntaxError(WRONG_FORMAT);
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?((?:[eEinumkKMGTP]+[-+]?\d*|[-+]\d*)?)$/.exec(text);
  if (parts === null || !/^[+-]?[\d.]/.test(text)) throw new SyntaxError(WRONG_FORMAT);
  const [, sign = "", whole = "", fraction = "", suffix = ""] = parts;
  const { format, power } = readSuffix(suffix);
  if (whole === "" && fraction === "") throw new SyntaxError(WRONG_NUMBER);
  return { sign, whole, fraction, format, power };
}

function readSuffix(suffix: string): { format: Format; power: number } {
  const decimal = DECIMAL[suffix];
  if (decimal !== undefined) return { format: "decimal", power: decimal };
  const binary = BINARY.indexOf(suffix);
  if (binary > 0) return { format: "binary", power: binary * 10 };
  const exponent = /^[eE]([-+]?\d+)$/.exec(suffix);
  if (exponent === null || Math.abs(Number(exponent[1])) > MAX_EXPONENT)
    throw new SyntaxError(WRONG_SUFFIX);
  return { format: "exponent", power: Number(exponent[1]) };
}

/** Go keeps the client's text where its fast path takes it for canonical. */
function isKept(digits: string, decimals: number, format: Format, power: number): boolean {
  if (format === "binary") {
    const fast = decimals === 0 && 15 - digits.length - Math.trunc((power * 3) / 10) - 1 >= 0;
    return fast && (Number(digits) & 7) !== 0;
  }
  const scale = power - decimals;
  if (digits.length > 18 || scale < SMALLEST_EXPONENT) return false;
  return scale % 3 === 0 && !digits.endsWith("000") && digits[0] !== "0";
}

/** Amounts below 10^-9 are rounded away from zero. */
function roundUp({ mantissa, exponent }: Amount): Amount {
  if (exponent >= SMALLEST_EXPONENT) return { mantissa, exponent };
  const divisor = 10n ** BigInt(SMALLEST_EXPONENT - exponent);
  return { mantissa: (mantissa + divisor - 1n) / divisor, exponent: SMALLEST_EXPONENT };
}

function floorOf({ mantissa, exponent }: Amount): bigint {
  const power = 10n ** BigInt(Math.abs(exponent));
  return exponent < 0 ? mantissa / power : mantissa * power;
}

function write(amount: Amount, format: Format): string {
  const floor = floorOf(amount);
  const isWhole =
    amount.exponent >= 0 || floor * 10n ** BigInt(-amount.exponent) === amount.mantissa;
  if (format === "binary" && isWhole && floor >= 1024n) {
    let rest = floor;
    let power = 0;
    for (; rest % 1024n === 0n && power < BINARY.length - 1; power++) rest /= 1024n;
    return `${rest}${BINARY[power]}`;
  }
  let { mantissa, exponent } = amount;
  for (; mantissa % 10n === 0n; exponent++) mantissa /= 10n;
  for (; exponent % 3 !== 0; exponent--) mantissa *= 10n;
  if (format === "exponent") return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  const suffix = Object.keys(DECIMAL).find((each) => DECIMAL[each] === exponent) ?? "";
  return `${mantissa}${suffix}`;
}
