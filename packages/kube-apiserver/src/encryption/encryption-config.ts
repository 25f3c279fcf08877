/**
 * EncryptionConfiguration, the file of --encryption-provider-config (apiserver:
 * pkg/apis/apiserver/v1/types_encryption.go and validation/validation_encryption.go):
 *
 *     apiVersion: apiserver.config.k8s.io/v1
 *     kind: EncryptionConfiguration
 *     resources:
 *       - resources: [secrets, "*.example.org", "*.*"]
 *         providers:
 *           - kms: { apiVersion: v2, name: vault, endpoint: "unix:///run/kms.sock", timeout: 3s }
 *           - aesgcm: { keys: [{ name: key1, secret: BASE64 }] }
 *           - identity: {}
 */

import type { FieldError } from "@quorate/kube-storage";
import { invalidValue, required } from "@quorate/kube-storage";
import { writeFromBase64 } from "@quorate/proto";
import { resourceErrors } from "./encrypted-resources.ts";
import { KMS_FIELDS, type KmsConfig, parseKms } from "./kms-config.ts";

export type CipherName = "aesgcm" | "aescbc" | "secretbox";

export interface EncryptionKey {
  readonly name: string;
  /** 16, 24 or 32 bytes; for secretbox 32. */
  readonly secret: Uint8Array;
}

export type EncryptionProvider =
  | { readonly cipher: CipherName; readonly keys: readonly EncryptionKey[] }
  | { readonly cipher: "identity" }
  | { readonly cipher: "kms"; readonly kms: KmsConfig };

/** Providers for some resources; the first encrypts. */
export interface EncryptionRule {
  /** "secrets", "deployments.apps", "*." (the core group), "*.apps", "*.*". */
  readonly resources: readonly string[];
  readonly providers: readonly EncryptionProvider[];
}

/** Lengths of keys in bytes. */
const keyLengths: Readonly<Record<CipherName, readonly number[]>> = {
  aesgcm: [16, 24, 32],
  aescbc: [16, 24, 32],
  secretbox: [32],
};

const NO_PROVIDER =
  "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity";
const SEVERAL_PROVIDERS =
  "more than one provider specified in a single element, should split into different list elements";

/** A file with more rules, providers or keys is refused. */
const MAX_LIST = 1000;

type Fields = Readonly<Record<string, unknown>>;

/** Throws Error with all that is wrong with the file's value; never with a secret. */
export function parseEncryptionConfig(value: unknown): readonly EncryptionRule[] {
  const config = fieldsOf(value, "", ["apiVersion", "kind", "resources"]);
  checkKind(config.apiVersion, config.kind);
  const rules = listOf(config.resources, "resources");
  const errors: FieldError[] = [];
  if (rules.length === 0) errors.push(required("resources", "at least one resources is required"));
  const names = new Set<string>();
  const parsed = rules.map((rule, at) => parseRule(rule, `resources[${at}]`, names, errors));
  const texts = new Set(errors.map(({ field, message }) => `${field}: ${message}`));
  if (texts.size > 0)
    throw new Error(texts.size === 1 ? [...texts][0] : `[${[...texts].join(", ")}]`);
  return parsed;
}

