/** Containers of pods: names, images, ports, variables, mounts, probes, security. */
import {
  type FieldError,
  fieldErrors,
  invalidValue,
  isConfigMapKey,
  isDns1123Label,
  isDns1123Subdomain,
  isQualifiedName,
  required,
} from "@quorate/kube-storage";
import { RESOURCES } from "./quantities.ts";
import {
  all,
  alternatives,
  atLeast,
  each,
  fields,
  forbidden,
  isAbsent,
  listOf,
  named,
  needed,
  number,
  numberOf,
  type ObjectFields,
  objectOf,
  oneOf,
  PROTOCOL,
  type Rule,
  struct,
  textOf,
  texts,
  USER_ID,
} from "./rules.ts";
import {
  DESCENDING_PATH,
  isHeaderName,
  isPortName,
  isVariableName,
  PATH_WITHOUT_BACKSTEPS,
  PORT,
  PORT_OR_NAME,
} from "./texts.ts";

/** What a container's rules need to know of its pod. */
export interface PodContext {
  /** The good volumes, by name. */
  readonly volumes: ReadonlyMap<string, ObjectFields>;
  readonly graceSeconds: number;
  readonly restartPolicy: string;
  readonly hostUsers: boolean;
}

export const NAME: Rule = needed(texts(isDns1123Label));
export const PULL_POLICY: Rule = needed(oneOf("Always", "IfNotPresent", "Never"));

const PORT_NUMBER: Rule = (value, field, found) => {
  if (numberOf(value) === 0) found.push(required(field));
  else PORT(value, field, found);
};

/** The number of a port, where it is not 0. */
const OPTIONAL_PORT: Rule = (value, field, found) => {
  if (numberOf(value) !== 0) PORT(value, field, found);
};

const PORTS: Rule = (value, field, found) => {
  const names = new Set<string>();
  for (const [index, port] of listOf(value).entries()) {
    const at = `${field}[${index}]`;
    const name = textOf(port["name"]);
    const wrong = name === "" ? [] : isPortName(name);
    for (const text of wrong) found.push(invalidValue(`${at}.name`, name, text));
    if (names.has(name)) found.push(fieldErrors.duplicate(`${at}.name`, name));
    if (name !== "" && wrong.length === 0) names.add(name);
    PORT_NUMBER(port["containerPort"], `${at}.containerPort`, found);
    OPTIONAL_PORT(port["hostPort"], `${at}.hostPort`, found);
    PROTOCOL(port["protocol"], `${at}.protocol`, found);
  }
};

const KEY_REFERENCE = fields({
  name: texts((name) => isDns1123Subdomain(name)),
  key: needed(texts(isConfigMapKey)),
});

const ENV_FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
const KNOWN_FIELDS = [
  ...ENV_FIELDS,
  "metadata.annotations",
  "metadata.labels",
  "spec.restartPolicy",
  "spec.schedulerName",
  "status.phase",
  "spec.host",
];

/** A field of the pod. @param supported in the order of the text */
export function fieldReference(supported: readonly string[]): Rule {
  return (value, field, found) => {
    const { apiVersion = "", fieldPath } = objectOf(value);
    const path = textOf(fieldPath);
    const at = `${field}.fieldPath`;
    const unknown = (why: string): number =>
      found.push(invalidValue(at, path, `error converting fieldPath: ${why}`));
    if (apiVersion === "") found.push(required(`${field}.apiVersion`));
    else if (path === "") found.push(required(at));
    else if (apiVersion !== "v1") unknown(`unsupported pod version: ${String(apiVersion)}`);
    else {
      const start = path.endsWith("']") ? path.indexOf("['") : -1;
      const base = path.slice(0, Math.max(start, 0));
      const key = path.slice(start + 2, -2);
      const isMap = base === "metadata.annotations" || base === "metadata.labels";
      if (base !== "" && !isMap) unknown(`field label does not support subscript: ${path}`);
      else if (base !== "") {
        const name = base === "metadata.annotations" ? key.toLowerCase() : key;
        texts(isQualifiedName)(name, field, found);
      } else if (!KNOWN_FIELDS.includes(path)) unknown(`field label not supported: ${path}`);
      else if (!supported.includes(path)) found.push(fieldErrors.notSupported(at, path, supported));
    }
  };
}

