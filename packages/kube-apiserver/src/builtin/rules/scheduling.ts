/** Where pods may run: selectors of nodes, affinity, tolerations, spreading. */
import {
  type FieldError,
  fieldErrors,
  invalidValue,
  isDns1123Label,
  isDns1123Subdomain,
  isLabelValue,
  isQualifiedName,
  required,
} from "@quorate/kube-storage";
import {
  all,
  each,
  fields,
  isAbsent,
  listOf,
  needed,
  number,
  numberOf,
  type ObjectFields,
  objectOf,
  oneOf,
  POSITIVE,
  type Rule,
  SELECTOR,
  struct,
  textOf,
  texts,
} from "./rules.ts";

const KEY = texts(isQualifiedName);
const NO_OPERATOR = "not a valid selector operator";

/** @param checksValues preferences take any value */
function requirement(checksValues: boolean): Rule {
  return (value, field, found) => {
    const { key, operator } = objectOf(value);
    const values = listOf<string>(objectOf(value)["values"]);
    const at = `${field}.values`;
    if (operator === "In" || operator === "NotIn") {
      const text = "must be specified when `operator` is 'In' or 'NotIn'";
      if (values.length === 0) found.push(required(at, text));
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      const text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
      if (values.length > 0) found.push(fieldErrors.fieldForbidden(at, text));
    } else if (operator === "Gt" || operator === "Lt") {
      const text = "must be specified single value when `operator` is 'Lt' or 'Gt'";
      if (values.length !== 1) found.push(required(at, text));
    } else found.push(invalidValue(`${field}.operator`, operator ?? "", NO_OPERATOR));
    KEY(key, `${field}.key`, found);
    if (checksValues) each(texts(isLabelValue))(values, at, found);
  };
}

const FIELD_REQUIREMENT: Rule = (value, field, found) => {
  const { key, operator } = objectOf(value);
  const values = listOf<string>(objectOf(value)["values"]);
  if (operator === "In" || operator === "NotIn") {
    const text =
      "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    if (values.length !== 1) found.push(required(`${field}.values`, text));
  } else found.push(invalidValue(`${field}.operator`, operator ?? "", NO_OPERATOR));
  if (key !== "metadata.name") {
    found.push(invalidValue(`${field}.key`, key ?? "", "not a valid field selector key"));
    return;
  }
  each(texts((name) => isDns1123Subdomain(name)))(values, `${field}.values`, found);
};

function term(checksValues: boolean): Rule {
  return struct({
    matchExpressions: each(requirement(checksValues)),
    matchFields: each(FIELD_REQUIREMENT),
  });
}

export const NODE_SELECTOR: Rule = fields({
  nodeSelectorTerms: needed(each(term(true)), "must have at least one node selector term"),
});

const WEIGHT = number((value) => value > 0 && value <= 100, "must be in the range 1-100");

const POD_TERM: Rule = struct({
  labelSelector: SELECTOR,
  namespaceSelector: SELECTOR,
  namespaces(value, field, found) {
    const at = field.slice(0, -1);
    for (const name of listOf<string>(value)) texts(isDns1123Label)(name, at, found);
  },
  topologyKey: all(needed(undefined, "can not be empty"), KEY),
});

const POD_AFFINITY = fields({
  requiredDuringSchedulingIgnoredDuringExecution: each(POD_TERM),
  preferredDuringSchedulingIgnoredDuringExecution: each(
    struct({ weight: WEIGHT, podAffinityTerm: POD_TERM }),
  ),
});

export const AFFINITY: Rule = fields({
  nodeAffinity: fields({
    requiredDuringSchedulingIgnoredDuringExecution: NODE_SELECTOR,
    preferredDuringSchedulingIgnoredDuringExecution: each(
      struct({ weight: WEIGHT, preference: term(false) }),
    ),
  }),
  podAffinity: POD_AFFINITY,
  podAntiAffinity: POD_AFFINITY,
});

const EFFECT = oneOf("NoSchedule", "PreferNoSchedule", "NoExecute");

