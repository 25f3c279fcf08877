/**
 * Ingresses, NetworkPolicies, EndpointSlices, ServiceCIDRs and IPAddresses (kubernetes:
 * apis/networking, apis/discovery).
 */
import {
  type FieldError,
  fieldErrors,
  invalidValue,
  isDns1123Label,
  isDns1123Subdomain,
  isLabelValue,
  isPathSegmentName,
  isQualifiedName,
  type KubeObject,
  notSupported,
  required,
} from "@quorate/kube-storage";
import { maskedBytes, shownIp } from "../../crd/validation/ip.ts";
import {
  all,
  each,
  fields,
  IMMUTABLE,
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
  SELECTOR,
  struct,
  type TextCheck,
  textOf,
  texts,
  within,
} from "./rules.ts";
import {
  DOMAIN_PATH,
  endpointIp,
  FULL_DOMAIN,
  ipBytes,
  isCanonicalIp,
  isIp,
  isIpV4Text,
  isNetwork,
  isPortName,
  isWildcardSubdomain,
  networkOf,
  PORT,
} from "./texts.ts";

const SUBDOMAIN = texts((name) => isDns1123Subdomain(name));

const REFERENCE = fields({
  apiGroup: (value, field, found) => {
    if (!isAbsent(value)) SUBDOMAIN(value, field, found);
  },
  kind: needed(texts(isPathSegmentName)),
  name: needed(texts(isPathSegmentName)),
});

const BACKEND: Rule = (value, field, found) => {
  const { resource, service } = objectOf(value);
  const say = (text: string): number => found.push(invalidValue(field, "", text));
  if (!isAbsent(resource) && !isAbsent(service)) {
    say("cannot set both resource and service backends");
  } else if (!isAbsent(resource)) REFERENCE(resource, `${field}.resource`, found);
  else if (isAbsent(service)) say("resource or service backend is required");
  else {
    const { name, port } = objectOf(service);
    needed(texts(isDns1123Label))(name, `${field}.service.name`, found);
    const portName = textOf(objectOf(port)["name"]);
    const number = numberOf(objectOf(port)["number"]);
    const at = `${field}.service.port`;
    if (portName !== "" && number !== 0) say("cannot set both port name & port number");
    else if (portName !== "") texts(isPortName)(portName, `${at}.name`, found);
    else if (number !== 0) PORT(number, `${at}.number`, found);
    else found.push(required(field, "port name or number is required"));
  }
};

const BAD_SEQUENCES = ["//", "/./", "/../", "%2f", "%2F"];
const BAD_ENDS = ["/..", "/."];

const HTTP_PATH: Rule = (value, field, found) => {
  const { pathType, backend } = objectOf(value);
  const path = textOf(objectOf(value)["path"]);
  const at = `${field}.path`;
  const say = (text: string): number => found.push(invalidValue(at, path, text));
  const type = `${field}.pathType`;
  if (isAbsent(pathType)) {
    found.push(required(type, "pathType must be specified"));
    return;
  }
  const isFree = pathType === "ImplementationSpecific";
  if (pathType === "Exact" || pathType === "Prefix" || isFree) {
    if (!path.startsWith("/") && !(isFree && path === "")) say("must be an absolute path");
    for (const one of isFree ? [] : BAD_SEQUENCES) {
      if (path.includes(one)) say(`must not contain '${one}'`);
    }
    for (const one of isFree ? [] : BAD_ENDS) {
      if (path.endsWith(one)) say(`cannot end with '${one}'`);
    }
  } else {
    const types = ["Exact", "ImplementationSpecific", "Prefix"];
    found.push(notSupported(type, pathType, types));
  }
  BACKEND(backend, `${field}.backend`, found);
};

const HOST: Rule = (value, field, found) => {
  const host = textOf(value);
  texts(host.includes("*") ? isWildcardSubdomain : (name) => isDns1123Subdomain(name))(
    host,
    field,
    found,
  );
};

