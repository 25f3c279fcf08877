/** Controllers of pods (kubernetes: apis/apps/validation, apis/core/validation for the oldest). */
import {
  EVERYTHING,
  type FieldError,
  fieldErrors,
  invalidValue,
  isDns1123Label,
  type LabelSelectorObject,
  notSupported,
  required,
  type Selector,
  selectorOfObject,
  semanticEqual,
} from "@quorate/kube-storage";
import { CLAIM_SPEC } from "./claims.ts";
import { TEMPLATE } from "./pod-spec.ts";
import {
  all,
  atLeast,
  each,
  fields,
  forbidden,
  isAbsent,
  listOf,
  named,
  needed,
  type ObjectFields,
  objectOf,
  oneOf,
  type Rule,
  SELECTOR,
  struct,
  textOf,
} from "./rules.ts";
import { AT_MOST_ALL, COUNT_OR_PERCENT, isZero } from "./texts.ts";

export const NOT_NEGATIVE: Rule = atLeast(0);

/** The selector of an object; undefined for one that is not valid. */
export function parsedSelector(selector: unknown): Selector | undefined {
  try {
    return selectorOfObject((selector ?? undefined) as LabelSelectorObject | undefined);
  } catch {
    return undefined;
  }
}

const NO_MATCH = "`selector` does not match template `labels`";

/** The selector takes the pods of the template. */
export function selectsTemplate(
  selector: Selector,
  template: unknown,
  field: string,
  found: FieldError[],
): void {
  const { labels } = objectOf(objectOf(template)["metadata"]);
  if (selector.matches(objectOf(labels) as Readonly<Record<string, string>>)) return;
  found.push(invalidValue(`${field}.metadata.labels`, labels ?? null, NO_MATCH));
}

/** What pods that a controller keeps running must have. */
function keepsRunning(template: unknown, kind: string, field: string, found: FieldError[]): void {
  const { restartPolicy = "", activeDeadlineSeconds } = objectOf(objectOf(template)["spec"]);
  if (restartPolicy !== "Always") {
    found.push(notSupported(`${field}.spec.restartPolicy`, restartPolicy, ["Always"]));
  }
  const text = `activeDeadlineSeconds in ${kind} is not Supported`;
  forbidden(text)(activeDeadlineSeconds, `${field}.spec.activeDeadlineSeconds`, found);
}

interface WorkloadTexts {
  /** As an error names it. */
  readonly kind: string;
  /** Of an empty selector. */
  readonly empty: string;
  /** Of a selector that cannot be read. */
  readonly unread: string;
}

/** Selector and template of a Deployment, ReplicaSet or StatefulSet. */
function selected({ kind, empty, unread }: WorkloadTexts): Rule {
  return (value, field, found) => {
    const spec = objectOf(value);
    const { selector } = spec;
    const at = `${field}.selector`;
    if (isAbsent(selector)) found.push(required(at));
    else {
      SELECTOR(selector, at, found);
      if (semanticEqual(withoutEmpty(selector), {})) {
        found.push(invalidValue(at, selector, `empty selector is invalid for ${empty}`));
      }
    }
    const parsed = parsedSelector(selector);
    if (parsed === undefined) {
      found.push(invalidValue(at, selector, unread));
      return;
    }
    if (!isAbsent(selector) && parsed !== EVERYTHING) {
      selectsTemplate(parsed, spec["template"], `${field}.template`, found);
    } else if (isAbsent(selector)) {
      // A selector that selects nothing is not an empty one.
      const { labels } = objectOf(objectOf(spec["template"])["metadata"]);
      found.push(invalidValue(`${field}.template.metadata.labels`, labels ?? null, NO_MATCH));
    }
    TEMPLATE(spec["template"], `${field}.template`, found);
    keepsRunning(spec["template"], kind, `${field}.template`, found);
  };
}

function withoutEmpty(selector: unknown): ObjectFields {
  const { matchLabels, matchExpressions } = objectOf(selector);
  const hasLabels = Object.keys(objectOf(matchLabels)).length > 0;
  return {
    ...(hasLabels ? { matchLabels } : {}),
    ...(listOf(matchExpressions).length > 0 ? { matchExpressions } : {}),
  };
}

const ROLLING_DEPLOYMENT: Rule = all(
  fields({ maxUnavailable: COUNT_OR_PERCENT, maxSurge: COUNT_OR_PERCENT }),
  (value, field, found) => {
    const { maxUnavailable, maxSurge } = objectOf(value);
    const at = `${field}.maxUnavailable`;
    if (isZero(maxUnavailable) && isZero(maxSurge)) {
      found.push(invalidValue(at, maxUnavailable, "may not be 0 when `maxSurge` is 0"));
    }
    AT_MOST_ALL(maxUnavailable, at, found);
  },
);

