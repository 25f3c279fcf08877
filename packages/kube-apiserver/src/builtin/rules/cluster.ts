/** Budgets, autoscalers, quotas, limits, classes (kubernetes: apis/{policy,autoscaling,core}). */
import {
  compareQuantities,
  type FieldError,
  fieldErrors,
  invalidValue,
  isDns1123Label,
  isPathSegmentName,
  isQualifiedName,
  type KubeObject,
  parseApiVersion,
  quantityNumber,
  required,
} from "@quorate/kube-storage";
import {
  allowsOvercommit,
  amount,
  isAnyResource,
  isContainerResource,
  isQuotaResource,
  notNegative,
  type Quantities,
  quantitiesOf,
} from "./quantities.ts";
import {
  all,
  each,
  fields,
  forbidden,
  immutable,
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
import { AT_MOST_ALL, COUNT_OR_PERCENT } from "./texts.ts";

const AMOUNT = all(COUNT_OR_PERCENT, AT_MOST_ALL);

export const DISRUPTION_BUDGET: Rule = all(
  (value, field, found) => {
    const { minAvailable, maxUnavailable } = objectOf(value);
    if (isAbsent(minAvailable) || isAbsent(maxUnavailable)) return;
    // Kubernetes shows the whole spec, with Go's names.
    const shown = { MinAvailable: minAvailable, MaxUnavailable: maxUnavailable };
    const text = "minAvailable and maxUnavailable cannot be both set";
    found.push(invalidValue(field, shown, text));
  },
  struct({
    minAvailable: AMOUNT,
    maxUnavailable: AMOUNT,
    selector: SELECTOR,
    unhealthyPodEvictionPolicy: oneOf("AlwaysAllow", "IfHealthyBudget"),
  }),
);

/** @param needsGroup whether "v1" is not enough */
function scaleTarget(needsGroup: boolean): Rule {
  return struct({
    kind: needed(texts(isPathSegmentName)),
    name: needed(texts(isPathSegmentName)),
    apiVersion(value, field, found) {
      const text = textOf(value);
      const group = parseApiVersion(text)?.group;
      if (text !== "" && group === undefined) {
        found.push(invalidValue(field, text, `unexpected GroupVersion string: ${text}`));
      } else if (needsGroup && (group ?? "") === "") {
        found.push(invalidValue(field, text, "apiVersion must specify API group"));
      }
    },
  });
}

const IS_POSITIVE: Rule = (value, field, found) => {
  if (typeof value === "string" && quantityNumber(value) <= 0) {
    found.push(invalidValue(field, value, "must be positive"));
  }
};

const TARGET_TYPES = ["Utilization", "Value", "AverageValue"];

const TARGET: Rule = struct({
  type(value, field, found) {
    const type = textOf(value);
    if (type === "") found.push(required(field, "must specify a metric target type"));
    if (TARGET_TYPES.includes(type)) return;
    found.push(invalidValue(field, type, "must be either Utilization, Value, or AverageValue"));
  },
  value: IS_POSITIVE,
  averageValue: IS_POSITIVE,
  averageUtilization: number((value) => value >= 1, "must be greater than 0"),
});

const METRIC: Rule = struct({
  name: needed(texts(isPathSegmentName), "must specify a metric name"),
});

/** One of two amounts of a target. @param isExclusive whether both are one too many */
function either(first: string, second: string, none: string, both: string | undefined): Rule {
  return (value, field, found) => {
    const target = objectOf(objectOf(value)["target"]);
    const [a, b] = [!isAbsent(target[first]), !isAbsent(target[second])];
    if (!a && !b) found.push(required(`${field}.target.${second}`, none));
    if (a && b && both !== undefined) {
      found.push(fieldErrors.fieldForbidden(`${field}.target.${first}`, both));
    }
  };
}

const RAW_OR_RATIO = either(
  "averageValue",
  "averageUtilization",
  "must set either a target raw value or a target utilization",
  "may not set both a target raw value and a target utilization",
);

const METRICS: Readonly<Record<string, Rule>> = {
  object: all(
    struct({ describedObject: scaleTarget(false), metric: METRIC, target: TARGET }),
    either("value", "averageValue", "must set either a target value or averageValue", undefined),
  ),
  external: all(
    struct({ metric: METRIC, target: TARGET }),
    either(
      "value",
      "averageValue",
      "must set either a target value for metric or a per-pod target",
      "may not set both a target value for metric and a per-pod target",
    ),
  ),
  pods: all(struct({ metric: METRIC, target: TARGET }), (value, field, found) => {
    const { averageValue } = objectOf(objectOf(value)["target"]);
    const text = "must specify a positive target averageValue";
    if (isAbsent(averageValue)) found.push(required(`${field}.target.averageValue`, text));
  }),
  resource: all(
    struct({ name: needed(undefined, "must specify a resource name"), target: TARGET }),
    RAW_OR_RATIO,
  ),
  containerResource: all(
    struct({
      name: needed(texts(isContainerResource), "must specify a resource name"),
      container: needed(texts(isDns1123Label), "must specify a container"),
      target: TARGET,
    }),
    RAW_OR_RATIO,
  ),
};

const METRIC_FIELDS: Readonly<Record<string, string>> = {
  ContainerResource: "containerResource",
  External: "external",
  Object: "object",
  Pods: "pods",
  Resource: "resource",
};

const METRIC_SPEC: Rule = (value, field, found) => {
  const metric = objectOf(value);
  const type = textOf(metric["type"]);
  const at = `${field}.type`;
  if (type === "") found.push(required(at, "must specify a metric source type"));
  oneOf(...Object.keys(METRIC_FIELDS))(type, at, found);
  const present = Object.keys(METRICS).filter((name) => !isAbsent(metric[name]));
  const [first] = present;
  if (first !== undefined) METRICS[first]?.(metric[first], `${field}.${first}`, found);
  const expected = METRIC_FIELDS[type];
  if (expected !== undefined && isAbsent(metric[expected])) {
    const text = "must populate information for the given metric source";
    found.push(required(`${field}.${expected}`, text));
  }
  if (present.length === 1) return;
  for (const name of present.filter((one) => one !== expected)) {
    const text = "must populate the given metric source only";
    found.push(fieldErrors.fieldForbidden(`${field}.${name}`, text));
  }
};

const atMost = (max: number): Rule =>
  number((value) => value <= max, `must be less than or equal to ${max}`);

const SCALING_POLICY: Rule = struct({
  type: oneOf("Percent", "Pods"),
  value: POSITIVE,
  periodSeconds: all(POSITIVE, atMost(1800)),
});

const SCALING_RULES: Rule = fields({
  stabilizationWindowSeconds: all(
    number((value) => value >= 0, "must be greater than or equal to zero"),
    atMost(3600),
  ),
  selectPolicy: oneOf("Disabled", "Max", "Min"),
  policies: needed(each(SCALING_POLICY), "must specify at least one Policy"),
  tolerance: notNegative,
});

export const AUTOSCALER: Rule = (value, field, found) => {
  const spec = objectOf(value);
  const max = numberOf(spec["maxReplicas"]);
  const min = spec["minReplicas"];
  const metrics = listOf(spec["metrics"]);
  number((one) => one >= 1, "must be greater than or equal to 1")(
    min,
    `${field}.minReplicas`,
    found,
  );
  const at = `${field}.maxReplicas`;
  if (max === 0) found.push(required(at, "must be set and greater than 0"));
  if (max < 0) found.push(invalidValue(at, max, "must be greater than or equal to 1"));
  if (typeof min === "number" && max < min) {
    found.push(invalidValue(at, max, "must be greater than or equal to `minReplicas`"));
  }
  scaleTarget(true)(spec["scaleTargetRef"], `${field}.scaleTargetRef`, found);
  each(METRIC_SPEC)(metrics, `${field}.metrics`, found);
  if (min === 0 && !metrics.some(({ type }) => type === "Object" || type === "External")) {
    const text =
      "must specify at least one Object or External metric to support scaling to zero replicas";
    found.push(fieldErrors.fieldForbidden(`${field}.metrics`, text));
  }
  fields({ scaleUp: SCALING_RULES, scaleDown: SCALING_RULES })(
    spec["behavior"],
    `${field}.behavior`,
    found,
  );
};

const SCOPES = [
  "Terminating",
  "NotTerminating",
  "BestEffort",
  "NotBestEffort",
  "PriorityClass",
  "CrossNamespacePodAffinity",
  "VolumeAttributesClass",
];
const PAIRS = [
  ["BestEffort", "NotBestEffort"],
  ["Terminating", "NotTerminating"],
];
const COMPUTE = /^(?:(?:requests|limits)\.)?(?:cpu|memory|ephemeral-storage)$/;

/** Whether the resource is counted for what the scope selects. */
function isCountedIn(scope: string, resource: string): boolean {
  if (scope === "BestEffort") return resource === "pods";
  if (scope === "VolumeAttributesClass") {
    return resource === "persistentvolumeclaims" || resource === "requests.storage";
  }
  if (!SCOPES.includes(scope)) return true;
  return resource === "pods" || COMPUTE.test(resource);
}

function scopeErrors(
  scopes: readonly string[],
  spec: ObjectFields,
  each: (scope: string, text: string) => void,
): void {
  const hard = Object.keys(objectOf(spec["hard"])).sort();
  for (const scope of scopes) {
    if (!SCOPES.includes(scope)) each(scope, "unsupported scope");
    for (const name of hard) {
      if (isQuotaResource(name).length > 0 || name.includes("/")) continue;
      if (!isCountedIn(scope, name)) each(scope, "unsupported scope applied to resource");
    }
  }
}

const EXISTS_ONLY =
  "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, " +
  "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, " +
  "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

function scopeSelector(spec: ObjectFields, field: string, found: FieldError[]): void {
  const { scopeSelector: selector } = spec;
  if (isAbsent(selector)) return;
  const at = `${field}.scopeSelector.matchExpressions`;
  for (const requirement of listOf(objectOf(selector)["matchExpressions"])) {
    const { scopeName = "", operator = "" } = requirement;
    const scope = textOf(scopeName);
    const values = listOf<string>(requirement["values"]);
    scopeErrors([scope], spec, (_, text) => {
      const isKnown = SCOPES.includes(scope);
      found.push(invalidValue(isKnown ? at : `${at}.scopeName`, isKnown ? selector : scope, text));
    });
    const isPlain = SCOPES.includes(scope) && !/Class$/.test(scope);
    if (isPlain && operator !== "Exists") {
      found.push(invalidValue(`${at}.operator`, operator, EXISTS_ONLY));
    }
    if (operator === "In" || operator === "NotIn") {
      const text =
        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
      if (values.length === 0) found.push(required(`${at}.values`, text));
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      const text =
        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
      if (values.length > 0) found.push(invalidValue(`${at}.values`, values, text));
    } else {
      found.push(invalidValue(`${at}.operator`, operator, "not a valid selector operator"));
    }
  }
}

export const QUOTA: Rule = (value, field, found) => {
  const spec = objectOf(value);
  for (const [name, quantity] of Object.entries(objectOf(spec["hard"]))) {
    const at = `${field}.hard[${name}]`;
    texts(isQuotaResource)(name, at, found);
    amount(name, textOf(quantity), at, found);
  }
  const scopes = listOf<string>(spec["scopes"]);
  const at = `${field}.scopes`;
  scopeErrors(scopes, spec, (_, text) => found.push(invalidValue(at, scopes, text)));
  for (const pair of PAIRS) {
    if (pair.every((one) => scopes.includes(one))) {
      found.push(invalidValue(at, scopes, "conflicting scopes"));
    }
  }
  scopeSelector(spec, field, found);
};

export function quotaUpdate(quota: ObjectFields, old: ObjectFields, found: FieldError[]): void {
  const scopesOf = (of: ObjectFields): readonly string[] =>
    [...new Set(listOf<string>(objectOf(of["spec"])["scopes"]))].sort();
  const { scopes } = objectOf(quota["spec"]);
  const [now, had] = [scopesOf(quota), scopesOf(old)];
  const same = now.length === had.length && now.every((one, i) => one === had[i]);
  if (!same) immutable(scopes, undefined, "spec.scopes", found);
}

type Amounts = readonly [name: string, values: Quantities];

function limitErrors(limit: ObjectFields, field: string, found: FieldError[]): void {
  const type = textOf(limit["type"]);
  const isPod = type === "Pod";
  const isName = isPod || type === "Container" ? isContainerResource : isAnyResource;
  const names = [
    "max",
    "min",
    ...(isPod ? [] : ["default", "defaultRequest"]),
    "maxLimitRequestRatio",
  ];
  const all = names.map((name): Amounts => [name, quantitiesOf(limit, name)]);
  if (isPod) {
    const text = "may not be specified when `type` is 'Pod'";
    for (const name of ["default", "defaultRequest"]) {
      const isEmpty = Object.keys(quantitiesOf(limit, name)).length === 0;
      if (!isEmpty) forbidden(text)(limit[name], `${field}.${name}`, found);
    }
  }
  for (const [name, values] of all) {
    for (const key of Object.keys(values)) texts(isName)(key, `${field}.${name}[${key}]`, found);
  }
  const storage = all.some(([name, { storage: one }]) => /^m..$/.test(name) && one !== undefined);
  if (type === "PersistentVolumeClaim" && !storage) {
    const text = "either minimum or maximum storage value is required, but neither was provided";
    found.push(required(`${field}.limits`, text));
  }
  const byName = Object.fromEntries(all);
  for (const key of new Set(all.flatMap(([, values]) => Object.keys(values)))) {
    orderErrors(key, byName, field, found);
  }
}

/** Pairs of amounts of which the first must not be more, what an error names and shows, texts. */
const ORDERS = [
  ["min", "max", "min", "min", "min value", "max value"],
  [
    "min",
    "defaultRequest",
    "defaultRequest",
    "defaultRequest",
    "min value",
    "default request value",
  ],
  [
    "defaultRequest",
    "max",
    "defaultRequest",
    "defaultRequest",
    "default request value",
    "max value",
  ],
  [
    "defaultRequest",
    "default",
    "defaultRequest",
    "defaultRequest",
    "default request value",
    "default limit value",
  ],
  ["min", "default", "default", "min", "min value", "default value"],
  ["default", "max", "default", "max", "default value", "max value"],
] as const;

function orderErrors(
  key: string,
  amounts: Readonly<Record<string, Quantities>>,
  field: string,
  found: FieldError[],
): void {
  const of = (name: string): string | undefined => amounts[name]?.[key];
  for (const [less, more, place, shown, lessText, moreText] of ORDERS) {
    const [a, b] = [of(less), of(more)];
    if (a === undefined || b === undefined || compareQuantities(a, b) <= 0) continue;
    const text = `${lessText} ${a} is greater than ${moreText} ${b}`;
    found.push(invalidValue(`${field}.${place}[${key}]`, of(shown), text));
  }
  const ratio = of("maxLimitRequestRatio");
  const at = `${field}.maxLimitRequestRatio[${key}]`;
  if (ratio !== undefined && quantityNumber(ratio) < 1) {
    found.push(invalidValue(at, ratio, `ratio ${ratio} is less than 1`));
  }
  const [min, max] = [of("min"), of("max")];
  if (ratio !== undefined && min !== undefined && max !== undefined) {
    const most = quantityNumber(max) / quantityNumber(min);
    if (quantityNumber(ratio) > most) {
      const text = `ratio ${ratio} is greater than max/min = ${most.toFixed(6)}`;
      found.push(invalidValue(at, ratio, text));
    }
  }
  const [given, asked] = [of("default"), of("defaultRequest")];
  if (allowsOvercommit(key) || given === undefined || asked === undefined) return;
  if (compareQuantities(given, asked) !== 0) {
    const text = `default value ${given} must equal to defaultRequest value ${asked} in ${key}`;
    found.push(invalidValue(`${field}.defaultRequest[${key}]`, asked, text));
  }
}

const LIMIT_TYPES = ["Pod", "Container", "PersistentVolumeClaim"];

export const LIMIT_RANGE: Rule = struct({
  limits: each((value, field, found) => {
    const type = textOf(objectOf(value)["type"]);
    const wrong = isQualifiedName(type);
    texts(isQualifiedName)(type, `${field}.type`, found);
    if (wrong.length === 0 && !type.includes("/") && !LIMIT_TYPES.includes(type)) {
      const text = "must be a standard limit type or fully qualified";
      found.push(invalidValue(`${field}.type`, type, text));
    }
    limitErrors(objectOf(value), field, found);
  }, "type"),
});

const HIGHEST_PRIORITY = 1_000_000_000;
const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  "system-node-critical": 2_000_001_000,
  "system-cluster-critical": 2_000_000_000,
};

