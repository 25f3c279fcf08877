/**
 * Rules of fields, as values: a kind's table says what each field must be, and one walk finds what
 * is wrong with an object.
 *
 *     fields({ name: needed(named(isDns1123Label)), replicas: atLeast(0) })
 *
 * A rule passes over an absent field, unless it is `needed` or a `struct`: Go's structs are never
 * absent. Errors come in the table's order, with Kubernetes' texts, and end at MAX_PROBLEMS.
 */
import {
  type FieldError,
  fieldErrors,
  invalidValue,
  isObject,
  type LabelSelectorObject,
  notSupported,
  required,
  semanticEqual,
  validateAnnotations,
  validateLabelSelector,
  validateLabels,
} from "@quorate/kube-storage";
import { MAX_PROBLEMS } from "../../crd/validation/problem.ts";

export type ObjectFields = Readonly<Record<string, unknown>>;

/** Where the present value is, and what was found so far. */
export type Rule = (value: unknown, field: string, found: FieldError[]) => void;

/** What is wrong with a text, in Kubernetes' words. */
export type TextCheck = (text: string) => readonly string[];

/** The errors of a value. */
export function errorsOf(rule: Rule, value: unknown, field = ""): FieldError[] {
  const found: FieldError[] = [];
  rule(value, field, found);
  return found;
}

export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** Absent, "" or an empty list. */
function isEmpty(value: unknown): boolean {
  return isAbsent(value) || value === "" || (Array.isArray(value) && value.length === 0);
}

/** An object; an empty one for anything else. */
export function objectOf(value: unknown): ObjectFields {
  return isObject(value) ? value : {};
}

/** A list; an empty one for anything else. */
export function listOf<T = ObjectFields>(value: unknown): readonly T[] {
  return Array.isArray(value) ? value : [];
}

/** A text; "" for anything else. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A number; 0 for anything else. */
export function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

/** The place of a field within a place; "" is the object itself. */
export function within(field: string, name: string): string {
  return field === "" ? name : `${field}.${name}`;
}

/** The fields of an object that may be absent. */
export function fields(rules: Readonly<Record<string, Rule>>): Rule {
  const all = Object.entries(rules);
  return (value, field, found) => {
    if (!isObject(value)) return;
    for (const [name, rule] of all) rule(value[name], within(field, name), found);
  };
}

/** The fields of an object that stands for an empty one where it is absent. */
export function struct(rules: Readonly<Record<string, Rule>>): Rule {
  const inner = fields(rules);
  return (value, field, found) => inner(objectOf(value), field, found);
}

/** Rules for one value, in their order. */
export function all(...rules: readonly Rule[]): Rule {
  return (value, field, found) => {
    for (const rule of rules) rule(value, field, found);
  };
}

/**
 * The items of a list.
 * @param key the field whose values must differ among the items; empty ones may be alike
 */
export function each(rule: Rule, key?: string): Rule {
  return (value, field, found) => {
    const seen = new Set<unknown>();
    for (const [index, item] of listOf<unknown>(value).entries()) {
      if (found.length >= MAX_PROBLEMS) return;
      const at = `${field}[${index}]`;
      rule(item, at, found);
      if (key === undefined) continue;
      const own = objectOf(item)[key] ?? "";
      if (own !== "" && seen.has(own)) found.push(fieldErrors.duplicate(`${at}.${key}`, own));
      seen.add(own);
    }
  };
}

/** A value that is neither absent, "" nor an empty list; then the rule. */
export function needed(rule?: Rule, text = ""): Rule {
  return (value, field, found) => {
    if (isEmpty(value)) found.push(required(field, text));
    else rule?.(value, field, found);
  };
}

/** One of the texts, which the error lists in this order. */
export function oneOf(...values: readonly string[]): Rule {
  return (value, field, found) => {
    if (isAbsent(value) || values.includes(value as string)) return;
    found.push(notSupported(field, value, values));
  };
}

/** A text that is not empty. */
export function named(check: TextCheck): Rule {
  return (value, field, found) => {
    if (textOf(value) !== "") texts(check)(value, field, found);
  };
}

/** A text; an absent one is empty. */
export function texts(check: TextCheck): Rule {
  return (value, field, found) => {
    const text = textOf(value);
    for (const wrong of check(text)) found.push(invalidValue(field, text, wrong));
  };
}

/** A number that `isGood` takes, else the text. */
export function number(isGood: (value: number) => boolean, text: string): Rule {
  return (value, field, found) => {
    if (typeof value === "number" && !isGood(value)) found.push(invalidValue(field, value, text));
  };
}

export function atLeast(min: number): Rule {
  return number((value) => value >= min, `must be greater than or equal to ${min}`);
}

export function between(min: number, max: number): Rule {
  return number(
    (value) => value >= min && value <= max,
    `must be between ${min} and ${max}, inclusive`,
  );
}

export const POSITIVE: Rule = number((value) => value > 0, "must be greater than zero");
export const USER_ID: Rule = between(0, 2 ** 31 - 1);
export const PROTOCOL: Rule = needed(oneOf("SCTP", "TCP", "UDP"));

/** A field that may not be there. */
export function forbidden(text: string): Rule {
  return (value, field, found) => {
    if (!isEmpty(value)) found.push(fieldErrors.fieldForbidden(field, text));
  };
}

export const LABELS: Rule = (value, field, found) => {
  found.push(...validateLabels(objectOf(value) as Readonly<Record<string, string>>, field));
};

export const ANNOTATIONS: Rule = (value, field, found) => {
  found.push(...validateAnnotations(objectOf(value) as Readonly<Record<string, string>>, field));
};

export const SELECTOR: Rule = (value, field, found) => {
  found.push(...validateLabelSelector((value ?? undefined) as LabelSelectorObject, field));
};

/** The field is as it was. */
export function immutable(value: unknown, old: unknown, field: string, found: FieldError[]): void {
  if (!semanticEqual(value, old)) found.push(invalidValue(field, value ?? null, IMMUTABLE));
}

export const IMMUTABLE = "field is immutable";

/** Alternatives of which an object has one: each with its rule, in the order of errors. */
export function alternatives(
  rules: Readonly<Record<string, Rule>>,
  tooMany: string,
  none: string,
): Rule {
  const all = Object.entries(rules);
  return (value, field, found) => {
    const present = all.filter(([name]) => !isAbsent(objectOf(value)[name]));
    for (const [index, [name, rule]] of present.entries()) {
      if (index > 0) found.push(fieldErrors.fieldForbidden(within(field, name), tooMany));
      else rule(objectOf(value)[name], within(field, name), found);
    }
    if (present.length === 0) found.push(required(field, none));
  };
}
