/** Services and Endpoints (kubernetes: apis/core/validation). */
import {
  type FieldError,
  fieldErrors,
  invalidValue,
  isDns1123Label,
  isDns1123Subdomain,
  isQualifiedName,
  notSupported,
  required,
} from "@quorate/kube-storage";
import {
  all,
  each,
  fields,
  forbidden,
  isAbsent,
  LABELS,
  listOf,
  named,
  needed,
  numberOf,
  type ObjectFields,
  objectOf,
  oneOf,
  PROTOCOL,
  type Rule,
  struct,
  textOf,
  texts,
} from "./rules.ts";
import { endpointIp, isIp, isIpV4Text, isNetwork, PORT, PORT_OR_NAME } from "./texts.ts";

export function isHeadless(spec: ObjectFields): boolean {
  const ips = listOf<string>(spec["clusterIPs"]);
  return ips.length === 1 && ips[0] === "None";
}

function ports(spec: ObjectFields, found: FieldError[]): void {
  const all = listOf(spec["ports"]);
  const names = new Set<unknown>();
  for (const [index, port] of all.entries()) {
    const at = `spec.ports[${index}]`;
    const { name = "" } = port;
    if (name !== "") {
      texts(isDns1123Label)(name, `${at}.name`, found);
      if (names.has(name)) found.push(fieldErrors.duplicate(`${at}.name`, name));
      names.add(name);
    } else if (all.length > 1) found.push(required(`${at}.name`));
    PORT(port["port"], `${at}.port`, found);
    PROTOCOL(port["protocol"], `${at}.protocol`, found);
    PORT_OR_NAME(port["targetPort"], `${at}.targetPort`, found);
    if (!isAbsent(port["appProtocol"])) {
      texts(isQualifiedName)(port["appProtocol"], `${at}.appProtocol`, found);
    }
  }
}

/** Ports that are there twice, and ports of nodes. */
function portConflicts(spec: ObjectFields, found: FieldError[]): void {
  const all = listOf(spec["ports"]);
  const [nodePorts, pairs] = [new Set<string>(), new Set<string>()];
  for (const [index, { nodePort = 0 }] of all.entries()) {
    if (spec["type"] !== "ClusterIP" || nodePort === 0) continue;
    const text = "may not be used when `type` is 'ClusterIP'";
    found.push(fieldErrors.fieldForbidden(`spec.ports[${index}].nodePort`, text));
  }
  for (const [index, { nodePort = 0, protocol }] of all.entries()) {
    const key = `${String(protocol)} ${String(nodePort)}`;
    if (nodePort !== 0 && nodePorts.has(key)) {
      found.push(fieldErrors.duplicate(`spec.ports[${index}].nodePort`, nodePort));
    }
    nodePorts.add(key);
  }
  for (const [index, { port = 0, protocol = "" }] of all.entries()) {
    const key = `${String(protocol)} ${String(port)}`;
    // Go's internal type has no names for JSON.
    const rest = { AppProtocol: null, Port: port, TargetPort: 0, NodePort: 0 };
    const shown = { Name: "", Protocol: protocol, ...rest };
    if (pairs.has(key)) found.push(fieldErrors.duplicate(`spec.ports[${index}]`, shown));
    pairs.add(key);
  }
}

const FAMILIES = ["IPv4", "IPv6"];

/** What is wrong with the addresses and families of a service. */
export function addressErrors(
  spec: ObjectFields,
  old: ObjectFields | undefined,
): readonly FieldError[] {
  const found: FieldError[] = [];
  addresses(spec, old, found);
  return found;
}

function addresses(spec: ObjectFields, old: ObjectFields | undefined, found: FieldError[]): void {
  if (spec["type"] === "ExternalName") return;
  const { clusterIP = "" } = spec;
  const ips = listOf<string>(spec["clusterIPs"]);
  const families = listOf<string>(spec["ipFamilies"]);
  const field = "spec.clusterIPs";
  if (clusterIP !== "") {
    if (ips.length === 0) found.push(required(field));
    else if (ips[0] !== clusterIP) {
      found.push(invalidValue(field, ips, "first value must match `clusterIP`"));
    }
  } else if (ips.length > 0) {
    found.push(invalidValue(field, ips, "must be empty when `clusterIP` is not specified"));
  }
  const seen = new Set<string>();
  for (const [index, family] of families.entries()) {
    const at = `spec.ipFamilies[${index}]`;
    oneOf(...FAMILIES)(family, at, found);
    if (seen.has(family)) found.push(fieldErrors.duplicate(at, family));
    seen.add(family);
  }
  const policies = oneOf("PreferDualStack", "RequireDualStack", "SingleStack");
  policies(spec["ipFamilyPolicy"], "spec.ipFamilyPolicy", found);
  const known = listOf<string>(objectOf(old)["clusterIPs"]);
  let isGood = true;
  for (const [index, ip] of ips.entries()) {
    if (index === 0 && ip === "None") {
      if (ips.length === 1) continue;
      found.push(invalidValue(field, ips, "'None' must be the first and only value"));
      isGood = false;
    } else if (!known.includes(ip)) {
      const before = found.length;
      texts(isIp)(ip, `${field}[${index}]`, found);
      isGood &&= found.length === before;
    }
  }
  if (ips.length > 2) found.push(invalidValue(field, ips, "may only hold up to 2 values"));
  if (!isGood) return;
  if (ips.length === 2 && isIpV4Text(ips[0] ?? "") === isIpV4Text(ips[1] ?? "")) {
    const text = "may specify no more than one IP for each IP family";
    found.push(invalidValue(field, ips, text));
  }
  if (isHeadless(spec)) return;
  for (const [index, ip] of ips.entries()) {
    const family = families[index];
    const own = isIpV4Text(ip) ? "IPv4" : "IPv6";
    if (family === undefined || family === own || !FAMILIES.includes(family)) continue;
    const text = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``;
    found.push(invalidValue(`${field}[${index}]`, ip, text));
  }
}

