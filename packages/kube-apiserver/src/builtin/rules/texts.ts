/** What is wrong with names, addresses and paths (apimachinery: util/validation). */
import {
  type FieldError,
  invalidValue,
  isDns1123Label,
  isDns1123Subdomain,
  patternText,
  required,
  SUBDOMAIN_PATTERN,
} from "@quorate/kube-storage";
import {
  addressIs,
  hasLeadingZero,
  isCidr,
  isMapped,
  maskedBytes,
  parseIpV4,
  parseIpV6,
  shownIp,
} from "../../crd/validation/ip.ts";
import { isAbsent, type Rule, type TextCheck, textOf } from "./rules.ts";

const MAX_PORT_NAME_CHARS = 15;

/** The name of a port: up to 15 of a-z, 0-9 and "-", with a letter. */
export const isPortName: TextCheck = (name) => {
  const errors: string[] = [];
  if (name.length > MAX_PORT_NAME_CHARS) errors.push("must be no more than 15 characters");
  if (!/^[-a-z0-9]+$/.test(name)) {
    errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!/[a-z]/.test(name)) errors.push("must contain at least one letter (a-z)");
  if (name.includes("--")) errors.push("must not contain consecutive hyphens");
  if (name.startsWith("-") || name.endsWith("-")) {
    errors.push("must not begin or end with a hyphen");
  }
  return errors;
};

const PORT_RANGE = "must be between 1 and 65535, inclusive";

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535;
}

/** The number of a port; absent is 0. */
export const PORT: Rule = (value, field, found) => {
  const port = (value ?? 0) as number;
  if (!isPort(port)) found.push(invalidValue(field, port, PORT_RANGE));
};

/** A port's number or name; absent is 0. */
export const PORT_OR_NAME: Rule = (value, field, found) => {
  if (typeof value !== "string") PORT(value, field, found);
  else for (const text of isPortName(value)) found.push(invalidValue(field, value, text));
};

/** The name of an environment variable. */
export const isVariableName: TextCheck = (name) => {
  const text =
    "a valid environment variable name must consist only of printable ASCII characters other " +
    "than '='";
  return /^[ -<>-~]*$/.test(name) ? [] : [text];
};

export const isHeaderName: TextCheck = (name) => {
  const text = "a valid HTTP header must consist of alphanumeric characters or '-'";
  return /^[-A-Za-z0-9]+$/.test(name) ? [] : [patternText(text, "[-A-Za-z0-9]+", "X-Header-Name")];
};

const WILDCARD_TEXT =
  "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which " +
  "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric " +
  "character";

/** A host such as "*.example.com". */
export const isWildcardSubdomain: TextCheck = (host) => {
  const rest = host.startsWith("*.") ? isDns1123Subdomain(host.slice(2)) : ["no wildcard"];
  return rest.length === 0
    ? []
    : [patternText(WILDCARD_TEXT, `\\*\\.${SUBDOMAIN_PATTERN}`, "*.example.com")];
};

export const isPercent: TextCheck = (text) => {
  const why = "a valid percent string must be a numeric string followed by an ending '%'";
  return /^[0-9]+%$/.test(text) ? [] : [patternText(why, "[0-9]+%", "1%", "93%")];
};

/** A name after a domain: "acme.io/foo". */
export const DOMAIN_PATH: Rule = (value, field, found) => {
  const text = textOf(value);
  if (text === "") {
    found.push(required(field));
    return;
  }
  const slash = text.indexOf("/");
  const [host, path] = [text.slice(0, Math.max(slash, 0)), text.slice(slash + 1)];
  if (host === "" || path === "") {
    found.push(invalidValue(field, text, 'must be a domain-prefixed path (such as "acme.io/foo")'));
    return;
  }
  for (const wrong of isDns1123Subdomain(host)) found.push(invalidValue(field, host, wrong));
  const pattern = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
  if (!/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(path)) {
    found.push(invalidValue(field, path, patternText("Invalid path", pattern)));
  }
};

/** A domain of two or more labels; it may end with a dot. */
export const FULL_DOMAIN: Rule = (value, field, found) => {
  const text = textOf(value);
  if (text === "") {
    found.push(required(field));
    return;
  }
  const name = text.endsWith(".") ? text.slice(0, -1) : text;
  const wrong = isDns1123Subdomain(name);
  const labels = name.split(".");
  if (wrong.length > 0) found.push(invalidValue(field, name, wrong.join(",")));
  else if (labels.length < 2) {
    const why = "should be a domain with at least two segments separated by dots";
    found.push(invalidValue(field, name, why));
  } else {
    const label = labels.find((one) => isDns1123Label(one).length > 0);
    if (label !== undefined) {
      found.push(invalidValue(field, label, isDns1123Label(label).join(",")));
    }
  }
};

