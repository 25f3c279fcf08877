/** Jobs and CronJobs (kubernetes: apis/batch/validation, registry/batch/job). */
import {
  type FieldError,
  fieldErrors,
  invalidValue,
  isDns1123Label,
  isQualifiedName,
  type KubeObject,
  notSupported,
  required,
  semanticEqual,
} from "@quorate/kube-storage";
import { cronProblem, isKnownZone } from "./cron.ts";
import { TEMPLATE } from "./pod-spec.ts";
import {
  fields,
  immutable,
  isAbsent,
  listOf,
  needed,
  numberOf,
  type ObjectFields,
  objectOf,
  oneOf,
  type Rule,
  SELECTOR,
  textOf,
  texts,
} from "./rules.ts";
import { DOMAIN_PATH } from "./texts.ts";
import { NOT_NEGATIVE, parsedSelector, selectsTemplate } from "./workloads.ts";

const LEGACY_UID = "controller-uid";
const LEGACY_NAME = "job-name";
const UID = "batch.kubernetes.io/controller-uid";
const NAME = "batch.kubernetes.io/job-name";

/** The job with the selector of its own pods, unless it says that it has one. */
export function withGeneratedSelector(job: KubeObject): KubeObject {
  const spec = objectOf(job["spec"]);
  if (spec["manualSelector"] === true) return job;
  // A job without a name is refused later.
  const { uid = "", name = "" } = job.metadata;
  const template = objectOf(spec["template"]);
  const metadata = objectOf(template["metadata"]);
  const labels = {
    [LEGACY_NAME]: name,
    [NAME]: name,
    [LEGACY_UID]: uid,
    [UID]: uid,
    ...objectOf(metadata["labels"]),
  };
  const selector = objectOf(spec["selector"]);
  const matchLabels = { [UID]: uid, ...objectOf(selector["matchLabels"]) };
  return {
    ...job,
    spec: {
      ...spec,
      selector: { ...selector, matchLabels: sorted(matchLabels) },
      template: { ...template, metadata: { ...metadata, labels: sorted(labels) } },
    },
  };
}