function checkKind(apiVersion: unknown, kind: unknown): void {
  // Kubernetes' documentation once showed the second form.
  const isKnown =
    (apiVersion === "apiserver.config.k8s.io/v1" && kind === "EncryptionConfiguration") ||
    (apiVersion === "v1" && kind === "EncryptionConfig");
  if (!isKnown)
    throw new Error(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`,
    );
}

function parseRule(
  value: unknown,
  path: string,
  names: Set<string>,
  errors: FieldError[],
): EncryptionRule {
  const rule = fieldsOf(value, path, ["resources", "providers"]);
  const resources = listOf(rule.resources, `${path}.resources`).map((one) => {
    if (typeof one !== "string") throw new Error(`${path}.resources: expected texts`);
    return one;
  });
  errors.push(...resourceErrors(resources, `${path}.resources`));
  const providers = listOf(rule.providers, `${path}.providers`);
  if (providers.length === 0)
    errors.push(required(`${path}.providers`, `at least one ${path}.providers is required`));
  return {
    resources,
    providers: providers.flatMap((one, at) =>
      parseProvider(one, `${path}.providers[${at}]`, names, errors),
    ),
  };
}

function parseProvider(
  value: unknown,
  path: string,
  kmsNames: Set<string>,
  errors: FieldError[],
): EncryptionProvider[] {
  const names = ["kms", "aesgcm", "aescbc", "secretbox", "identity"];
  const provider = fieldsOf(value, path, names);
  const set = names.filter((name) => provider[name] !== undefined && provider[name] !== null);
  const [name] = set;
  if (set.length !== 1) {
    // The value is not shown: it may hold keys.
    const why = set.length === 0 ? NO_PROVIDER : SEVERAL_PROVIDERS;
    errors.push(invalidValue(path, "REDACTED", why));
    return [];
  }
  if (name === "kms") {
    const fields = fieldsOf(provider["kms"], `${path}.kms`, KMS_FIELDS);
    return [{ cipher: "kms", kms: parseKms(fields, `${path}.kms`, kmsNames, errors) }];
  }
  if (name === "identity") {
    fieldsOf(provider.identity, `${path}.identity`, []);
    return [{ cipher: "identity" }];
  }
  const cipher = name as CipherName;
  const { keys } = fieldsOf(provider[cipher], `${path}.${cipher}`, ["keys"]);
  return [{ cipher, keys: parseKeys(keys, `${path}.${cipher}.keys`, keyLengths[cipher], errors) }];
}

function parseKeys(
  value: unknown,
  path: string,
  lengths: readonly number[],
  errors: FieldError[],
): EncryptionKey[] {
  const keys = listOf(value, path);
  if (keys.length === 0) errors.push(required(path, "at least one keys is required"));
  return keys.map((one, at) => {
    const key = fieldsOf(one, `${path}[${at}]`, ["name", "secret"]);
    const { name = "", secret = "" } = key as { name?: unknown; secret?: unknown };
    if (typeof name !== "string" || typeof secret !== "string")
      throw new Error(`${path}[${at}]: expected texts`);
    if (name === "")
      errors.push(required(`${path}[${at}].name`, "name is a mandatory field for a key"));
    return { name, secret: parseSecret(secret, `${path}[${at}].secret`, lengths, errors) };
  });
}

function parseSecret(
  text: string,
  path: string,
  lengths: readonly number[],
  errors: FieldError[],
): Uint8Array {
  if (text === "") {
    errors.push(required(path, "secret is a mandatory field for a key"));
    return new Uint8Array(0);
  }
  // Go skips line ends, and nothing else.
  const joined = text.replace(/[\r\n]/g, "");
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(joined)) {
    errors.push(invalidValue(path, "REDACTED", "secrets must be base64 encoded"));
    return new Uint8Array(0);
  }
  const space = new Uint8Array(joined.length);
  const secret = space.slice(0, writeFromBase64(space, joined, 0));
  if (!lengths.includes(secret.length))
    errors.push(
      invalidValue(
        path,
        "REDACTED",
        `secret is not of the expected length, got ${secret.length}, expected one of [${lengths.join(" ")}]`,
      ),
    );
  return secret;
}

/** The fields of an object. Throws Error for another value, and for fields that are not known. */
function fieldsOf(value: unknown, path: string, known: readonly string[]): Fields {
  const where = path === "" ? "the file" : path;
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error(`${where}: expected an object`);
  const unknown = Object.keys(value).filter((field) => !known.includes(field));
  if (unknown.length > 0) {
    const field = path === "" ? unknown[0] : `${path}.${unknown[0]}`;
    throw new Error(`strict decoding error: unknown field ${JSON.stringify(field)}`);
  }
  return value as Fields;
}

function listOf(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Error(`${path}: expected a list`);
  if (value.length > MAX_LIST) throw new Error(`${path}: more than ${MAX_LIST} elements`);
  return value;
}