const INGRESS_RULE: Rule = struct({
  host(value, field, found) {
    const host = textOf(value);
    if (host === "") return;
    if (ipBytes(host) !== undefined) {
      found.push(invalidValue(field, host, "must be a DNS name, not an IP address"));
    }
    HOST(host, field, found);
  },
  http: fields({ paths: needed(each(HTTP_PATH)) }),
});

const INGRESS_SPEC: Rule = all(
  (value, field, found) => {
    const { rules, defaultBackend } = objectOf(value);
    if (listOf(rules).length > 0 || !isAbsent(defaultBackend)) return;
    const text = "either `defaultBackend` or `rules` must be specified";
    found.push(invalidValue(field, rules ?? null, text));
  },
  struct({
    defaultBackend: (value, field, found) => {
      if (!isAbsent(value)) BACKEND(value, field, found);
    },
    rules: each(INGRESS_RULE),
    tls: each(fields({ hosts: each(HOST), secretName: named((name) => isDns1123Subdomain(name)) })),
    ingressClassName: (value, field, found) => {
      if (!isAbsent(value)) SUBDOMAIN(value, field, found);
    },
  }),
);

const CLASS_ANNOTATION = "kubernetes.io/ingress.class";

export function ingressErrors(ingress: KubeObject, old: KubeObject | undefined): FieldError[] {
  const found: FieldError[] = [];
  INGRESS_SPEC(ingress["spec"], "spec", found);
  const annotation = ingress.metadata.annotations?.[CLASS_ANNOTATION];
  const { ingressClassName } = objectOf(ingress["spec"]);
  const differs = annotation !== undefined && annotation !== ingressClassName;
  if (old === undefined && differs && !isAbsent(ingressClassName)) {
    const text = "must match `ingressClassName` when both are specified";
    found.push(invalidValue(`annotations.${CLASS_ANNOTATION}`, annotation, text));
  }
  return found;
}

const MAX_CONTROLLER_CHARS = 250;

const PARAMETERS: Rule = all(REFERENCE, (value, field, found) => {
  if (isAbsent(value)) return;
  const { scope, namespace } = objectOf(value);
  needed(oneOf("Cluster", "Namespace"))(scope, `${field}.scope`, found);
  const at = `${field}.namespace`;
  const text = `\`parameters.scope\` is set to '${String(scope)}'`;
  if (scope === "Namespace") {
    if (isAbsent(namespace)) found.push(required(at, text));
    else texts(isDns1123Label)(namespace, at, found);
  }
  if (scope === "Cluster" && !isAbsent(namespace)) {
    found.push(fieldErrors.fieldForbidden(at, text));
  }
});

export const INGRESS_CLASS: Rule = struct({
  controller(value, field, found) {
    if (textOf(value).length > MAX_CONTROLLER_CHARS) {
      found.push(fieldErrors.tooLong(field, MAX_CONTROLLER_CHARS));
    }
    DOMAIN_PATH(value, field, found);
  },
  parameters: PARAMETERS,
});

const POLICY_PORT: Rule = (value, field, found) => {
  const { protocol, port, endPort } = objectOf(value);
  oneOf("TCP", "UDP", "SCTP")(protocol, `${field}.protocol`, found);
  const [at, end] = [`${field}.port`, `${field}.endPort`];
  const say = (shown: unknown, text: string): number => found.push(invalidValue(end, shown, text));
  if (typeof port === "number") {
    PORT(port, at, found);
    if (isAbsent(endPort)) return;
    if (numberOf(endPort) < port) say(port, "must be greater than or equal to `port`");
    PORT(endPort, end, found);
  } else if (isAbsent(port)) {
    if (!isAbsent(endPort)) say(endPort, "may not be specified when `port` is not specified");
  } else {
    if (!isAbsent(endPort)) say(endPort, "may not be specified when `port` is non-numeric");
    texts(isPortName)(port, at, found);
  }
};