export function priorityClassErrors(object: KubeObject): FieldError[] {
  const found: FieldError[] = [];
  const { name = "" } = object.metadata;
  const value = numberOf(object["value"]);
  if (name.startsWith("system-")) {
    if (SYSTEM_PRIORITIES[name] !== value || object["globalDefault"] === true) {
      const why =
        SYSTEM_PRIORITIES[name] === undefined
          ? `${name} is not a known system priority class`
          : `value of ${name} PriorityClass must be ${SYSTEM_PRIORITIES[name]}`;
      const reserved =
        "priority class names with 'system-' prefix are reserved for system use only";
      const text = `${reserved}. error: ${why}`;
      found.push(fieldErrors.fieldForbidden("metadata.name", text));
    }
  } else if (value > HIGHEST_PRIORITY) {
    const text = `maximum allowed value of a user defined priority is ${HIGHEST_PRIORITY}`;
    found.push(fieldErrors.fieldForbidden("value", text));
  }
  oneOf("PreemptLowerPriority", "Never")(object["preemptionPolicy"], "preemptionPolicy", found);
  return found;
}

export function changedPriorityClassErrors(object: ObjectFields, old: ObjectFields): FieldError[] {
  const found: FieldError[] = [];
  if (numberOf(object["value"]) !== numberOf(old["value"])) {
    found.push(fieldErrors.fieldForbidden("value", "may not be changed in an update."));
  }
  immutable(object["preemptionPolicy"], old["preemptionPolicy"], "preemptionPolicy", found);
  return found;
}