const RESOURCE_FIELDS = ["cpu", "ephemeral-storage", "memory"];
const RESOURCE_PATHS = ["limits", "requests"].flatMap((part) =>
  RESOURCE_FIELDS.map((name) => `${part}.${name}`),
);
const BYTE_DIVISORS = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
const DIVISORS: readonly (readonly [RegExp, string, string])[] = [
  [/\.cpu$/, "1m and 1", "cpu resource"],
  [/\.memory$/, BYTE_DIVISORS, "memory resource"],
  [/\.ephemeral-storage$/, BYTE_DIVISORS, "local ephemeral storage resource"],
  [/\.hugepages-/, BYTE_DIVISORS, "hugepages resource"],
];

/** A resource of a container. @param isVolume whether it must say of which */
export function resourceReference(isVolume: boolean): Rule {
  return (value, field, found) => {
    const { containerName = "", resource = "", divisor = "0" } = objectOf(value);
    const name = textOf(resource);
    if (isVolume && containerName === "") found.push(required(`${field}.containerName`));
    else if (name === "") found.push(required(`${field}.resource`));
    else if (!/^(?:limits|requests)\.hugepages-/.test(name)) {
      oneOf(...RESOURCE_PATHS)(name, `${field}.resource`, found);
    }
    if (divisor === "0") return;
    const known = DIVISORS.find(([pattern]) => pattern.test(name));
    if (known === undefined) return;
    const [, allowed, what] = known;
    if (allowed.split(/, | and /).includes(textOf(divisor))) return;
    const text = `only divisor's values ${allowed} are supported with the ${what}`;
    found.push(invalidValue(`${field}.divisor`, name, text));
  };
}

const VALUE_SOURCES: readonly (readonly [string, Rule])[] = [
  ["fieldRef", fieldReference(ENV_FIELDS)],
  ["resourceFieldRef", resourceReference(false)],
  ["configMapKeyRef", KEY_REFERENCE],
  ["secretKeyRef", KEY_REFERENCE],
  [
    "fileKeyRef",
    struct({
      key: needed(texts(isVariableName)),
      volumeName: needed(),
      path: needed(DESCENDING_PATH),
    }),
  ],
];

const ENV: Rule = each((item, field, found) => {
  const { name, value = "", valueFrom } = objectOf(item);
  needed(texts(isVariableName))(name, `${field}.name`, found);
  if (isAbsent(valueFrom)) return;
  const at = `${field}.valueFrom`;
  const present = VALUE_SOURCES.filter(([source]) => !isAbsent(objectOf(valueFrom)[source]));
  for (const [source, rule] of present) rule(objectOf(valueFrom)[source], `${at}.${source}`, found);
  if (present.length === 0) {
    const text =
      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or " +
      "`fileKeyRef`";
    found.push(invalidValue(at, "", text));
  } else if (value !== "") {
    found.push(invalidValue(at, "", "may not be specified when `value` is not empty"));
  } else if (present.length > 1) {
    found.push(invalidValue(at, "", "may not have more than one field specified at a time"));
  }
});

const SOURCE_NAME = fields({ name: needed(texts((name) => isDns1123Subdomain(name))) });

const ENV_FROM: Rule = (value, field, found) => {
  for (const [index, one] of listOf(value).entries()) {
    named(isVariableName)(one["prefix"], `${field}[${index}].prefix`, found);
    const present = ["configMapRef", "secretRef"].filter((name) => !isAbsent(one[name]));
    for (const name of present) SOURCE_NAME(one[name], `${field}[${index}].${name}`, found);
    if (present.length === 0) {
      found.push(invalidValue(field, "", "must specify one of: `configMapRef` or `secretRef`"));
    } else if (present.length > 1) {
      found.push(invalidValue(field, "", "may not have more than one field specified at a time"));
    }
  }
};