const IP_BLOCK: Rule = (value, field, found) => {
  const cidr = textOf(objectOf(value)["cidr"]);
  needed(texts(isNetwork))(cidr, `${field}.cidr`, found);
  const network = networkOf(cidr);
  if (network === undefined) return;
  for (const [index, except] of listOf<string>(objectOf(value)["except"]).entries()) {
    const at = `${field}.except[${index}]`;
    texts(isNetwork)(except, at, found);
    const inner = networkOf(except);
    if (inner === undefined) continue;
    const masked = maskedBytes(inner.bytes, network.bits);
    const own = maskedBytes(network.bytes, network.bits);
    const isInside = masked.length === own.length && masked.every((byte, i) => byte === own[i]);
    if (!isInside || inner.bits <= network.bits) {
      found.push(invalidValue(at, except, "must be a strict subset of `cidr`"));
    }
  }
};

const PEER: Rule = (value, field, found) => {
  const { podSelector, namespaceSelector, ipBlock } = objectOf(value);
  SELECTOR(podSelector, `${field}.podSelector`, found);
  SELECTOR(namespaceSelector, `${field}.namespaceSelector`, found);
  if (!isAbsent(ipBlock)) IP_BLOCK(ipBlock, `${field}.ipBlock`, found);
  const selects = !isAbsent(podSelector) || !isAbsent(namespaceSelector);
  if (!selects && isAbsent(ipBlock)) found.push(required(field, "must specify a peer"));
  if (selects && !isAbsent(ipBlock)) {
    const text = "may not specify both ipBlock and another peer";
    found.push(fieldErrors.fieldForbidden(field, text));
  }
};

export const NETWORK_POLICY: Rule = struct({
  podSelector: SELECTOR,
  ingress: each(fields({ ports: each(POLICY_PORT), from: each(PEER) })),
  egress: each(fields({ ports: each(POLICY_PORT), to: each(PEER) })),
  policyTypes(value, field, found) {
    const types = listOf<string>(value);
    if (types.length > 2) {
      found.push(invalidValue(field, types, "may not specify more than two policyTypes"));
    } else each(oneOf("Ingress", "Egress"))(types, field, found);
  },
});

const MAX_ENDPOINTS = 1000;
const MAX_ADDRESSES = 100;
const MAX_SLICE_PORTS = 20_000;
const MAX_HINTS = 8;
const MAX_TOPOLOGY_LABELS = 16;

function hints(name: string, rule: Rule): Rule {
  return (value, field, found) => {
    const list = listOf(objectOf(value)[name]);
    if (list.length > MAX_HINTS) {
      found.push(fieldErrors.tooMany(`${field}.${name}`, list.length, MAX_HINTS));
    } else each(fields({ name: rule }), "name")(list, `${field}.${name}`, found);
  };
}

const HINTS: Rule = all(hints("forZones", texts(isLabelValue)), hints("forNodes", SUBDOMAIN));

function endpoint(type: string): Rule {
  return (value, field, found) => {
    const { nodeName, hostname, deprecatedTopology } = objectOf(value);
    const list = listOf<string>(objectOf(value)["addresses"]);
    const at = `${field}.addresses`;
    if (list.length === 0) found.push(required(at, "must contain at least 1 address"));
    if (list.length > MAX_ADDRESSES) {
      found.push(fieldErrors.tooMany(at, list.length, MAX_ADDRESSES));
    }
    for (const [index, address] of list.slice(0, MAX_ADDRESSES).entries()) {
      const place = `${at}[${index}]`;
      if (type === "FQDN") FULL_DOMAIN(address, place, found);
      if (type !== "IPv4" && type !== "IPv6") continue;
      const wrong = type === "IPv4" ? isIp(address) : isCanonicalIp(address);
      for (const text of wrong) found.push(invalidValue(place, address, text));
      if (wrong.length > 0) continue;
      if (isIpV4Text(address) !== (type === "IPv4")) {
        found.push(invalidValue(at, address, `must be an ${type} address`));
      }
      endpointIp(address, place, found);
    }
    if (!isAbsent(nodeName)) SUBDOMAIN(nodeName, `${field}.nodeName`, found);
    const labels = objectOf(deprecatedTopology);
    const topology = `${field}.deprecatedTopology`;
    const { length } = Object.keys(labels);
    if (length > MAX_TOPOLOGY_LABELS) {
      found.push(fieldErrors.tooMany(topology, length, MAX_TOPOLOGY_LABELS));
    }
    LABELS(labels, topology, found);
    if (!isAbsent(hostname)) texts(isDns1123Label)(hostname, `${field}.hostname`, found);
    HINTS(objectOf(value)["hints"], `${field}.hints`, found);
  };
}