const MAX_PARAMETERS = 512;
const MAX_PARAMETER_CHARS = 256 * 1024;

export const STORAGE_CLASS: Rule = (value, _field, found) => {
  const object = objectOf(value);
  const provisioner = textOf(object["provisioner"]).toLowerCase();
  needed(texts(isQualifiedName))(provisioner, "provisioner", found);
  const parameters = Object.entries(objectOf(object["parameters"]));
  if (parameters.length > MAX_PARAMETERS) {
    found.push(fieldErrors.tooLong("parameters", MAX_PARAMETERS));
  } else {
    let size = 0;
    for (const [key, text] of parameters) {
      if (key === "") found.push(invalidValue("parameters", key, "field can not be empty."));
      size += key.length + textOf(text).length;
    }
    if (size > MAX_PARAMETER_CHARS) {
      found.push(fieldErrors.tooLong("parameters", MAX_PARAMETER_CHARS));
    }
  }
  oneOf("Delete", "Retain")(object["reclaimPolicy"], "reclaimPolicy", found);
  const modes = oneOf("Immediate", "WaitForFirstConsumer");
  needed(modes)(object["volumeBindingMode"], "volumeBindingMode", found);
  TOPOLOGIES(object["allowedTopologies"], "allowedTopologies", found);
};

const TOPOLOGIES: Rule = each(
  struct({
    matchLabelExpressions: each(
      struct({
        key: texts(isQualifiedName),
        values: needed((value, field, found) => {
          const seen = new Set<string>();
          for (const [index, one] of listOf<string>(value).entries()) {
            if (seen.has(one)) found.push(fieldErrors.duplicate(`${field}[${index}]`, one));
            seen.add(one);
          }
        }),
      }),
      "key",
    ),
  }),
);

const STORAGE_FIXED = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"];

export function changedStorageClassErrors(object: ObjectFields, old: ObjectFields): FieldError[] {
  const found: FieldError[] = [];
  for (const name of STORAGE_FIXED) immutable(object[name], old[name], name, found);
  return found;
}