const DEPLOYMENT_STRATEGY: Rule = (value, field, found) => {
  const strategy = objectOf(value);
  const { type = "", rollingUpdate } = strategy;
  const at = `${field}.rollingUpdate`;
  if (type === "Recreate") {
    const text = "may not be specified when strategy `type` is 'Recreate'";
    forbidden(text)(rollingUpdate, at, found);
  } else if (type !== "RollingUpdate") {
    found.push(notSupported(field, shownStrategy(strategy), ["Recreate", "RollingUpdate"]));
  } else if (isAbsent(rollingUpdate)) {
    found.push(required(at, "this should be defaulted and never be nil"));
  } else ROLLING_DEPLOYMENT(rollingUpdate, at, found);
};

/** Go's internal type has no names for JSON. */
function shownStrategy({ type = "", rollingUpdate = null }: ObjectFields): ObjectFields {
  return { Type: type, RollingUpdate: rollingUpdate };
}

const DEPLOYMENT_TEXTS = {
  kind: "ReplicaSet",
  empty: "deployment",
  unread: "invalid label selector",
};

export const DEPLOYMENT: Rule = all(
  struct({ replicas: NOT_NEGATIVE }),
  selected(DEPLOYMENT_TEXTS),
  struct({
    strategy: DEPLOYMENT_STRATEGY,
    minReadySeconds: NOT_NEGATIVE,
    revisionHistoryLimit: NOT_NEGATIVE,
    progressDeadlineSeconds: NOT_NEGATIVE,
  }),
  (value, field, found) => {
    const { progressDeadlineSeconds: deadline, minReadySeconds = 0 } = objectOf(value);
    if (typeof deadline !== "number" || deadline > (minReadySeconds as number)) return;
    const at = `${field}.progressDeadlineSeconds`;
    found.push(invalidValue(at, deadline, "must be greater than minReadySeconds"));
  },
);

export const REPLICA_SET: Rule = all(
  struct({ replicas: NOT_NEGATIVE, minReadySeconds: NOT_NEGATIVE }),
  selected(DEPLOYMENT_TEXTS),
);

const ROLLING_STATEFUL: Rule = fields({
  partition: NOT_NEGATIVE,
  maxUnavailable: all(
    COUNT_OR_PERCENT,
    (value, field, found) => {
      if (!isAbsent(value) && isZero(value)) found.push(invalidValue(field, value, "cannot be 0"));
    },
    AT_MOST_ALL,
  ),
});

const STATEFUL_STRATEGY: Rule = (value, field, found) => {
  const { type = "", rollingUpdate } = objectOf(value);
  const at = `${field}.rollingUpdate`;
  if (type === "RollingUpdate") ROLLING_STATEFUL(rollingUpdate, at, found);
  else if (type === "") found.push(required(field));
  else if (type === "OnDelete") {
    if (isAbsent(rollingUpdate)) return;
    // Go's internal type has no names for JSON.
    const { partition = 0, maxUnavailable = null } = objectOf(rollingUpdate);
    const shown = { Partition: partition, MaxUnavailable: maxUnavailable };
    found.push(invalidValue(at, shown, "only allowed for updateStrategy 'RollingUpdate'"));
  } else {
    const text = "must be 'RollingUpdate' or 'OnDelete'";
    found.push(invalidValue(field, shownStrategy(objectOf(value)), text));
  }
};

const RETENTION = oneOf("Retain", "Delete");

/** The set's template: its claims are volumes, hostname and subdomain are the set's own. */
function withClaimVolumes(spec: ObjectFields): ObjectFields {
  const claims = listOf(spec["volumeClaimTemplates"]);
  const names = new Set(claims.map((claim) => textOf(objectOf(claim["metadata"])["name"])));
  const template = objectOf(spec["template"]);
  const { subdomain: _, hostname: __, ...pod } = objectOf(template["spec"]);
  const volumes = [
    ...[...names].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
    ...listOf(pod["volumes"]).filter(({ name }) => !names.has(textOf(name))),
  ];
  return { ...spec, template: { ...template, spec: { ...pod, volumes } } };
}

