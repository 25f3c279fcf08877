/** The spec of a pod, also in templates (kubernetes: apis/core/validation, ValidatePodSpec). */
import {
  type FieldError,
  fieldErrors,
  invalidValue,
  isDns1123Label,
  isDns1123Subdomain,
  isQualifiedName,
  type KubeObject,
  patternText,
  required,
  semanticEqual,
} from "@quorate/kube-storage";
import {
  APP_ARMOR,
  containerErrors,
  ephemeralContainerErrors,
  initContainerErrors,
  SECCOMP,
} from "./containers.ts";
import { notNegative, RESOURCES } from "./quantities.ts";
import {
  ANNOTATIONS,
  all,
  between,
  each,
  fields,
  forbidden,
  isAbsent,
  LABELS,
  listOf,
  named,
  needed,
  type ObjectFields,
  objectOf,
  oneOf,
  type Rule,
  textOf,
  texts,
  USER_ID,
} from "./rules.ts";
import { AFFINITY, SPREAD, TOLERATIONS } from "./scheduling.ts";
import { isIp } from "./texts.ts";
import { volumeErrors } from "./volumes.ts";

const SUBDOMAIN = named((name) => isDns1123Subdomain(name));
const LABEL = named(isDns1123Label);
const MAX_SECONDS = 2 ** 31 - 1;

const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARS = 2048;

const DNS_CONFIG: Rule = (value, field, found) => {
  if (isAbsent(value)) return;
  const { nameservers, searches, options } = objectOf(value);
  const [servers, paths] = [listOf<string>(nameservers), listOf<string>(searches)];
  const say = (child: string, list: readonly string[], what: string): number =>
    found.push(invalidValue(`${field}.${child}`, list, `must not have more than ${what}`));
  if (servers.length > MAX_NAMESERVERS)
    say("nameservers", servers, `${MAX_NAMESERVERS} nameservers`);
  each(texts(isIp))(servers, `${field}.nameservers`, found);
  if (paths.length > MAX_SEARCHES) say("searches", paths, `${MAX_SEARCHES} search paths`);
  if (paths.join(" ").length > MAX_SEARCH_CHARS) {
    const what = `${MAX_SEARCH_CHARS} characters (including spaces) in the search list`;
    say("searches", paths, what);
  }
  for (const [index, path] of paths.entries()) {
    if (path === ".") continue;
    const name = path.endsWith(".") ? path.slice(0, -1) : path;
    texts(isSearchPath)(name, `${field}.searches[${index}]`, found);
  }
  for (const [index, { name = "" }] of listOf(options).entries()) {
    if (name === "") found.push(required(`${field}.options[${index}]`, "must not be empty"));
  }
};

const SEARCH_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const SEARCH_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or " +
  "'.', and must start and end with an alphanumeric character";

/** A domain whose labels may have "_". */
function isSearchPath(name: string): readonly string[] {
  const isLabel = (label: string): boolean => /^_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/.test(label);
  const errors = name.length > 253 ? ["must be no more than 253 characters"] : [];
  if (name.split(".").every(isLabel)) return errors;
  const pattern = `${SEARCH_LABEL}(\\.${SEARCH_LABEL})*`;
  return [...errors, patternText(SEARCH_TEXT, pattern, "example.com")];
}

const SYSCTL = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const MAX_SYSCTL_CHARS = 253;

function isSysctl(name: string): boolean {
  const parts = name.split(/[./]/);
  const isPart = (part: string): boolean => /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/.test(part);
  return name.length <= MAX_SYSCTL_CHARS && parts.every(isPart);
}

const SYSCTLS: Rule = each(
  fields({
    name: needed((value, field, found) => {
      const text = `must have at most ${MAX_SYSCTL_CHARS} characters and match regex ^${SYSCTL}$`;
      if (!isSysctl(textOf(value))) found.push(invalidValue(field, value, text));
    }),
  }),
  "name",
);