function mounts(
  container: ObjectFields,
  field: string,
  pod: PodContext,
  found: FieldError[],
): void {
  const devices = listOf(container["volumeDevices"]);
  const deviceNames = new Set(devices.map(({ name }) => name));
  const devicePaths = new Set(devices.map(({ devicePath }) => devicePath));
  const paths = new Set<unknown>();
  const isPrivileged = objectOf(container["securityContext"])["privileged"] === true;
  for (const [index, mount] of listOf(container["volumeMounts"]).entries()) {
    const at = `${field}[${index}]`;
    const { name = "", mountPath = "", subPath = "", subPathExpr = "" } = mount;
    if (name === "") found.push(required(`${at}.name`));
    if (!pod.volumes.has(textOf(name))) found.push(fieldErrors.fieldNotFound(`${at}.name`, name));
    if (mountPath === "") found.push(required(`${at}.mountPath`));
    if (paths.has(mountPath)) {
      found.push(invalidValue(`${at}.mountPath`, mountPath, "must be unique"));
    }
    paths.add(mountPath);
    if (deviceNames.has(name)) {
      found.push(invalidValue(`${at}.name`, name, "must not already exist in volumeDevices"));
    }
    if (devicePaths.has(mountPath)) {
      const text = "must not already exist as a path in volumeDevices";
      found.push(invalidValue(`${at}.mountPath`, mountPath, text));
    }
    DESCENDING_PATH(subPath, `${field}.subPath`, found);
    if (subPathExpr !== "" && subPath !== "") {
      const text = "subPathExpr and subPath are mutually exclusive";
      found.push(invalidValue(`${at}.subPathExpr`, subPathExpr, text));
    }
    DESCENDING_PATH(subPathExpr, `${field}.subPathExpr`, found);
    const propagation = mount["mountPropagation"];
    const to = `${field}.mountPropagation`;
    oneOf("Bidirectional", "HostToContainer", "None")(propagation, to, found);
    if (propagation === "Bidirectional" && !isPrivileged) {
      const text = "Bidirectional mount propagation is available only to privileged containers";
      found.push(fieldErrors.fieldForbidden(to, text));
    }
    recursion(mount, `${field}.recursiveReadOnly`, found);
  }
}

function recursion(mount: ObjectFields, field: string, found: FieldError[]): void {
  const { recursiveReadOnly: how, readOnly, mountPropagation = "None" } = mount;
  oneOf("Disabled", "Enabled", "IfPossible")(how, field, found);
  if (how !== "Enabled" && how !== "IfPossible") return;
  if (readOnly !== true) {
    const text = "may only be specified when readOnly is true";
    found.push(fieldErrors.fieldForbidden(field, text));
  }
  if (mountPropagation !== "None") {
    const text = "may only be specified when mountPropagation is None or not specified";
    found.push(fieldErrors.fieldForbidden(field, text));
  }
}

function devices(
  container: ObjectFields,
  field: string,
  pod: PodContext,
  found: FieldError[],
): void {
  const mounted = listOf(container["volumeMounts"]);
  const mountNames = new Set(mounted.map(({ name }) => name));
  const mountPaths = new Set(mounted.map(({ mountPath }) => mountPath));
  const [names, paths] = [new Set<unknown>(), new Set<unknown>()];
  for (const [index, device] of listOf(container["volumeDevices"]).entries()) {
    const at = `${field}[${index}]`;
    const { name = "", devicePath = "" } = device;
    const say = (child: string, value: unknown, text: string): number =>
      found.push(invalidValue(`${at}.${child}`, value, text));
    const volume = pod.volumes.get(textOf(name));
    if (name === "") found.push(required(`${at}.name`));
    if (names.has(name)) say("name", name, "must be unique");
    if (volume === undefined) found.push(fieldErrors.fieldNotFound(`${at}.name`, name));
    else if (isAbsent(volume["persistentVolumeClaim"]) && isAbsent(volume["ephemeral"])) {
      const text =
        "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
      say("name", name, text);
    }
    if (devicePath === "") found.push(required(`${at}.devicePath`));
    if (paths.has(devicePath)) say("devicePath", devicePath, "must be unique");
    const steps: FieldError[] = [];
    PATH_WITHOUT_BACKSTEPS(devicePath, "", steps);
    if (steps.length > 0) say("devicePath", devicePath, "can not contain backsteps ('..')");
    else paths.add(devicePath);
    if (mountNames.has(name)) say("name", name, "must not already exist in volumeMounts");
    if (mountPaths.has(devicePath)) {
      say("devicePath", devicePath, "must not already exist as a path in volumeMounts");
    }
    if (name !== "") names.add(name);
  }
}