/** As Go writes maps. */
function sorted(map: ObjectFields): ObjectFields {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function generatedSelectorErrors(job: KubeObject, found: FieldError[]): void {
  const spec = objectOf(job["spec"]);
  if (spec["manualSelector"] === true || isAbsent(spec["selector"])) return;
  const { uid = "", name = "" } = job.metadata;
  const { labels } = objectOf(objectOf(spec["template"])["metadata"]);
  const expected = { [LEGACY_UID]: uid, [LEGACY_NAME]: name, [UID]: uid, [NAME]: name };
  const given = objectOf(labels);
  for (const [key, value] of Object.entries(expected)) {
    const at = `spec.template.metadata.labels[${key}]`;
    if (given[key] === value) continue;
    const shown = labels ?? null;
    found.push(
      isAbsent(given[key])
        ? required(at, `must be '${value}'`)
        : invalidValue(at, shown, `must be '${value}'`),
    );
  }
  const selector = parsedSelector(spec["selector"]);
  if (selector !== undefined && !selector.matches(expected)) {
    found.push(invalidValue("spec.selector", spec["selector"], "`selector` not auto-generated"));
  }
}

const MAX_MANAGER_CHARS = 63;
const MAX_INDEXED_PODS = 100_000;
const MAX_FAILED_INDEXES = 100_000;
const MAX_RULES = 20;
const MAX_EXIT_CODES = 255;
const MAX_INDEXES_CHARS = 64 * 1024;

const ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"];
const listed = (values: readonly string[]): string =>
  `valid values: [${values.map((one) => JSON.stringify(one)).join(" ")}]`;

function exitCodes(names: ReadonlySet<unknown>): Rule {
  return (value, field, found) => {
    const { operator, containerName } = objectOf(value);
    const values = listOf<number>(objectOf(value)["values"]);
    const operators = ["In", "NotIn"];
    needed(oneOf(...operators), listed(operators))(operator, `${field}.operator`, found);
    if (!isAbsent(containerName) && !names.has(containerName)) {
      const text = "must be one of the container or initContainer names in the pod template";
      found.push(invalidValue(`${field}.containerName`, containerName, text));
    }
    const at = `${field}.values`;
    if (values.length === 0) found.push(invalidValue(at, values, "at least one value is required"));
    if (values.length > MAX_EXIT_CODES) {
      found.push(fieldErrors.tooMany(at, values.length, MAX_EXIT_CODES));
    }
    const seen = new Set<number>();
    for (const [index, code] of values.slice(0, MAX_EXIT_CODES).entries()) {
      if (operator === "In" && code === 0) {
        found.push(invalidValue(`${at}[${index}]`, code, "must not be 0 for the In operator"));
      }
      if (seen.has(code)) found.push(fieldErrors.duplicate(`${at}[${index}]`, code));
      seen.add(code);
    }
    if (values.some((code, index) => index > 0 && (values[index - 1] ?? 0) > code)) {
      found.push(invalidValue(at, values, "must be ordered"));
    }
  };
}

const STATUSES = ["False", "True", "Unknown"];

const POD_CONDITIONS: Rule = (value, field, found) => {
  const patterns = listOf(value);
  if (patterns.length > MAX_RULES) {
    found.push(fieldErrors.tooMany(field, patterns.length, MAX_RULES));
  }
  for (const [index, { type, status }] of patterns.slice(0, MAX_RULES).entries()) {
    const at = `${field}[${index}]`;
    texts(isQualifiedName)(type, `${at}.type`, found);
    needed(oneOf(...STATUSES), listed(STATUSES))(status, `${at}.status`, found);
  }
};

/** An error that shows no value. */
function unshown(field: string, text: string): FieldError {
  return { type: "FieldValueInvalid", field, message: `Invalid value: ${text}` };
}

function failurePolicy(spec: ObjectFields): Rule {
  const template = objectOf(objectOf(spec["template"])["spec"]);
  const names = new Set(
    ["containers", "initContainers"].flatMap((list) =>
      listOf(template[list]).map(({ name }) => name),
    ),
  );
  const codes = exitCodes(names);
  return (value, field, found) => {
    if (isAbsent(value)) return;
    const rules = listOf(objectOf(value)["rules"]);
    if (rules.length > MAX_RULES) {
      found.push(fieldErrors.tooMany(`${field}.rules`, rules.length, MAX_RULES));
    }
    for (const [index, rule] of rules.slice(0, MAX_RULES).entries()) {
      const at = `${field}.rules[${index}]`;
      const { action = "", onExitCodes, onPodConditions } = rule;
      needed(oneOf(...ACTIONS), listed(ACTIONS))(action, `${at}.action`, found);
      if (action === "FailIndex" && isAbsent(spec["backoffLimitPerIndex"])) {
        const text = "requires the backoffLimitPerIndex to be set";
        found.push(invalidValue(`${at}.action`, action, text));
      }
      const hasCodes = !isAbsent(onExitCodes);
      const hasConditions = listOf(onPodConditions).length > 0;
      if (hasCodes) codes(onExitCodes, `${at}.onExitCodes`, found);
      POD_CONDITIONS(onPodConditions, `${at}.onPodConditions`, found);
      const both = "OnExitCodes and OnPodConditions is";
      if (hasCodes && hasConditions) {
        found.push(unshown(at, `specifying both ${both} not supported`));
      } else if (!hasCodes && !hasConditions) {
        found.push(unshown(at, `specifying one of ${both} required`));
      }
    }
  };
}

/** The number of indexes of "1,3-5", or what is wrong with them. */
function indexCount(text: string, completions: number): number | string {
  let last = -1;
  let total = 0;
  for (const part of text === "" ? [] : text.split(",")) {
    const ends = part.split("-");
    const quoted = JSON.stringify(part);
    if (ends.length > 2) {
      return (
        `the fragment ${quoted} violates the requirement that an index interval can have at most ` +
        "two parts separated by '-'"
      );
    }
    for (const end of ends) {
      if (!/^[+-]?\d+$/.test(end)) {
        return `cannot convert string to integer for index: ${JSON.stringify(end)}`;
      }
      if (Number(end) >= completions) return `too large index: ${JSON.stringify(end)}`;
    }
    const [from = 0, to = from] = ends.map(Number);
    const order = (before: number): string =>
      `non-increasing order, previous: ${before}, current: `;
    if (ends.length === 2 && from >= to) return `${order(from)}${to}`;
    if (last >= from && total > 0) return `${order(last)}${from}`;
    total += to - from + 1;
    last = to;
  }
  return total;
}

function successPolicy(spec: ObjectFields): Rule {
  const completions = numberOf(spec["completions"]);
  return (value, field, found) => {
    if (isAbsent(value)) return;
    if (spec["completionMode"] !== "Indexed") {
      const shown = { Rules: listOf(objectOf(value)["rules"]) };
      found.push(invalidValue(field, shown, "requires indexed completion mode"));
      return;
    }
    const rules = listOf(objectOf(value)["rules"]);
    if (rules.length === 0) {
      const text = "at least one rules must be specified when the successPolicy is specified";
      found.push(required(`${field}.rules`, text));
    }
    if (rules.length > MAX_RULES) {
      found.push(fieldErrors.tooMany(`${field}.rules`, rules.length, MAX_RULES));
    }
    for (const [index, rule] of rules.slice(0, MAX_RULES).entries()) {
      const at = `${field}.rules[${index}]`;
      const { succeededCount: count, succeededIndexes: indexes } = rule;
      if (isAbsent(count) && isAbsent(indexes)) {
        const text = "at least one of succeededCount or succeededIndexes must be specified";
        found.push(required(at, text));
      }
      let total = 0;
      if (typeof indexes === "string") {
        if (indexes.length > MAX_INDEXES_CHARS) {
          found.push(fieldErrors.tooLong(`${at}.succeededIndexes`, MAX_INDEXES_CHARS));
        }
        const read = indexCount(indexes, completions);
        if (typeof read === "number") total = read;
        else {
          const text = `error parsing succeededIndexes: ${read}`;
          found.push(invalidValue(`${at}.succeededIndexes`, indexes, text));
        }
      }
      if (typeof count !== "number") continue;
      const to = `${at}.succeededCount`;
      NOT_NEGATIVE(count, to, found);
      const most = (limit: number, what: string): number =>
        found.push(
          invalidValue(to, count, `must be less than or equal to ${limit} (the number of ${what})`),
        );
      if (count > completions) most(completions, "specified completions");
      if (!isAbsent(indexes) && count > total) {
        most(total, "indexes in the specified succeededIndexes field");
      }
    }
  };
}

const COUNTS = [
  "parallelism",
  "completions",
  "activeDeadlineSeconds",
  "backoffLimit",
  "ttlSecondsAfterFinished",
  "backoffLimitPerIndex",
  "maxFailedIndexes",
];

function indexed(spec: ObjectFields, field: string, found: FieldError[]): void {
  const { completionMode, completions, parallelism, maxFailedIndexes: failed } = spec;
  oneOf("NonIndexed", "Indexed")(completionMode, `${field}.completionMode`, found);
  const most = (name: string, value: unknown, what: string): number =>
    found.push(invalidValue(`${field}.${name}`, value, `must be less than or equal to ${what}`));
  if (completionMode === "Indexed") {
    if (isAbsent(completions)) {
      found.push(required(`${field}.completions`, "when completion mode is Indexed"));
    }
    if (numberOf(parallelism) > MAX_INDEXED_PODS) {
      most("parallelism", parallelism, `${MAX_INDEXED_PODS} when completion mode is Indexed`);
    }
    if (!isAbsent(completions) && numberOf(failed) > numberOf(completions)) {
      most("maxFailedIndexes", failed, "completions");
    }
    if (numberOf(failed) > MAX_FAILED_INDEXES) {
      most("maxFailedIndexes", failed, String(MAX_FAILED_INDEXES));
    }
  } else if (isAbsent(completionMode) || completionMode === "NonIndexed") {
    for (const name of ["backoffLimitPerIndex", "maxFailedIndexes"]) {
      if (isAbsent(spec[name])) continue;
      found.push(invalidValue(`${field}.${name}`, spec[name], "requires indexed completion mode"));
    }
  }
}

/** What holds for jobs and for the jobs of a CronJob. */
function jobSpec(value: unknown, field: string, found: FieldError[]): void {
  const spec = objectOf(value);
  fields(Object.fromEntries(COUNTS.map((name) => [name, NOT_NEGATIVE])))(spec, field, found);
  if (!isAbsent(spec["maxFailedIndexes"]) && isAbsent(spec["backoffLimitPerIndex"])) {
    const text = "when maxFailedIndexes is specified";
    found.push(required(`${field}.backoffLimitPerIndex`, text));
  }
  const { managedBy } = spec;
  if (!isAbsent(managedBy)) {
    DOMAIN_PATH(managedBy, `${field}.managedBy`, found);
    if (textOf(managedBy).length > MAX_MANAGER_CHARS) {
      found.push(fieldErrors.tooLong(`${field}.managedBy`, MAX_MANAGER_CHARS));
    }
  }
  indexed(spec, field, found);
  const { podFailurePolicy, podReplacementPolicy, template } = spec;
  failurePolicy(spec)(podFailurePolicy, `${field}.podFailurePolicy`, found);
  successPolicy(spec)(spec["successPolicy"], `${field}.successPolicy`, found);
  const replacements = isAbsent(podFailurePolicy) ? ["Failed", "TerminatingOrFailed"] : ["Failed"];
  oneOf(...replacements)(podReplacementPolicy, `${field}.podReplacementPolicy`, found);
  TEMPLATE(template, `${field}.template`, found);
  const at = `${field}.template.spec.restartPolicy`;
  const { restartPolicy = "" } = objectOf(objectOf(template)["spec"]);
  const good = ["OnFailure", "Never"];
  if (restartPolicy === "Always" || restartPolicy === "") {
    found.push(required(at, 'valid values: "OnFailure", "Never"'));
  } else if (!good.includes(textOf(restartPolicy))) {
    found.push(notSupported(at, restartPolicy, good));
  } else if (!isAbsent(podFailurePolicy) && restartPolicy !== "Never") {
    const text = 'only "Never" is supported when podFailurePolicy is specified';
    found.push(invalidValue(at, restartPolicy, text));
  }
}

const JOB_SPEC: Rule = (value, field, found) => {
  const { selector, template } = objectOf(value);
  jobSpec(value, field, found);
  if (isAbsent(selector)) found.push(required(`${field}.selector`));
  SELECTOR(selector, `${field}.selector`, found);
  const parsed = parsedSelector(selector);
  if (parsed !== undefined) selectsTemplate(parsed, template, `${field}.template`, found);
};

export function jobErrors(job: KubeObject): FieldError[] {
  const found: FieldError[] = [];
  const { completionMode, completions } = objectOf(job["spec"]);
  generatedSelectorErrors(job, found);
  JOB_SPEC(job["spec"], "spec", found);
  if (completionMode === "Indexed" && numberOf(completions) > 0) {
    const { name = "" } = job.metadata;
    const host = `${name}-${numberOf(completions) - 1}`;
    if (isDns1123Label(host).length > 0) {
      const text = `will not able to create pod with invalid DNS label: ${host}`;
      found.push(invalidValue("metadata.name", name, text));
    }
  }
  return found;
}

const FIXED = [
  "completionMode",
  "podFailurePolicy",
  "backoffLimitPerIndex",
  "managedBy",
  "successPolicy",
];

export function changedJobErrors(job: KubeObject, old: KubeObject): FieldError[] {
  const found: FieldError[] = [];
  const [spec, before] = [objectOf(job["spec"]), objectOf(old["spec"])];
  generatedSelectorErrors(job, found);
  JOB_SPEC(spec, "spec", found);
  const { completions } = spec;
  if (spec["completionMode"] !== "Indexed") {
    immutable(completions, before["completions"], "spec.completions", found);
  } else if (
    completions !== before["completions"] &&
    !isAbsent(completions) &&
    completions !== spec["parallelism"]
  ) {
    const text = "can only be modified in tandem with spec.parallelism";
    found.push(invalidValue("spec.completions", completions, text));
  }
  immutable(spec["selector"], before["selector"], "spec.selector", found);
  templateChange(job, old, found);
  for (const name of FIXED) immutable(spec[name], before[name], `spec.${name}`, found);
  return found;
}

/** A suspended job's pods may still be moved and given other resources. */
function templateChange(job: KubeObject, old: KubeObject, found: FieldError[]): void {
  const [spec, before] = [objectOf(job["spec"]), objectOf(old["spec"])];
  const started = !isAbsent(objectOf(old["status"])["startTime"]);
  const isOpen = before["suspend"] === true && !started;
  const comparable = (template: unknown): unknown => {
    if (!isOpen) return template;
    const pod = objectOf(objectOf(template)["spec"]);
    const { affinity, nodeSelector: _, tolerations: __, schedulingGates: ___, ...rest } = pod;
    const { nodeAffinity: ____, ...others } = objectOf(affinity);
    const open = (list: unknown): unknown => listOf(list).map(({ resources: _r, ...one }) => one);
    return {
      ...rest,
      affinity: others,
      containers: open(pod["containers"]),
      initContainers: open(pod["initContainers"]),
    };
  };
  if (semanticEqual(comparable(spec["template"]), comparable(before["template"]))) return;
  // Kubernetes shows the whole template, with Go's names.
  found.push(invalidValue("spec.template", { Spec: {} }, "field is immutable"));
}

const MAX_CRON_NAME_CHARS = 52;

function cronSpec(value: unknown, old: unknown, found: FieldError[]): void {
  const spec = objectOf(value);
  const { schedule, timeZone, jobTemplate } = spec;
  needed((text, field) => {
    const given = textOf(text);
    const problem = cronProblem(given);
    if (problem !== undefined) found.push(invalidValue(field, given, problem));
    const had = textOf(objectOf(old)["schedule"]).includes("TZ");
    if (given.includes("TZ") && had && !isAbsent(timeZone)) {
      const why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
      found.push(invalidValue(field, given, why));
    } else if (given.includes("TZ") && !had) {
      const why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
      found.push(invalidValue(field, given, why));
    }
  })(schedule, "spec.schedule", found);
  fields({ startingDeadlineSeconds: NOT_NEGATIVE })(spec, "spec", found);
  if (old === undefined || objectOf(old)["timeZone"] !== timeZone) {
    TIME_ZONE(timeZone, "spec.timeZone", found);
  }
  const policies = oneOf("Allow", "Forbid", "Replace");
  needed(policies)(spec["concurrencyPolicy"], "spec.concurrencyPolicy", found);
  const at = "spec.jobTemplate.spec";
  const job = objectOf(objectOf(jobTemplate)["spec"]);
  jobSpec(job, at, found);
  if (!isAbsent(job["selector"])) {
    const text = "`selector` will be auto-generated";
    found.push(invalidValue(`${at}.selector`, job["selector"], text));
  }
  if (job["manualSelector"] === true) {
    found.push(notSupported(`${at}.manualSelector`, true, ["nil", "false"]));
  }
  fields({
    successfulJobsHistoryLimit: NOT_NEGATIVE,
    failedJobsHistoryLimit: NOT_NEGATIVE,
  })(spec, "spec", found);
}

const TIME_ZONE: Rule = (value, field, found) => {
  if (isAbsent(value)) return;
  const zone = textOf(value);
  const say = (text: string): number => found.push(invalidValue(field, zone, text));
  if (zone === "") {
    say("timeZone must be nil or non-empty string");
    return;
  }
  const isGood = (part: string): boolean =>
    part !== "." && part !== ".." && /^[A-Za-z._0-9+][A-Za-z._0-9+-]{0,13}$/.test(part);
  if (!zone.split("/").every(isGood)) {
    say(`unknown time zone ${zone}`);
    return;
  }
  if (zone.toLowerCase() === "local") {
    say("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  }
  if (/^[+-]/.test(zone) || !isKnownZone(zone)) say(`unknown time zone ${zone}`);
};

export function cronJobErrors(job: KubeObject): FieldError[] {
  const found: FieldError[] = [];
  cronSpec(job["spec"], undefined, found);
  const { name = "" } = job.metadata;
  if (name.length > MAX_CRON_NAME_CHARS) {
    const text = `must be no more than ${MAX_CRON_NAME_CHARS} characters`;
    found.push(invalidValue("metadata.name", name, text));
  }
  return found;
}

export function changedCronJobErrors(job: KubeObject, old: KubeObject): FieldError[] {
  const found: FieldError[] = [];
  cronSpec(job["spec"], objectOf(old["spec"]), found);
  return found;
}