const LOAD_BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'";

function balancing(spec: ObjectFields, found: FieldError[]): void {
  const isBalancer = spec["type"] === "LoadBalancer";
  const ranges = listOf<string>(spec["loadBalancerSourceRanges"]);
  const at = "spec.LoadBalancerSourceRanges";
  if (!isBalancer) forbidden(LOAD_BALANCER_ONLY)(ranges, at, found);
  each((value, field) => texts(isNetwork)(textOf(value).trim(), field, found))(ranges, at, found);
  const { allocateLoadBalancerNodePorts, loadBalancerClass } = spec;
  const allocate = "spec.allocateLoadBalancerNodePorts";
  if (!isBalancer) forbidden(LOAD_BALANCER_ONLY)(allocateLoadBalancerNodePorts, allocate, found);
  if (isAbsent(loadBalancerClass)) return;
  if (isBalancer) texts(isQualifiedName)(loadBalancerClass, "spec.loadBalancerClass", found);
  else forbidden(LOAD_BALANCER_ONLY)(loadBalancerClass, "spec.loadBalancerClass", found);
}

/** Whether balancers ask a node whether it has pods. */
export function needsHealthCheck(spec: ObjectFields): boolean {
  return spec["type"] === "LoadBalancer" && spec["externalTrafficPolicy"] === "Local";
}

function traffic(spec: ObjectFields, found: FieldError[]): void {
  const { type, externalTrafficPolicy = "", internalTrafficPolicy, healthCheckNodePort } = spec;
  const hasExternal = type === "ClusterIP" && listOf(spec["externalIPs"]).length > 0;
  const isExternal = type === "LoadBalancer" || type === "NodePort" || hasExternal;
  const at = "spec.externalTrafficPolicy";
  const policies = oneOf("Cluster", "Local");
  if (isExternal) needed(policies)(externalTrafficPolicy, at, found);
  else if (externalTrafficPolicy !== "") {
    const text = "may only be set for externally-accessible services";
    found.push(invalidValue(at, externalTrafficPolicy, text));
  }
  const port = numberOf(healthCheckNodePort);
  const health = "spec.healthCheckNodePort";
  if (needsHealthCheck(spec)) {
    if (port !== 0) PORT(port, health, found);
  } else if (port !== 0) {
    const text =
      "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    found.push(invalidValue(health, port, text));
  }
  policies(internalTrafficPolicy, "spec.internalTrafficPolicy", found);
  const distributions = oneOf("PreferClose", "PreferSameZone", "PreferSameNode");
  distributions(spec["trafficDistribution"], "spec.trafficDistribution", found);
}

const TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const MAX_AFFINITY_SECONDS = 86_400;

function affinity(spec: ObjectFields, found: FieldError[]): void {
  const { sessionAffinity, sessionAffinityConfig } = spec;
  needed(oneOf("ClientIP", "None"))(sessionAffinity, "spec.sessionAffinity", found);
  if (sessionAffinity !== "ClientIP") return;
  const { timeoutSeconds } = objectOf(objectOf(sessionAffinityConfig)["clientIP"]);
  const seconds = numberOf(timeoutSeconds);
  if (seconds > 0 && seconds <= MAX_AFFINITY_SECONDS) return;
  const at = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
  const text = `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`;
  found.push(invalidValue(at, seconds, text));
}

function externalName(spec: ObjectFields, found: FieldError[]): void {
  const text = "may not be set for ExternalName services";
  for (const name of ["clusterIPs", "ipFamilies", "ipFamilyPolicy"]) {
    forbidden(text)(spec[name], `spec.${name}`, found);
  }
  const name = textOf(spec["externalName"]);
  const host = name.endsWith(".") ? name.slice(0, -1) : name;
  needed(texts((one) => isDns1123Subdomain(one)))(host, "spec.externalName", found);
}

