/**
 * Label selectors as objects, as in spec.selector (apimachinery: apis/meta/v1, LabelSelector).
 */

import { quoteText as goQuote } from "@quorate/proto";
import { fieldForbidden, invalidValue, required } from "./field-errors.ts";
import {
  checkRequirement,
  type LabelOperator,
  type LabelRequirement,
  labelSelectorOf,
  SelectorSyntaxError,
} from "./label-requirement.ts";
import { isLabelValue, isQualifiedName } from "./names.ts";
import { validateLabels } from "./object-meta-validation.ts";
import { EVERYTHING, NOTHING, type Selector } from "./selectors.ts";
import type { FieldError } from "./status.ts";

/** metav1.LabelSelectorRequirement. */
export interface LabelSelectorRequirement {
  readonly key: string;
  /** In, NotIn, Exists or DoesNotExist. */
  readonly operator: string;
  readonly values?: readonly string[];
}

/** metav1.LabelSelector. */
export interface LabelSelectorObject {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly LabelSelectorRequirement[];
}

const OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ["In", "in"],
  ["NotIn", "notin"],
  ["Exists", "exists"],
  ["DoesNotExist", "!"],
]);

function requirementOf(expression: LabelSelectorRequirement): LabelRequirement {
  const { key, operator, values = [] } = expression;
  const known = OPERATORS.get(operator);
  if (known === undefined) {
    const message = `${goQuote(operator)} is not a valid label selector operator`;
    throw new SelectorSyntaxError(message);
  }
  return { key, operator: known, values: values.toSorted() };
}

/**
 * The predicate of a selector object: none selects nothing, an empty one everything.
 * Throws SelectorSyntaxError for one that is not valid.
 */
export function selectorOfObject(selector: LabelSelectorObject | undefined): Selector {
  if (selector === undefined) return NOTHING;
  const requirements: LabelRequirement[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) {
    requirements.push({ key, operator: "=", values: [value] });
  }
  for (const expression of selector.matchExpressions ?? []) {
    requirements.push(requirementOf(expression));
  }
  for (const requirement of requirements) checkRequirement(requirement);
  return requirements.length === 0 ? EVERYTHING : labelSelectorOf(requirements);
}

function validateExpression(expression: LabelSelectorRequirement, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const { key, operator, values = [] } = expression;
  if (operator === "In" || operator === "NotIn") {
    const text = "must be specified when `operator` is 'In' or 'NotIn'";
    if (values.length === 0) errors.push(required(`${field}.values`, text));
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    const text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    if (values.length > 0) errors.push(fieldForbidden(`${field}.values`, text));
  } else {
    errors.push(invalidValue(`${field}.operator`, operator, "not a valid selector operator"));
  }
  for (const text of isQualifiedName(key)) errors.push(invalidValue(`${field}.key`, key, text));
  for (const [index, value] of values.entries()) {
    for (const text of isLabelValue(value)) {
      errors.push(invalidValue(`${field}.values[${index}]`, value, text));
    }
  }
  return errors;
}

/** All errors of a selector object, for the validation of kinds that have one. */
export function validateLabelSelector(
  selector: LabelSelectorObject | undefined,
  field: string,
): FieldError[] {
  return [
    ...validateLabels(selector?.matchLabels, `${field}.matchLabels`),
    ...(selector?.matchExpressions ?? []).flatMap((expression, index) =>
      validateExpression(expression, `${field}.matchExpressions[${index}]`),
    ),
  ];
}