const HTTP_GET = fields({
  path: needed(),
  port: PORT_OR_NAME,
  scheme: oneOf("HTTP", "HTTPS"),
  httpHeaders(value, field, found) {
    for (const { name } of listOf(value)) texts(isHeaderName)(name, field, found);
  },
});

/** What a probe does, or a hook. */
function handler(graceSeconds: number): Rule {
  return alternatives(
    {
      exec: fields({ command: needed() }),
      httpGet: HTTP_GET,
      tcpSocket: fields({ port: PORT_OR_NAME }),
      grpc: fields({ port: PORT }),
      sleep(value, field, found) {
        const most = `terminationGracePeriodSeconds (${graceSeconds})`;
        const seconds = numberOf(objectOf(value)["seconds"]);
        const isGood = (one: number): boolean => one >= 0 && one <= graceSeconds;
        number(isGood, `must be non-negative and less than ${most}`)(seconds, field, found);
      },
    },
    "may not specify more than 1 handler type",
    "must specify a handler type",
  );
}

const ABOVE_ZERO = number((value) => value > 0, "must be greater than 0");

function probe(graceSeconds: number, kind: "liveness" | "readiness" | "startup"): Rule {
  const does = handler(graceSeconds);
  return (value, field, found) => {
    if (isAbsent(value)) return;
    does(value, field, found);
    fields({
      initialDelaySeconds: atLeast(0),
      timeoutSeconds: atLeast(0),
      periodSeconds: atLeast(0),
      successThreshold: atLeast(0),
      failureThreshold: atLeast(0),
      terminationGracePeriodSeconds: ABOVE_ZERO,
    })(value, field, found);
    const { successThreshold = 1, terminationGracePeriodSeconds } = objectOf(value);
    if (kind !== "readiness" && successThreshold !== 1) {
      found.push(invalidValue(`${field}.successThreshold`, successThreshold, "must be 1"));
    }
    if (kind === "readiness" && !isAbsent(terminationGracePeriodSeconds)) {
      const at = `${field}.terminationGracePeriodSeconds`;
      found.push(
        invalidValue(at, terminationGracePeriodSeconds, "must not be set for readinessProbes"),
      );
    }
  };
}

function lifecycle(pod: PodContext): Rule {
  const does = handler(pod.graceSeconds);
  const optional: Rule = (value, field, found) => {
    if (!isAbsent(value)) does(value, field, found);
  };
  return fields({
    postStart: optional,
    preStop: optional,
  });
}

export const SECCOMP: Rule = (value, field, found) => {
  if (isAbsent(value)) return;
  const { type = "", localhostProfile } = objectOf(value);
  const types = oneOf("Localhost", "RuntimeDefault", "Unconfined");
  needed(types, "type is required when seccompProfile is set")(type, `${field}.type`, found);
  const at = `${field}.localhostProfile`;
  if (type === "Localhost") {
    const text = "must be set when seccomp type is Localhost";
    if (isAbsent(localhostProfile)) found.push(required(at, text));
    else DESCENDING_PATH(localhostProfile, at, found);
  } else if (!isAbsent(localhostProfile)) {
    // Go's internal type has no names for JSON.
    const shown = { Type: type, LocalhostProfile: localhostProfile };
    found.push(invalidValue(at, shown, "can only be set when seccomp type is Localhost"));
  }
};

export const APP_ARMOR: Rule = (value, field, found) => {
  if (isAbsent(value)) return;
  const { type = "", localhostProfile } = objectOf(value);
  const types = oneOf("Localhost", "RuntimeDefault", "Unconfined");
  needed(types, "type is required when appArmorProfile is set")(type, `${field}.type`, found);
  const at = `${field}.localhostProfile`;
  const profile = textOf(localhostProfile);
  if (type === "Localhost") {
    if (profile.trim() !== profile) {
      found.push(invalidValue(at, profile, "must not be padded with whitespace"));
    } else if (profile === "") {
      found.push(required(at, "must be set when AppArmor type is Localhost"));
    }
  } else if (!isAbsent(localhostProfile)) {
    const text = "can only be set when AppArmor type is Localhost";
    found.push(invalidValue(at, localhostProfile, text));
  }
};

