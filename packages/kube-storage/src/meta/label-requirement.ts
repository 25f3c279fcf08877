/** One requirement of a label selector (apimachinery: labels/selector.go, Requirement). */
import { CodedError } from "@quorate/proto";
import { invalidValue } from "./field-errors.ts";
import { isLabelValue, isQualifiedName } from "./names.ts";
import type { Selector } from "./selectors.ts";
import { aggregateText, type FieldError } from "./status.ts";

export type LabelOperator = "=" | "==" | "!=" | "in" | "notin" | "exists" | "!" | "gt" | "lt";

export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Sorted, without repetitions. */
  readonly values: readonly string[];
}

/** A selector's text that cannot be parsed. Its message is Kubernetes' own. */
export class SelectorSyntaxError extends CodedError<"BadSelector"> {
  constructor(message: string) {
    super("SelectorSyntaxError", "BadSelector", message);
  }
}

/** An integer of 64 bits has up to 19 digits after its zeros. */
const INTEGER = /^([+-]?)0*(\d{1,19})$/;
const MAX_INT64 = 2n ** 63n - 1n;
const MIN_INT64 = -(2n ** 63n);

/** A label's value as a 64-bit integer; undefined for other texts. */
function integerOf(text: string): bigint | undefined {
  const [, sign, digits] = INTEGER.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const value = BigInt(sign === "-" ? `-${digits}` : digits);
  return value > MAX_INT64 || value < MIN_INT64 ? undefined : value;
}

function valueErrors({ operator, values }: LabelRequirement): FieldError[] {
  const bad = (text: string): FieldError[] => [invalidValue("values", values, text)];
  switch (operator) {
    case "in":
    case "notin":
      return values.length > 0 ? [] : bad("for 'in', 'notin' operators, values set can't be empty");
    case "gt":
    case "lt": {
      const [value, more] = values;
      if (value === undefined || more !== undefined) {
        return bad("for 'Gt', 'Lt' operators, exactly one value is required");
      }
      const text = "for 'Gt', 'Lt' operators, the value must be an integer";
      return integerOf(value) === undefined ? [invalidValue("values[0]", value, text)] : [];
    }
    case "exists":
    case "!":
      return values.length === 0
        ? []
        : bad("values set must be empty for exists and does not exist");
    default:
      return values.length === 1 ? [] : bad("exact-match compatibility requires one single value");
  }
}

/**
 * Checks a requirement; throws SelectorSyntaxError with all that is wrong.
 * @param keyField the field that a wrong key is reported for
 */
export function checkRequirement(requirement: LabelRequirement, keyField = "key"): void {
  const { key, values } = requirement;
  const errors: FieldError[] = [];
  const keyTexts = isQualifiedName(key);
  if (keyTexts.length > 0) errors.push(invalidValue(keyField, key, keyTexts.join("; ")));
  errors.push(...valueErrors(requirement));
  for (const [index, value] of values.entries()) {
    const texts = isLabelValue(value);
    if (texts.length > 0) {
      errors.push(invalidValue(`values[${index}][${key}]`, value, texts.join("; ")));
    }
  }
  if (errors.length === 0) return;
  throw new SelectorSyntaxError(
    aggregateText(errors.map(({ field, message }) => `${field}: ${message}`)),
  );
}

/** A requirement that many objects are compared with. */
interface Matcher extends LabelRequirement {
  readonly set: ReadonlySet<string>;
}

function matchesRequirement(
  { key, operator, values, set }: Matcher,
  labels: Readonly<Record<string, string>>,
): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    case "!=":
    case "notin":
      return value === undefined || !set.has(value);
    case "gt":
    case "lt": {
      const present = value === undefined ? undefined : integerOf(value);
      const wanted = integerOf(values[0] ?? "");
      if (present === undefined || wanted === undefined) return false;
      return operator === "gt" ? present > wanted : present < wanted;
    }
    default:
      return value !== undefined && set.has(value);
  }
}

function textOf({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case "exists":
      return key;
    case "!":
      return `!${key}`;
    case "in":
    case "notin":
      return `${key} ${operator} (${values.join(",")})`;
    case "gt":
      return `${key}>${values[0]}`;
    case "lt":
      return `${key}<${values[0]}`;
    default:
      return `${key}${operator}${values[0]}`;
  }
}

/** A selector that matches where all requirements do. They are sorted by key. */
export function labelSelectorOf(requirements: readonly LabelRequirement[]): Selector {
  const sorted = requirements.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  const text = sorted.map(textOf).join(",");
  const matchers = sorted.map((requirement) => ({
    ...requirement,
    set: new Set(requirement.values),
  }));
  return {
    isEmpty: sorted.length === 0,
    attributes: [...new Set(sorted.map(({ key }) => key))],
    matches: (labels) => matchers.every((matcher) => matchesRequirement(matcher, labels)),
    exactValue(attribute) {
      const found = sorted.find(({ key }) => key === attribute);
      if (found === undefined || found.values.length !== 1) return undefined;
      return found.operator === "=" || found.operator === "==" || found.operator === "in"
        ? found.values[0]
        : undefined;
    },
    toString: () => text,
  };
}
