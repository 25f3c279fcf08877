/** The part "kms" of an EncryptionConfiguration (apiserver: apis/apiserver/validation). */

import { parseDuration } from "@quorate/host";
import type { FieldError } from "@quorate/kube-storage";
import { invalidValue, required } from "@quorate/kube-storage";

const DEFAULT_TIMEOUT_MS = 3000;
const V1 =
  "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead. " +
  "This server has no KMSv1, as kube-apiserver without --feature-gates=KMSv1=true.";

/** A KMS v2 plugin. */
export interface KmsConfig {
  readonly name: string;
  /** "unix:///path". */
  readonly endpoint: string;
  readonly timeoutMs: number;
}

export const KMS_FIELDS: readonly string[] = [
  "apiVersion",
  "name",
  "endpoint",
  "timeout",
  "cachesize",
];

/**
 * Reads the fields. Adds to `errors` what is wrong with them.
 * @param names of the providers before, to which its own is added
 */
export function parseKms(
  fields: Readonly<Record<string, unknown>>,
  path: string,
  names: Set<string>,
  errors: FieldError[],
): KmsConfig {
  const { apiVersion = "v1", name = "", endpoint = "", timeout, cachesize } = fields;
  if (typeof name !== "string" || typeof endpoint !== "string")
    throw new Error(`${path}: expected texts`);
  if (name === "")
    errors.push(required(`${path}.name`, "name is a mandatory field for a provider"));
  if (name.includes(":"))
    errors.push(
      invalidValue(`${path}.name`, name, `invalid KMS provider name ${name}, must not contain ':'`),
    );
  if (names.has(name)) {
    const why = `duplicate KMS provider name ${name}, names must be unique`;
    errors.push(invalidValue(`${path}.name`, name, why));
  }
  names.add(name);
  const timeoutMs = timeoutOf(timeout, path);
  if (timeoutMs <= 0)
    errors.push(invalidValue(`${path}.timeout`, timeout, "timeout should be a positive value"));
  checkEndpoint(endpoint, `${path}.endpoint`, errors);
  if (apiVersion !== "v1" && cachesize !== undefined && cachesize !== null)
    errors.push(invalidValue(`${path}.cachesize`, cachesize, "cachesize is not supported in v2"));
  if (apiVersion === "v1") errors.push(invalidValue(`${path}.apiVersion`, apiVersion, V1));
  else if (apiVersion !== "v2") {
    const why = `unsupported apiVersion ${apiVersion} for KMS provider, only v1 and v2 are supported`;
    errors.push(invalidValue(`${path}.apiVersion`, apiVersion, why));
  }
  return { name, endpoint, timeoutMs };
}

function timeoutOf(timeout: unknown, path: string): number {
  if (timeout === undefined || timeout === null) return DEFAULT_TIMEOUT_MS;
  const timeoutMs = typeof timeout === "string" ? parseDuration(timeout) : undefined;
  if (typeof timeoutMs === "number") return timeoutMs;
  throw new Error(`${path}.timeout: expected a duration such as 3s`);
}

function checkEndpoint(endpoint: string, path: string, errors: FieldError[]): void {
  if (endpoint === "") {
    errors.push(invalidValue(path, "", "endpoint is a mandatory field for a kms"));
    return;
  }
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(endpoint)?.[1] ?? "";
  if (scheme === "unix") return;
  const why = `unsupported scheme ${JSON.stringify(scheme)} for KMS provider, only unix is supported`;
  errors.push(invalidValue(path, endpoint, why));
}
