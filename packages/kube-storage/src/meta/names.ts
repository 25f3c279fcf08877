/**
 * Rules for names, label keys and values (apimachinery: api/validate/content, util/validation).
 * Each function returns what is wrong with the value, in Kubernetes' words; nothing for a good one.
 */
import { utf8Length } from "@quorate/proto";

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
/** The pattern of a DNS-1123 subdomain, for texts of errors. */
export const SUBDOMAIN_PATTERN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const VALUE = `(${KEY})?`;
const CONFIG_KEY = "[-._a-zA-Z0-9]+";

const labelPattern = new RegExp(`^${LABEL}$`);
const subdomainPattern = new RegExp(`^${SUBDOMAIN_PATTERN}$`);
const label1035Pattern = new RegExp(`^${LABEL_1035}$`);
const keyPattern = new RegExp(`^${KEY}$`);
const valuePattern = new RegExp(`^${VALUE}$`);
const configKeyPattern = new RegExp(`^${CONFIG_KEY}$`);

export const MAX_LABEL_BYTES = 63;
export const MAX_SUBDOMAIN_BYTES = 253;

const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " +
  "must start and end with an alphanumeric character";
const SUBDOMAIN_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or " +
  "'.', and must start and end with an alphanumeric character";
const LABEL_1035_TEXT =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an " +
  "alphabetic character, and end with an alphanumeric character";
const KEY_TEXT =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
  "alphanumeric character";
const VALUE_TEXT =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or " +
  "'.', and must start and end with an alphanumeric character";
const CONFIG_KEY_TEXT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";

/** The text for a value that a regular expression refuses. */
export function patternText(text: string, pattern: string, ...examples: string[]): string {
  const shown = examples.map((example) => `'${example}', `).join(" or ");
  const prefix = examples.length === 0 ? " (" : ` (e.g. ${shown}`;
  return `${text}${prefix}regex used for validation is '${pattern}')`;
}

/** Kubernetes says "characters" for some limits, and counts bytes for all. */
type Unit = "bytes" | "characters";

function atMost(value: string, bytes: number, unit: Unit): string[] {
  return utf8Length(value) > bytes ? [`must be no more than ${bytes} ${unit}`] : [];
}

/** A DNS label (RFC 1123): up to 63 of a-z, 0-9 and "-". */
export function isDns1123Label(value: string): readonly string[] {
  const errors = atMost(value, MAX_LABEL_BYTES, "characters");
  if (labelPattern.test(value)) return errors;
  if (subdomainPattern.test(value)) errors.push("must not contain dots");
  else errors.push(patternText(LABEL_TEXT, LABEL, "my-name", "123-abc"));
  return errors;
}

/** A DNS subdomain (RFC 1123): labels with dots between, up to 253 bytes. */
export function isDns1123Subdomain(value: string, unit: Unit = "characters"): readonly string[] {
  const errors = atMost(value, MAX_SUBDOMAIN_BYTES, unit);
  if (!subdomainPattern.test(value)) {
    errors.push(patternText(SUBDOMAIN_TEXT, SUBDOMAIN_PATTERN, "example.com"));
  }
  return errors;
}

/** A DNS label (RFC 1035): one that begins with a letter. */
export function isDns1035Label(value: string): readonly string[] {
  const errors = atMost(value, MAX_LABEL_BYTES, "characters");
  if (!label1035Pattern.test(value)) {
    errors.push(patternText(LABEL_1035_TEXT, LABEL_1035, "my-name", "abc-123"));
  }
  return errors;
}

function keyText(): string {
  return patternText(KEY_TEXT, KEY, "MyName", "my.name", "123-abc");
}

/** A label key or other qualified name: a name of up to 63 bytes, after "prefix/" or alone. */
export function isQualifiedName(value: string): readonly string[] {
  const parts = value.split("/");
  if (parts.length > 2) {
    const hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    return [`a valid label key ${keyText()}${hint}`];
  }
  const errors: string[] = [];
  const name = parts.pop() ?? "";
  const [prefix] = parts;
  if (prefix === "") errors.push("prefix part must be non-empty");
  else if (prefix !== undefined)
    errors.push(...isDns1123Subdomain(prefix, "bytes").map((text) => `prefix part ${text}`));
  if (name === "") errors.push("name part must be non-empty");
  else errors.push(...atMost(name, MAX_LABEL_BYTES, "bytes").map((text) => `name part ${text}`));
  if (!keyPattern.test(name)) errors.push(`name part ${keyText()}`);
  return errors;
}

/** A label's value: up to 63 bytes, or empty. */
export function isLabelValue(value: string): readonly string[] {
  const errors = atMost(value, MAX_LABEL_BYTES, "bytes");
  if (!valuePattern.test(value)) {
    errors.push(patternText(VALUE_TEXT, VALUE, "MyValue", "my_value", "12345"));
  }
  return errors;
}

/** A key of a ConfigMap's or Secret's data. */
export function isConfigMapKey(value: string): readonly string[] {
  const errors = atMost(value, MAX_SUBDOMAIN_BYTES, "characters");
  if (!configKeyPattern.test(value)) {
    errors.push(patternText(CONFIG_KEY_TEXT, CONFIG_KEY, "key.name", "KEY_NAME", "key-name"));
  }
  if (value === ".") errors.push("must not be '.'");
  else if (value === "..") errors.push("must not be '..'");
  else if (value.startsWith("..")) errors.push("must not start with '..'");
  return errors;
}

/** A name that can be a segment of a path or of a key in the store. */
export function isPathSegmentName(value: string): readonly string[] {
  if (value === "." || value === "..") return [`may not be '${value}'`];
  return isPathSegmentPrefix(value);
}

/** The beginning of such a name. */
export function isPathSegmentPrefix(value: string): readonly string[] {
  return ["/", "%"]
    .filter((part) => value.includes(part))
    .map((part) => `may not contain '${part}'`);
}

/**
 * The rule for the names of a kind.
 * @param prefix whether the value is a generateName, to which characters will be added
 */
export type NameRule = (name: string, prefix: boolean) => readonly string[];

/** A trailing dash is good in a prefix: something follows it. */
function withoutTrailingDash(name: string): string {
  return name.length > 1 && name.endsWith("-") ? `${name.slice(0, -2)}a` : name;
}

/** The usual rule. */
export const nameIsDnsSubdomain: NameRule = (name, prefix) =>
  isDns1123Subdomain(prefix ? withoutTrailingDash(name) : name);

/** The rule for namespaces. */
export const nameIsDnsLabel: NameRule = (name, prefix) =>
  isDns1123Label(prefix ? withoutTrailingDash(name) : name);

/** The weakest rule, which all names keep; the only one for roles, for example. */
export const nameIsPathSegment: NameRule = (name, prefix) =>
  prefix ? isPathSegmentPrefix(name) : isPathSegmentName(name);