const ESCALATION = "cannot set `allowPrivilegeEscalation` to false and ";

function security(hostUsers: boolean): Rule {
  return all(
    fields({
      runAsUser: USER_ID,
      runAsGroup: USER_ID,
      procMount(value, field, found) {
        oneOf("Default", "Unmasked")(value, field, found);
        if (hostUsers && value === "Unmasked") {
          found.push(invalidValue(field, value, "`hostUsers` must be false to use `Unmasked`"));
        }
      },
      seccompProfile: SECCOMP,
    }),
    (value, field, found) => {
      const { allowPrivilegeEscalation, privileged, capabilities } = objectOf(value);
      if (allowPrivilegeEscalation !== false) return;
      // Kubernetes shows the whole context, with Go's names.
      const shown = { Privileged: privileged ?? null };
      if (privileged === true) {
        found.push(invalidValue(field, shown, `${ESCALATION}\`privileged\` to true`));
      }
      if (listOf<string>(objectOf(capabilities)["add"]).includes("CAP_SYS_ADMIN")) {
        const text = `${ESCALATION}\`capabilities.Add\` CAP_SYS_ADMIN`;
        found.push(invalidValue(field, shown, text));
      }
    },
    fields({ appArmorProfile: APP_ARMOR }),
  );
}

function resizePolicy(podPolicy: string): Rule {
  return (value, field, found) => {
    const seen = new Set<unknown>();
    for (const [index, { resourceName = "", restartPolicy = "" }] of listOf(value).entries()) {
      if (seen.has(resourceName)) {
        found.push(fieldErrors.duplicate(`${field}[${index}]`, resourceName));
      }
      seen.add(resourceName);
      needed(oneOf("cpu", "memory"))(resourceName, field, found);
      needed(oneOf("NotRequired", "RestartContainer"))(restartPolicy, field, found);
      if (podPolicy === "Never" && restartPolicy !== "NotRequired") {
        const text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
        found.push(invalidValue(field, restartPolicy, text));
      }
    }
  };
}

function common(
  container: ObjectFields,
  field: string,
  pod: PodContext,
  found: FieldError[],
): void {
  fields({
    name: NAME,
    image: needed(),
    terminationMessagePolicy: needed(oneOf("File", "FallbackToLogsOnError")),
    ports: PORTS,
    env: ENV,
    envFrom: ENV_FROM,
  })(container, field, found);
  mounts(container, `${field}.volumeMounts`, pod, found);
  devices(container, `${field}.volumeDevices`, pod, found);
  fields({
    imagePullPolicy: PULL_POLICY,
    resources: RESOURCES,
    resizePolicy: resizePolicy(pod.restartPolicy),
    securityContext: security(pod.hostUsers),
  })(container, field, found);
}

const RESTART_POLICY = oneOf("Always", "Never", "OnFailure");

const RESTART_RULES: Rule = each(
  struct({
    action: oneOf("Restart", "RestartAllContainers"),
    exitCodes: needed(struct({ operator: oneOf("In", "NotIn") }), "must be specified"),
  }),
);

function restarts(container: ObjectFields, field: string, found: FieldError[]): void {
  const { restartPolicy, restartPolicyRules } = container;
  const rules = listOf(restartPolicyRules);
  if (isAbsent(restartPolicy) && rules.length > 0) {
    const text = "must specify restartPolicy when restart rules are used";
    found.push(required(`${field}.restartPolicy`, text));
  }
  RESTART_POLICY(restartPolicy, `${field}.restartPolicy`, found);
  if (rules.length > MAX_RESTART_RULES) {
    const at = `${field}.restartPolicyRules`;
    found.push(fieldErrors.tooMany(at, rules.length, MAX_RESTART_RULES));
  }
  RESTART_RULES(rules, `${field}.restartPolicyRules`, found);
}

/** As in Kubernetes. */
const MAX_RESTART_RULES = 20;