const SECURITY = fields({
  fsGroup: USER_ID,
  runAsUser: USER_ID,
  runAsGroup: USER_ID,
  supplementalGroups: each(USER_ID),
  sysctls: SYSCTLS,
  fsGroupChangePolicy: oneOf("Always", "OnRootMismatch"),
  seccompProfile: SECCOMP,
  appArmorProfile: APP_ARMOR,
  supplementalGroupsPolicy: oneOf("Merge", "Strict"),
  seLinuxChangePolicy: oneOf("MountOption", "Recursive"),
});

const MATCHES_PORT = "must match `containerPort` when `hostNetwork` is true";

function hostNetworkPorts(spec: ObjectFields, field: string, found: FieldError[]): void {
  if (spec["hostNetwork"] !== true) return;
  for (const [i, container] of listOf(spec["containers"]).entries()) {
    for (const [j, port] of listOf(container["ports"]).entries()) {
      const { hostPort = 0, containerPort = 0 } = port;
      if (hostPort === 0 || hostPort === containerPort) continue;
      found.push(invalidValue(`${field}[${i}].ports[${j}].hostPort`, hostPort, MATCHES_PORT));
    }
  }
}

const SCHEDULING_GATES: Rule = (value, field, found) => {
  const seen = new Set<unknown>();
  for (const [index, { name = "" }] of listOf(value).entries()) {
    texts(isQualifiedName)(name, `${field}[${index}]`, found);
    if (seen.has(name)) found.push(fieldErrors.duplicate(`${field}[${index}]`, name));
    seen.add(name);
  }
};

const OS: Rule = (value, field, found) => {
  if (isAbsent(value)) return;
  const { name = "" } = objectOf(value);
  if (name === "") found.push(required(`${field}.name`));
  else oneOf("linux", "windows")(name, field, found);
};

const HOST_ALIASES: Rule = each(
  fields({ ip: texts(isIp), hostnames: each(texts((name) => isDns1123Subdomain(name))) }),
);

const RESOURCE_CLAIMS: Rule = each((value, field, found) => {
  const { name, resourceClaimName, resourceClaimTemplateName } = objectOf(value);
  needed(texts(isDns1123Label))(name, `${field}.name`, found);
  const [direct, template] = [!isAbsent(resourceClaimName), !isAbsent(resourceClaimTemplateName)];
  const shown = {
    Name: name ?? "",
    ResourceClaimName: resourceClaimName ?? null,
    ResourceClaimTemplateName: resourceClaimTemplateName ?? null,
  };
  const which = "`resourceClaimName`";
  if (direct && template) {
    const text = `at most one of ${which} or \`resourceClaimTemplateName\` may be specified`;
    found.push(invalidValue(field, shown, text));
  } else if (!direct && !template) {
    const text = `must specify one of: ${which}, \`resourceClaimTemplateName\``;
    found.push(invalidValue(field, shown, text));
  }
  SUBDOMAIN(resourceClaimName, `${field}.resourceClaimName`, found);
  SUBDOMAIN(resourceClaimTemplateName, `${field}.resourceClaimTemplateName`, found);
}, "name");

const MIDDLE = {
  restartPolicy: needed(oneOf("Always", "OnFailure", "Never")),
  dnsPolicy: needed(oneOf("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")),
  nodeSelector: LABELS,
};

const LAST = fields({
  readinessGates: each(fields({ conditionType: texts(isQualifiedName) })),
  schedulingGates: SCHEDULING_GATES,
  topologySpreadConstraints: SPREAD,
});

const END = fields({
  serviceAccountName: SUBDOMAIN,
  nodeName: SUBDOMAIN,
  activeDeadlineSeconds: between(1, MAX_SECONDS),
  hostname: LABEL,
  subdomain: LABEL,
  tolerations: TOLERATIONS,
  hostAliases: HOST_ALIASES,
  priorityClassName: SUBDOMAIN,
  runtimeClassName: SUBDOMAIN,
  preemptionPolicy: oneOf("PreemptLowerPriority", "Never"),
  overhead(value, field, found) {
    for (const [name, amount] of Object.entries(objectOf(value))) {
      notNegative(amount, `${field}.limits[${name}]`, found);
    }
  },
  os: OS,
});