export function serviceErrors(service: ObjectFields, old: ObjectFields | undefined): FieldError[] {
  const found: FieldError[] = [];
  const spec = objectOf(service["spec"]);
  const before = old && objectOf(old["spec"]);
  const { type = "" } = spec;
  const headless = isHeadless(spec);
  if (listOf(spec["ports"]).length === 0 && !headless && type !== "ExternalName") {
    found.push(required("spec.ports"));
  }
  if (headless && (type === "LoadBalancer" || type === "NodePort")) {
    const text = `may not be set to 'None' for ${type} services`;
    found.push(invalidValue("spec.clusterIPs[0]", "None", text));
  }
  if (type === "ExternalName") externalName(spec, found);
  ports(spec, found);
  LABELS(spec["selector"], "spec.selector", found);
  affinity(spec, found);
  addresses(spec, before, found);
  const known = listOf<string>(objectOf(before)["externalIPs"]);
  for (const [index, ip] of listOf<string>(spec["externalIPs"]).entries()) {
    const at = `spec.externalIPs[${index}]`;
    const wrong = known.includes(ip) ? [] : isIp(ip);
    for (const text of wrong) found.push(invalidValue(at, ip, text));
    if (wrong.length === 0) endpointIp(ip, at, found);
  }
  needed((value, field) => {
    if (!TYPES.includes(textOf(value))) found.push(notSupported(field, value, TYPES));
  })(type, "spec.type", found);
  portConflicts(spec, found);
  balancing(spec, found);
  traffic(spec, found);
  return found;
}

export function changedServiceErrors(service: ObjectFields, old: ObjectFields): FieldError[] {
  const found: FieldError[] = [];
  const [spec, before] = [objectOf(service["spec"]), objectOf(old["spec"])];
  const isExternal = spec["type"] === "ExternalName" || before["type"] === "ExternalName";
  const bothHeadless = isHeadless(spec) && isHeadless(before);
  if (!isExternal && !bothHeadless) addressChanges(spec, before, found);
  if (needsHealthCheck(spec) && needsHealthCheck(before)) {
    if (spec["healthCheckNodePort"] !== before["healthCheckNodePort"]) {
      const at = "spec.healthCheckNodePort";
      found.push(fieldErrors.fieldForbidden(at, "field is immutable"));
    }
  }
  if (spec["type"] === "LoadBalancer" && before["type"] === "LoadBalancer") {
    const [present, had] = [spec["loadBalancerClass"], before["loadBalancerClass"]];
    if ((present ?? null) !== (had ?? null)) {
      const text = "may not change once set";
      found.push(invalidValue("spec.loadBalancerClass", present ?? null, text));
    }
  }
  return [...found, ...serviceErrors(service, old)];
}

function addressChanges(spec: ObjectFields, before: ObjectFields, found: FieldError[]): void {
  const check = (name: string, first: string, shownAs: string): void => {
    const [now, had] = [listOf<string>(spec[name]), listOf<string>(before[name])];
    const at = `spec.${name}[0]`;
    if (had.length > now.length && now.length === 0) {
      found.push(invalidValue(at, now, `primary ${first} can not be unset`));
    }
    const compared = had.length === now.length ? now.length : Math.min(1, now.length, had.length);
    for (let index = 0; index < compared; index++) {
      if (now[index] === had[index]) continue;
      const place = shownAs === name ? `spec.${name}[${index}]` : at;
      found.push(invalidValue(place, now, "may not change once set"));
    }
    if (had.length > now.length && now.length === 1 && spec["ipFamilyPolicy"] !== "SingleStack") {
      const text = `must be set to 'SingleStack' when releasing the secondary ${first}`;
      found.push(invalidValue("spec.ipFamilyPolicy", spec["ipFamilyPolicy"] ?? null, text));
    }
  };
  check("clusterIPs", "clusterIP", "clusterIPs");
  if (!isHeadless(spec) && !isHeadless(before)) check("ipFamilies", "ipFamily", "");
}

const ADDRESS: Rule = all(
  struct({
    ip: texts(isIp),
    hostname: named(isDns1123Label),
    nodeName: named((name) => isDns1123Subdomain(name)),
  }),
  (value, field, found) => endpointIp(objectOf(value)["ip"], `${field}.ip`, found),
);

/** @param isNamed where there are several */
function endpointPort(isNamed: boolean): Rule {
  return fields({
    name: isNamed ? needed(texts(isDns1123Label)) : named(isDns1123Label),
    port: PORT,
    protocol: PROTOCOL,
    appProtocol: named(isQualifiedName),
  });
}

export const SUBSETS: Rule = each((value, field, found) => {
  const { addresses: ready, notReadyAddresses, ports: list } = objectOf(value);
  if (listOf(ready).length === 0 && listOf(notReadyAddresses).length === 0) {
    found.push(required(field, "must specify `addresses` or `notReadyAddresses`"));
  }
  each(ADDRESS)(ready, `${field}.addresses`, found);
  each(ADDRESS)(notReadyAddresses, `${field}.notReadyAddresses`, found);
  each(endpointPort(listOf(list).length > 1))(list, `${field}.ports`, found);
});