/** The bytes of an address. */
export function ipBytes(text: string): number[] | undefined {
  return parseIpV4(text) ?? parseIpV6(text);
}

/** An address; the stricter forms of Go's netip. */
export const isIp: TextCheck = (text) => {
  const bytes = ipBytes(text);
  if (bytes === undefined) {
    return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"];
  }
  if (hasLeadingZero(text)) return ["must not have leading 0s"];
  return isMapped(bytes) ? ["must not be an IPv4-mapped IPv6 address"] : [];
};

/** An address in the form in which Go writes it. */
export const isCanonicalIp: TextCheck = (text) => {
  const errors = isIp(text);
  if (errors.length > 0) return errors;
  const shown = shownIp(ipBytes(text) ?? []);
  return shown === text ? [] : [`must be in canonical form (${JSON.stringify(shown)})`];
};

export function isIpV4Text(text: string): boolean {
  return parseIpV4(text) !== undefined;
}

/** A network: an address whose bits behind the prefix are 0, and the prefix's length. */
export const isNetwork: TextCheck = (text) => {
  if (!isCidr(text)) return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"];
  const { bytes, bits } = networkOf(text) ?? { bytes: [], bits: 0 };
  if (hasLeadingZero(text.split("/")[0] ?? "") || /\/0\d/.test(text)) {
    return ["must not have leading 0s in IP or prefix length"];
  }
  if (isMapped(bytes)) return ["must not have an IPv4-mapped IPv6 address"];
  const isMasked = maskedBytes(bytes, bits).every((byte, i) => byte === bytes[i]);
  return isMasked ? [] : ["must not have bits set beyond the prefix length"];
};

/** The address and the length of the prefix; undefined for no network. */
export function networkOf(
  text: string,
): { readonly bytes: readonly number[]; readonly bits: number } | undefined {
  if (!isCidr(text)) return undefined;
  const [address = "", bits = ""] = text.split("/");
  const bytes = ipBytes(address);
  return bytes && { bytes, bits: Number(bits) };
}

/** An address that another machine may have. */
export const endpointIp = (value: unknown, field: string, found: FieldError[]): void => {
  const text = textOf(value);
  const bytes = ipBytes(text);
  const say = (why: string): number => found.push(invalidValue(field, text, why));
  if (bytes === undefined) {
    say("must be a valid IP address");
    return;
  }
  if (addressIs.unspecified(bytes)) say(`may not be unspecified (${text})`);
  if (addressIs.loopback(bytes)) say("may not be in the loopback range (127.0.0.0/8, ::1/128)");
  if (addressIs.linkLocalUnicast(bytes)) {
    say("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  }
  if (addressIs.linkLocalMulticast(bytes)) {
    say("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
};

/** A path without "..". */
export const PATH_WITHOUT_BACKSTEPS: Rule = (value, field, found) => {
  const path = textOf(value);
  if (path.split("/").includes("..")) {
    found.push(invalidValue(field, path, "must not contain '..'"));
  }
};

/** A path below a directory. */
export const DESCENDING_PATH: Rule = (value, field, found) => {
  const path = textOf(value);
  if (path.startsWith("/")) found.push(invalidValue(field, path, "must be a relative path"));
  PATH_WITHOUT_BACKSTEPS(path, field, found);
};

/** Such a path whose first part does not begin with "..", which kubelet uses itself. */
export const LOCAL_PATH: Rule = (value, field, found) => {
  const path = textOf(value);
  DESCENDING_PATH(path, field, found);
  if (path.startsWith("..") && !path.startsWith("../")) {
    found.push(invalidValue(field, path, "must not start with '..'"));
  }
};

/** An amount of 0 or more, or a percentage; absent is good. */
export const COUNT_OR_PERCENT: Rule = (value, field, found) => {
  if (isAbsent(value)) return;
  if (typeof value === "string") {
    for (const text of isPercent(value)) found.push(invalidValue(field, value, text));
  } else if ((value as number) < 0) {
    found.push(invalidValue(field, value, "must be greater than or equal to 0"));
  }
};

/** A percentage of 100 at most, where it is one. */
export const AT_MOST_ALL: Rule = (value, field, found) => {
  if (percentOf(value) > 100) {
    found.push(invalidValue(field, value, "must not be greater than 100%"));
  }
};

/** The number before "%"; 0 for no percentage. */
function percentOf(value: unknown): number {
  return typeof value === "string" && isPercent(value).length === 0
    ? Number.parseInt(value, 10)
    : 0;
}

/** Whether the amount or percentage is 0. */
export function isZero(value: unknown): boolean {
  return typeof value === "number" ? value === 0 : percentOf(value) === 0;
}