const DNS_NONE = "when `dnsPolicy` is None";

function dns({ dnsPolicy, dnsConfig }: ObjectFields, field: string, found: FieldError[]): void {
  if (dnsPolicy === "None") {
    if (isAbsent(dnsConfig)) {
      found.push(required(field, `must provide \`dnsConfig\` ${DNS_NONE}`));
      return;
    }
    if (listOf(objectOf(dnsConfig)["nameservers"]).length === 0) {
      const text = `must provide at least one DNS nameserver ${DNS_NONE}`;
      found.push(required(`${field}.nameservers`, text));
      return;
    }
  }
  DNS_CONFIG(dnsConfig, field, found);
}

const NOT_HOST_USERS = forbidden("when `hostUsers` is false");

function hostUsers(spec: ObjectFields, field: string, found: FieldError[]): void {
  if (spec["hostUsers"] !== false) return;
  NOT_HOST_USERS(spec["hostPID"] || undefined, `${field}.HostPID`, found);
  NOT_HOST_USERS(spec["hostIPC"] || undefined, `${field}.HostIPC`, found);
  for (const list of ["initContainers", "containers"]) {
    for (const [index, one] of listOf(spec[list]).entries()) {
      NOT_HOST_USERS(one["volumeDevices"], `${field}.${list}[${index}].volumeDevices`, found);
    }
  }
}

function hostname(spec: ObjectFields, field: string, found: FieldError[]): void {
  const { hostnameOverride } = spec;
  if (isAbsent(hostnameOverride)) return;
  const at = `${field}.hostnameOverride`;
  for (const [name, when] of [
    ["setHostnameAsFQDN", "setHostnameAsFQDN is true"],
    ["hostNetwork", "hostNetwork is true"],
  ] as const) {
    if (spec[name] !== true) continue;
    found.push(fieldErrors.fieldForbidden(at, `may not be specified when ${when}`));
  }
  if (textOf(hostnameOverride).length > 64) found.push(fieldErrors.tooLong(at, 64));
  texts((name) => isDns1123Subdomain(name))(hostnameOverride, at, found);
}

const WINDOWS_SPEC = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];
const WINDOWS_POD = [
  "appArmorProfile",
  "seLinuxOptions",
  "seccompProfile",
  "fsGroup",
  "fsGroupChangePolicy",
  "sysctls",
  "runAsUser",
  "runAsGroup",
  "supplementalGroups",
  "supplementalGroupsPolicy",
  "seLinuxChangePolicy",
];
const WINDOWS_CONTAINER = [
  "appArmorProfile",
  "seLinuxOptions",
  "seccompProfile",
  "capabilities",
  "readOnlyRootFilesystem",
  "privileged",
  "allowPrivilegeEscalation",
  "procMount",
  "runAsUser",
  "runAsGroup",
];

/** What only containers on Linux have. */
function windows(spec: ObjectFields, field: string, found: FieldError[]): void {
  if (objectOf(spec["os"])["name"] !== "windows") return;
  const rule = forbidden("cannot be set for a windows pod");
  const check = (of: ObjectFields, names: readonly string[], at: string): void => {
    for (const name of names)
      rule(of[name] === false ? undefined : of[name], `${at}.${name}`, found);
  };
  check(spec, WINDOWS_SPEC, field);
  check(objectOf(spec["securityContext"]), WINDOWS_POD, `${field}.securityContext`);
  for (const list of ["initContainers", "containers"]) {
    for (const [index, one] of listOf(spec[list]).entries()) {
      const at = `${field}.${list}[${index}].securityContext`;
      check(objectOf(one["securityContext"]), WINDOWS_CONTAINER, at);
    }
  }
}