/** @param isNew of a set that was there before, what cannot change may be wrong */
function statefulSet(isNew: boolean): Rule {
  const pods = selected({ kind: "StatefulSet", empty: "statefulset", unread: "" });
  return all(
    struct({
      podManagementPolicy: needed((value, field, found) => {
        if (value === "OrderedReady" || value === "Parallel") return;
        found.push(invalidValue(field, value, "must be 'OrderedReady' or 'Parallel'"));
      }),
      updateStrategy: STATEFUL_STRATEGY,
      persistentVolumeClaimRetentionPolicy: fields({
        whenDeleted: RETENTION,
        whenScaled: RETENTION,
      }),
      ...(isNew ? { volumeClaimTemplates: each(struct({ spec: CLAIM_SPEC })) } : {}),
      replicas: NOT_NEGATIVE,
      minReadySeconds: NOT_NEGATIVE,
      ordinals: fields({ start: NOT_NEGATIVE }),
      ...(isNew ? { serviceName: named(isDns1123Label) } : {}),
    }),
    (value, field, found) => pods(withClaimVolumes(objectOf(value)), field, found),
  );
}

export const NEW_STATEFUL_SET: Rule = statefulSet(true);
export const OLD_STATEFUL_SET: Rule = statefulSet(false);

const STATEFUL_CHANGEABLE = [
  "replicas",
  "template",
  "updateStrategy",
  "minReadySeconds",
  "ordinals",
  "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy",
];

export function statefulSetUpdate(
  object: ObjectFields,
  old: ObjectFields,
  found: FieldError[],
): void {
  const fixed = (of: ObjectFields): ObjectFields => ({
    ...objectOf(of["spec"]),
    ...Object.fromEntries(STATEFUL_CHANGEABLE.map((name) => [name, undefined])),
  });
  if (semanticEqual(fixed(object), fixed(old))) return;
  const text =
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', " +
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and " +
    "'minReadySeconds' are forbidden";
  found.push(fieldErrors.fieldForbidden("spec", text));
}

const DAEMON_STRATEGY: Rule = (value, field, found) => {
  const { type = "", rollingUpdate } = objectOf(value);
  if (type === "OnDelete") return;
  const at = `${field}.rollingUpdate`;
  if (type !== "RollingUpdate") {
    const shown = shownStrategy(objectOf(value));
    found.push(notSupported(field, shown, ["RollingUpdate", "OnDelete"]));
  } else if (isAbsent(rollingUpdate)) found.push(required(at));
  else {
    const { maxUnavailable, maxSurge } = objectOf(rollingUpdate);
    for (const rule of [COUNT_OR_PERCENT, AT_MOST_ALL]) {
      rule(maxUnavailable, `${at}.maxUnavailable`, found);
      rule(maxSurge, `${at}.maxSurge`, found);
    }
    const [gone, more] = [!isZero(maxUnavailable), !isZero(maxSurge)];
    if (gone && more) {
      const text = "may not be set when maxUnavailable is non-zero";
      found.push(invalidValue(`${at}.maxSurge`, maxSurge, text));
    } else if (!gone && !more) {
      found.push(required(`${at}.maxUnavailable`, "cannot be 0 when maxSurge is 0"));
    }
  }
};

export const DAEMON_SET: Rule = (value, field, found) => {
  const spec = objectOf(value);
  const { selector, template } = spec;
  SELECTOR(selector, `${field}.selector`, found);
  const parsed = parsedSelector(selector);
  if (parsed !== undefined) selectsTemplate(parsed, template, `${field}.template`, found);
  if (!isAbsent(selector) && semanticEqual(withoutEmpty(selector), {})) {
    const text = "empty selector is invalid for daemonset";
    found.push(invalidValue(`${field}.selector`, selector, text));
  }
  TEMPLATE(template, `${field}.template`, found);
  keepsRunning(template, "DaemonSet", `${field}.template`, found);
  fields({
    minReadySeconds: NOT_NEGATIVE,
    updateStrategy: DAEMON_STRATEGY,
    revisionHistoryLimit: NOT_NEGATIVE,
  })(spec, field, found);
};

export const REPLICATION_CONTROLLER: Rule = (value, field, found) => {
  const spec = objectOf(value);
  const labels = objectOf(spec["selector"]) as Readonly<Record<string, string>>;
  fields({ minReadySeconds: NOT_NEGATIVE })(spec, field, found);
  const isEmpty = Object.keys(labels).length === 0;
  if (isEmpty) found.push(required(`${field}.selector`));
  fields({ replicas: NOT_NEGATIVE })(spec, field, found);
  const { template } = spec;
  if (isAbsent(template)) {
    found.push(required(`${field}.template`));
    return;
  }
  if (!isEmpty) {
    const given = objectOf(objectOf(objectOf(template)["metadata"])["labels"]);
    if (Object.entries(labels).some(([key, one]) => given[key] !== one)) {
      found.push(invalidValue(`${field}.template.metadata.labels`, given, NO_MATCH));
    }
  }
  TEMPLATE(template, `${field}.template`, found);
  keepsRunning(template, "ReplicationController", `${field}.template`, found);
};