export const TOLERATIONS: Rule = each((item, field, found) => {
  const { key = "", operator = "", value = "", effect = "", tolerationSeconds } = objectOf(item);
  const at = `${field}.operator`;
  if (key !== "") KEY(key, `${field}.key`, found);
  else if (operator !== "Exists") {
    const text =
      'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    found.push(invalidValue(at, operator, text));
  }
  if (!isAbsent(tolerationSeconds) && effect !== "NoExecute") {
    const text = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    found.push(invalidValue(`${field}.effect`, effect, text));
  }
  if (operator === "Equal" || operator === "") {
    const wrong = isLabelValue(textOf(value));
    if (wrong.length > 0) found.push(invalidValue(at, value, wrong.join(";")));
  } else if (operator === "Exists") {
    const text = "value must be empty when `operator` is 'Exists'";
    if (value !== "") found.push(invalidValue(at, value, text));
  } else {
    // Comparisons are behind a feature that is off; the text names them all the same.
    const compares = operator === "Lt" || operator === "Gt";
    const supported = ["Equal", "Exists", ...(compares ? ["Lt", "Gt"] : [])];
    found.push(fieldErrors.notSupported(at, operator, supported));
  }
  if (effect !== "") EFFECT(effect, `${field}.effect`, found);
});

/** Taints of a node, which Kubernetes names as part of its metadata. */
export function taintErrors(node: ObjectFields, found: FieldError[]): void {
  const seen = new Set<string>();
  for (const [index, taint] of listOf(objectOf(node["spec"])["taints"]).entries()) {
    const at = `metadata.taints[${index}]`;
    const { key = "", value = "", effect = "", timeAdded = null } = taint;
    KEY(key, `${at}.key`, found);
    const wrong = isLabelValue(textOf(value));
    if (wrong.length > 0) found.push(invalidValue(`${at}.value`, value, wrong.join(";")));
    needed(EFFECT)(effect, `${at}.effect`, found);
    const both = `${String(effect)} ${String(key)}`;
    if (seen.has(both)) {
      // Go's internal type has no names for JSON.
      const shown = { Key: key, Value: value, Effect: effect, TimeAdded: timeAdded };
      const error = fieldErrors.duplicate(at, shown);
      const why = "taints must be unique by key and effect pair";
      found.push({ ...error, message: `${error.message}: ${why}` });
    }
    seen.add(both);
  }
}

const NODE_POLICY = oneOf("Honor", "Ignore");

export const SPREAD: Rule = (value, field, found) => {
  const all = listOf(value);
  const last = new Map<string, number>();
  const pairOf = ({ topologyKey = "", whenUnsatisfiable = "" }: ObjectFields): string =>
    `{${String(topologyKey)}, ${String(whenUnsatisfiable)}}`;
  for (const [index, one] of all.entries()) last.set(pairOf(one), index);
  for (const [index, one] of all.entries()) {
    const at = `${field}[${index}]`;
    const action = textOf(one["whenUnsatisfiable"]);
    POSITIVE(numberOf(one["maxSkew"]), `${at}.maxSkew`, found);
    needed(undefined, "can not be empty")(one["topologyKey"], `${at}.topologyKey`, found);
    oneOf("DoNotSchedule", "ScheduleAnyway")(action, `${at}.whenUnsatisfiable`, found);
    if ((last.get(pairOf(one)) ?? index) > index) {
      const pair = `${at}.{topologyKey, whenUnsatisfiable}`;
      found.push(fieldErrors.duplicate(pair, pairOf(one)));
    }
    if (!isAbsent(one["minDomains"])) {
      POSITIVE(one["minDomains"], `${at}.minDomains`, found);
      if (action !== "DoNotSchedule") {
        const text = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`;
        found.push(invalidValue(`${at}.minDomains`, one["minDomains"], text));
      }
    }
    NODE_POLICY(one["nodeAffinityPolicy"], `${at}.nodeAffinityPolicy`, found);
    NODE_POLICY(one["nodeTaintsPolicy"], `${at}.nodeTaintsPolicy`, found);
    SELECTOR(one["labelSelector"], `${at}.labelSelector`, found);
  }
};