/** @param podName undefined in a template */
export function podSpecErrors(
  value: unknown,
  field: string,
  podName: string | undefined,
  found: FieldError[],
): void {
  const spec = objectOf(value);
  const at = (name: string): string => `${field}.${name}`;
  const regular = listOf(spec["containers"]);
  const initial = listOf(spec["initContainers"]);
  const ephemeral = listOf(spec["ephemeralContainers"]);
  const volumes = volumeErrors(listOf(spec["volumes"]), at("volumes"), podName, found);
  RESOURCE_CLAIMS(spec["resourceClaims"], at("resourceClaims"), found);
  const pod = {
    volumes,
    graceSeconds: (spec["terminationGracePeriodSeconds"] ?? 30) as number,
    restartPolicy: textOf(spec["restartPolicy"]),
    hostUsers: spec["hostUsers"] !== false,
  };
  containerErrors(regular, at("containers"), pod, found);
  initContainerErrors(initial, regular, at("initContainers"), pod, found);
  const others = [...regular, ...initial];
  ephemeralContainerErrors(ephemeral, others, at("ephemeralContainers"), pod, found);
  if (!isAbsent(spec["resources"])) RESOURCES(spec["resources"], at("resources"), found);
  hostNetworkPorts(spec, at("containers"), found);
  fields(MIDDLE)(spec, field, found);
  SECURITY(spec["securityContext"], at("securityContext"), found);
  if (spec["shareProcessNamespace"] === true && spec["hostPID"] === true) {
    const text = "ShareProcessNamespace and HostPID cannot both be enabled";
    found.push(invalidValue(at("securityContext.shareProcessNamespace"), true, text));
  }
  AFFINITY(spec["affinity"], at("affinity"), found);
  dns(spec, at("dnsConfig"), found);
  LAST(spec, field, found);
  hostUsers(spec, field, found);
  hostname(spec, field, found);
  END(spec, field, found);
  windows(spec, field, found);
}

/** A template of pods: its metadata, and the spec of its pods. */
export const TEMPLATE: Rule = (value, field, found) => {
  const { metadata, spec } = objectOf(value);
  LABELS(objectOf(metadata)["labels"], `${field}.labels`, found);
  ANNOTATIONS(objectOf(metadata)["annotations"], `${field}.annotations`, found);
  podSpecErrors(spec, `${field}.spec`, undefined, found);
  const text = "ephemeral containers not allowed in pod template";
  const at = `${field}.spec.ephemeralContainers`;
  forbidden(text)(objectOf(spec)["ephemeralContainers"], at, found);
};

const TRIMMED: Rule = (value, field, found) => {
  const image = textOf(value);
  if (image.trim() === image) return;
  found.push(invalidValue(field, image, "must not have leading or trailing whitespace"));
};

/** What holds for pods and not for templates. */
function podErrors(pod: KubeObject, found: FieldError[]): void {
  const spec = objectOf(pod["spec"]);
  podSpecErrors(spec, "spec", pod.metadata.name ?? "", found);
  if (textOf(spec["serviceAccountName"]) === "") {
    const rule = forbidden("must not be specified when serviceAccountName is not set");
    for (const [i, volume] of listOf(spec["volumes"]).entries()) {
      const sources = listOf(objectOf(volume["projected"])["sources"]);
      for (const [j, { serviceAccountToken }] of sources.entries()) {
        const at = `spec.volumes[${i}].projected.sources[${j}].serviceAccountToken`;
        rule(serviceAccountToken, at, found);
      }
    }
  }
  for (const list of ["containers", "initContainers", "ephemeralContainers"]) {
    each(fields({ image: TRIMMED }))(spec[list], `spec.${list}`, found);
  }
}

/** What is wrong with a pod, however it came to be. */
export function podErrorsOf(pod: KubeObject): FieldError[] {
  const found: FieldError[] = [];
  podErrors(pod, found);
  return found;
}

export function newPodErrors(pod: KubeObject): FieldError[] {
  const found = podErrorsOf(pod);
  const spec = objectOf(pod["spec"]);
  const at = "spec.ephemeralContainers";
  forbidden("cannot be set on create")(spec["ephemeralContainers"], at, found);
  if (textOf(spec["nodeName"]) !== "" && listOf(spec["schedulingGates"]).length > 0) {
    const text = "cannot be set until all schedulingGates have been cleared";
    found.push(fieldErrors.fieldForbidden("spec.nodeName", text));
  }
  return found;
}