function whileRunning(
  container: ObjectFields,
  field: string,
  pod: PodContext,
  found: FieldError[],
): void {
  fields({
    lifecycle: lifecycle(pod),
    livenessProbe: probe(pod.graceSeconds, "liveness"),
    readinessProbe: probe(pod.graceSeconds, "readiness"),
    startupProbe: probe(pod.graceSeconds, "startup"),
  })(container, field, found);
}

function hostPorts(containers: readonly ObjectFields[], field: string, found: FieldError[]): void {
  const seen = new Set<string>();
  for (const [i, container] of containers.entries()) {
    for (const [j, port] of listOf(container["ports"]).entries()) {
      const { hostPort = 0, protocol = "", hostIP = "" } = port;
      if (hostPort === 0) continue;
      const key = `${String(protocol)}/${String(hostIP)}/${String(hostPort)}`;
      const at = `${field}[${i}].ports[${j}].hostPort`;
      if (seen.has(key)) found.push(fieldErrors.duplicate(at, key));
      seen.add(key);
    }
  }
}

function repeated(name: unknown, names: Set<unknown>, field: string, found: FieldError[]): void {
  if (names.has(name)) found.push(fieldErrors.duplicate(`${field}.name`, name));
  if (!isAbsent(name) && name !== "") names.add(name);
}

export function containerErrors(
  containers: readonly ObjectFields[],
  field: string,
  pod: PodContext,
  found: FieldError[],
): void {
  if (containers.length === 0) found.push(required(field));
  const names = new Set<unknown>();
  for (const [index, container] of containers.entries()) {
    const at = `${field}[${index}]`;
    common(container, at, pod, found);
    repeated(container["name"], names, at, found);
    whileRunning(container, at, pod, found);
    restarts(container, at, found);
  }
  hostPorts(containers, field, found);
}

const NOT_FOR_INIT = forbidden("may not be set for init containers without restartPolicy=Always");

export function initContainerErrors(
  containers: readonly ObjectFields[],
  regular: readonly ObjectFields[],
  field: string,
  pod: PodContext,
  found: FieldError[],
): void {
  const names = new Set<unknown>(regular.map(({ name }) => name));
  for (const [index, container] of containers.entries()) {
    const at = `${field}[${index}]`;
    common(container, at, pod, found);
    restarts(container, at, found);
    repeated(container["name"], names, at, found);
    hostPorts([container], field, found);
    if (container["restartPolicy"] === "Always") whileRunning(container, at, pod, found);
    else {
      for (const name of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"]) {
        NOT_FOR_INIT(container[name], `${at}.${name}`, found);
      }
    }
  }
}

const NOT_EPHEMERAL = "cannot be set for an Ephemeral Container";

export function ephemeralContainerErrors(
  containers: readonly ObjectFields[],
  others: readonly ObjectFields[],
  field: string,
  pod: PodContext,
  found: FieldError[],
): void {
  const otherNames = new Set<unknown>(others.map(({ name }) => name));
  const names = new Set(otherNames);
  for (const [index, container] of containers.entries()) {
    const at = `${field}[${index}]`;
    common(container, at, pod, found);
    repeated(container["name"], names, at, found);
    const target = textOf(container["targetContainerName"]);
    if (target !== "" && !otherNames.has(target)) {
      found.push(fieldErrors.fieldNotFound(`${at}.targetContainerName`, target));
    }
    for (const name of FORBIDDEN_IN_EPHEMERAL) {
      const value = container[name];
      const isEmpty = name === "resources" && Object.keys(objectOf(value)).length === 0;
      if (!isEmpty) forbidden(NOT_EPHEMERAL)(value, `${at}.${name}`, found);
    }
    for (const [j, mount] of listOf(container["volumeMounts"]).entries()) {
      for (const name of ["subPath", "subPathExpr"]) {
        forbidden(NOT_EPHEMERAL)(mount[name], `${at}.volumeMounts[${j}].${name}`, found);
      }
    }
  }
}

const FORBIDDEN_IN_EPHEMERAL = [
  "ports",
  "resources",
  "resizePolicy",
  "restartPolicy",
  "livenessProbe",
  "readinessProbe",
  "startupProbe",
  "lifecycle",
];