const SLICE_PORTS: Rule = (value, field, found) => {
  const list = listOf(value);
  if (list.length > MAX_SLICE_PORTS) {
    found.push(fieldErrors.tooMany(field, list.length, MAX_SLICE_PORTS));
    return;
  }
  const names = new Set<string>();
  for (const [index, port] of list.entries()) {
    const at = `${field}[${index}]`;
    const name = textOf(port["name"]);
    named(isDns1123Label)(name, `${at}.name`, found);
    if (names.has(name)) found.push(fieldErrors.duplicate(`${at}.name`, name));
    names.add(name);
    PROTOCOL(port["protocol"], `${at}.protocol`, found);
    if (!isAbsent(port["appProtocol"])) {
      texts(isQualifiedName)(port["appProtocol"], `${at}.appProtocol`, found);
    }
  }
};

export const ENDPOINT_SLICE: Rule = (value, _field, found) => {
  const slice: ObjectFields = objectOf(value);
  const type = textOf(slice["addressType"]);
  needed(oneOf("FQDN", "IPv4", "IPv6"))(type, "addressType", found);
  SLICE_PORTS(slice["ports"], "ports", found);
  const endpoints = listOf(slice["endpoints"]);
  if (endpoints.length > MAX_ENDPOINTS) {
    found.push(fieldErrors.tooMany("endpoints", endpoints.length, MAX_ENDPOINTS));
  } else each(endpoint(type))(endpoints, "endpoints", found);
};

/** A network as it is shown. */
const isCanonicalNetwork: TextCheck = (text) => {
  const problems = isNetwork(text);
  const network = networkOf(text);
  if (problems.length > 0 || network === undefined) return problems;
  const shown = `${shownIp(network.bytes)}/${network.bits}`;
  return shown === text ? [] : [`must be in canonical form (${JSON.stringify(shown)})`];
};

export const SERVICE_CIDR: Rule = (value, field, found) => {
  const at = within(field, "cidrs");
  const cidrs = listOf<string>(objectOf(value)["cidrs"]);
  if (cidrs.length === 0) found.push(required(at, "at least one CIDR required"));
  else if (cidrs.length > 2) {
    found.push(invalidValue(at, {}, "may only hold up to 2 values"));
  } else {
    each(texts(isCanonicalNetwork))(cidrs, at, found);
    const [first, second] = cidrs.map((cidr) => networkOf(cidr)?.bytes.length);
    if (first === undefined || first !== second) return;
    const example = "192.168.0.0/24 and 2001:db8::/64";
    const text = `may specify no more than one IP for each IP family, i.e ${example}`;
    found.push(invalidValue(at, cidrs, text));
  }
};

/** A second family may be added; nothing else changes. */
export function changedServiceCidrErrors(object: KubeObject, old: KubeObject): FieldError[] {
  const at = "spec.cidrs";
  const of = ({ spec }: KubeObject): readonly string[] => listOf<string>(objectOf(spec)["cidrs"]);
  const [cidrs, before] = [of(object), of(old)];
  const found: FieldError[] = [];
  const isAdded = before.length === 1 && cidrs.length === 2;
  if (cidrs.length !== before.length && !isAdded) return [invalidValue(at, cidrs, IMMUTABLE)];
  for (const [i, cidr] of before.entries())
    if (cidr !== cidrs[i]) found.push(invalidValue(`${at}[${i}]`, cidrs[i] ?? "", IMMUTABLE));
  if (isAdded) SERVICE_CIDR(object["spec"], "spec", found);
  return found;
}

/** Whose the address is. */
export const IP_ADDRESS: Rule = struct({
  parentRef: needed(
    struct({
      group: named(isDns1123Subdomain),
      resource: needed(texts(isPathSegmentName)),
      name: needed(texts(isPathSegmentName)),
      namespace: texts(isPathSegmentName),
    }),
  ),
});