const CHANGEABLE =
  "pod updates may not change fields other than `spec.containers[*].image`," +
  "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only " +
  "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set " +
  "to 1 if it was previously negative)";

function tolerationChanges(spec: ObjectFields, old: ObjectFields, found: FieldError[]): void {
  const key = ({ tolerationSeconds: _, ...rest }: ObjectFields): string =>
    JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
  const present = new Set(listOf(spec["tolerations"]).map(key));
  if (listOf(old["tolerations"]).every((one) => present.has(key(one)))) {
    TOLERATIONS(spec["tolerations"], "spec.tolerations", found);
  } else {
    const text = "existing toleration can not be modified except its tolerationSeconds";
    found.push(fieldErrors.fieldForbidden("spec.tolerations", text));
  }
}

function gateChanges(spec: ObjectFields, old: ObjectFields, found: FieldError[]): void {
  const before = new Set(listOf(old["schedulingGates"]).map(({ name }) => name));
  for (const [index, { name }] of listOf(spec["schedulingGates"]).entries()) {
    if (before.has(name)) continue;
    const text = `only deletion is allowed, but found new scheduling gate '${String(name)}'`;
    found.push(fieldErrors.fieldForbidden(`spec.schedulingGates[${index}].name`, text));
  }
}

function deadlineChange(spec: ObjectFields, old: ObjectFields, found: FieldError[]): boolean {
  const field = "spec.activeDeadlineSeconds";
  const [present, before] = [spec["activeDeadlineSeconds"], old["activeDeadlineSeconds"]];
  const errors: FieldError[] = [];
  if (typeof present === "number") {
    between(0, MAX_SECONDS)(present, field, errors);
    if (errors.length === 0 && typeof before === "number" && before < present) {
      const text = "must be less than or equal to previous value";
      errors.push(invalidValue(field, present, text));
    }
    found.push(...errors);
    return errors.length === 0;
  }
  if (typeof before === "number") {
    const text = "must not update from a positive integer to nil value";
    found.push(invalidValue(field, null, text));
  }
  return true;
}

/** The spec without what a change may be about. */
function fixedParts(spec: ObjectFields, old: ObjectFields): ObjectFields {
  const withoutImages = (list: unknown): unknown =>
    listOf(list).map(({ image: _, ...rest }) => rest);
  const { activeDeadlineSeconds: _, tolerations: __, schedulingGates: ___, ...rest } = spec;
  const wasGated = listOf(old["schedulingGates"]).length > 0;
  const grace = old["terminationGracePeriodSeconds"];
  const mayEnd = typeof grace === "number" && grace < 0;
  return {
    ...rest,
    containers: withoutImages(spec["containers"]),
    initContainers: withoutImages(spec["initContainers"]),
    ...(mayEnd && spec["terminationGracePeriodSeconds"] === 1
      ? { terminationGracePeriodSeconds: grace }
      : {}),
    ...(wasGated ? { nodeSelector: undefined, affinity: undefined } : {}),
  };
}

export function changedPodErrors(pod: KubeObject, old: KubeObject): FieldError[] {
  const found = podErrorsOf(pod);
  const [spec, before] = [objectOf(pod["spec"]), objectOf(old["spec"])];
  for (const list of ["containers", "initContainers"]) {
    if (listOf(spec[list]).length !== listOf(before[list]).length) {
      const text = "pod updates may not add or remove containers";
      found.push(fieldErrors.fieldForbidden(`spec.${list}`, text));
      return found;
    }
    each(fields({ image: all(needed(), TRIMMED) }))(spec[list], `spec.${list}`, found);
  }
  if (!deadlineChange(spec, before, found)) return found;
  tolerationChanges(spec, before, found);
  gateChanges(spec, before, found);
  if (!semanticEqual(fixedParts(spec, before), fixedParts(before, before))) {
    found.push(fieldErrors.fieldForbidden("spec", CHANGEABLE));
  }
  return found;
}
