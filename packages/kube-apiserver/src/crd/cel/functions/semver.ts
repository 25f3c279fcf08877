/** Semantic versions (apiserver: pkg/cel/library/semverlib.go; semver.org 2.0.0). */
import type { Environment } from "../lang/environment.ts";
import { LibraryValue, SEMVER } from "../lang/library.ts";
import { EvaluationError } from "../lang/values.ts";

const NUMBER = "(0|[1-9]\\d*)";
const MAX_DIGITS = 19;
const IDS = "([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)";
const VERSION = new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-${IDS})?(?:\\+${IDS})?$`);
const MAX_LENGTH = 256;

class Semver extends LibraryValue {
  readonly celType = SEMVER;
  readonly numbers: readonly bigint[];
  readonly pre: readonly string[];

  constructor(numbers: readonly bigint[], pre: readonly string[]) {
    super();
    this.numbers = numbers;
    this.pre = pre;
  }

  equals(other: unknown): boolean {
    return other instanceof Semver && compare(this, other) === 0;
  }
}

function parse(text: string): Semver | undefined {
  const parts = text.length > MAX_LENGTH ? null : VERSION.exec(text);
  if (parts === null) return undefined;
  if (parts.slice(1, 4).some(({ length }) => length > MAX_DIGITS)) return undefined;
  const pre = parts[4] === undefined ? [] : parts[4].split(".");
  if (pre.some((id) => /^0\d+$/.test(id))) return undefined;
  return new Semver(parts.slice(1, 4).map(BigInt), pre);
}

/** "v1.2" is "1.2.0", and leading zeros are dropped. */
function normalized(text: string): string {
  const [core = "", ...rest] = text.replace(/^v/, "").split(/(?=[-+])/);
  const numbers = core.split(".").map((part) => part.replace(/^0+(\d)/, "$1"));
  while (numbers.length < 3) numbers.push("0");
  return numbers.join(".") + rest.join("");
}

function required(text: string): Semver {
  const version = parse(text);
  if (version !== undefined) return version;
  throw new EvaluationError("No Major.Minor.Patch elements found");
}

function compareIds(a: string, b: string): number {
  const [one, other] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (one !== other) return one ? -1 : 1;
  if (one) return BigInt(a) < BigInt(b) ? -1 : BigInt(a) > BigInt(b) ? 1 : 0;
  return a < b ? -1 : a > b ? 1 : 0;
}

function compare(a: Semver, b: Semver): number {
  for (const [i, number] of a.numbers.entries()) {
    const other = b.numbers[i] ?? 0n;
    if (number !== other) return number < other ? -1 : 1;
  }
  if (a.pre.length === 0 || b.pre.length === 0) return b.pre.length - a.pre.length;
  for (const [i, id] of a.pre.entries()) {
    const other = b.pre[i];
    if (other === undefined) return 1;
    const order = compareIds(id, other);
    if (order !== 0) return order;
  }
  return a.pre.length < b.pre.length ? -1 : 0;
}

export function registerSemver(environment: Environment): void {
  const type = "kubernetes.Semver";
  const read = (text: string, loose: boolean) => (loose ? normalized(text) : text);
  environment
    .type(SEMVER)
    .function(`semver(string): ${type}`, required)
    .function(`semver(string, bool): ${type}`, (text: string, loose: boolean) =>
      required(read(text, loose)),
    )
    .function("isSemver(string): bool", (text: string) => parse(text) !== undefined)
    .function(
      "isSemver(string, bool): bool",
      (text: string, loose: boolean) => parse(read(text, loose)) !== undefined,
    )
    .function(`${type}.major(): int`, ({ numbers }: Semver) => numbers[0])
    .function(`${type}.minor(): int`, ({ numbers }: Semver) => numbers[1])
    .function(`${type}.patch(): int`, ({ numbers }: Semver) => numbers[2])
    .function(`${type}.compareTo(${type}): int`, (a, b) => BigInt(Math.sign(compare(a, b))))
    .function(`${type}.isLessThan(${type}): bool`, (a, b) => compare(a, b) < 0)
    .function(`${type}.isGreaterThan(${type}): bool`, (a, b) => compare(a, b) > 0);
}
