/** Secrets (kubernetes: registry/core/secret, apis/core/validation). */
import {
  AGE,
  builtinSpec,
  type FieldError,
  invalidValue,
  isConfigMapKey,
  type KindSource,
  type KubeObject,
  nameColumn,
  plainStrategy,
  type ResourceSpec,
  required,
  tableOf,
  textColumn,
  tooLong,
} from "@quorate/kube-storage";
import {
  base64Bytes,
  bytesOf,
  dataOf,
  encodedText,
  jsonObjectProblem,
  MAX_DATA_BYTES,
  validateImmutable,
} from "./configmaps.ts";
import { validateCoreFinalizers } from "./finalizer-names.ts";

/** Checks that a certificate and a key belong together; undefined where they do. */
export type KeyPairCheck = (certificate: string, key: string) => string | undefined;

const ACCOUNT_NAME = "kubernetes.io/service-account.name";

function typeOf(object: KubeObject): string {
  return (object["type"] as string | undefined) ?? "";
}

function requiredKeys(data: Readonly<Record<string, string>>, keys: string[]): FieldError[] {
  return keys.filter((key) => !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`));
}

function requiredJson(data: Readonly<Record<string, string>>, key: string): FieldError[] {
  const missing = requiredKeys(data, [key]);
  if (missing.length > 0) return missing;
  const problem = jsonObjectProblem(data[key] ?? "");
  if (problem === undefined) return [];
  return [invalidValue(`data[${key}]`, "<secret contents redacted>", problem)];
}

/** What the secret's type demands. */
function validateType(object: KubeObject): FieldError[] {
  const data = dataOf(object, "data");
  switch (typeOf(object)) {
    case "kubernetes.io/service-account-token": {
      const name = object.metadata.annotations?.[ACCOUNT_NAME] ?? "";
      return name === "" ? [required(`metadata.annotations[${ACCOUNT_NAME}]`)] : [];
    }
    case "kubernetes.io/dockercfg":
      return requiredJson(data, ".dockercfg");
    case "kubernetes.io/dockerconfigjson":
      return requiredJson(data, ".dockerconfigjson");
    case "kubernetes.io/basic-auth": {
      const missing = requiredKeys(data, ["username", "password"]);
      return missing.length === 2 ? missing : [];
    }
    case "kubernetes.io/ssh-auth":
      return (data["ssh-privatekey"] ?? "") === "" ? [required("data[ssh-privatekey]")] : [];
    case "kubernetes.io/tls":
      return requiredKeys(data, ["tls.crt", "tls.key"]);
    default:
      return [];
  }
}

function validate(object: KubeObject): FieldError[] {
  const errors = validateCoreFinalizers(object);
  let sizeBytes = 0;
  for (const [key, value] of Object.entries(bytesOf(object, "data"))) {
    for (const text of isConfigMapKey(key)) errors.push(invalidValue(`data[${key}]`, key, text));
    sizeBytes += base64Bytes(value);
  }
  if (sizeBytes > MAX_DATA_BYTES) errors.push(tooLong("data", MAX_DATA_BYTES));
  return [...errors, ...validateType(object)];
}

function validateUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  const errors = validateCoreFinalizers(object);
  if (typeOf(object) !== typeOf(old)) {
    errors.push(invalidValue("type", typeOf(object), "field is immutable"));
  }
  return [...errors, ...validateImmutable(object, old, ["data"]), ...validate(object)];
}

/** stringData becomes data: it is for writing only. A type is always there. */
function prepared(object: KubeObject, type: string): KubeObject {
  const { stringData, ...rest } = object;
  const texts = (stringData as Readonly<Record<string, string>> | undefined) ?? {};
  const data: Record<string, string> = { ...dataOf(object, "data") };
  for (const [key, text] of Object.entries(texts)) data[key] = encodedText(text);
  const own = { ...rest, type: typeOf(object) || type } as KubeObject;
  return Object.keys(texts).length === 0 ? own : { ...own, data };
}

function warnings(object: KubeObject, check: KeyPairCheck | undefined): string[] {
  if (typeOf(object) !== "kubernetes.io/tls" || check === undefined) return [];
  const data = dataOf(object, "data");
  const problem = check(data["tls.crt"] ?? "", data["tls.key"] ?? "");
  return problem === undefined ? [] : [problem];
}

/** The resource "secrets". @param check of certificates and keys in base64, for warnings */
export function secrets(source: KindSource, check?: KeyPairCheck): ResourceSpec {
  return builtinSpec(source, "secrets", {
    strategy: plainStrategy(
      { kind: source.kind, namespaced: true },
      {
        prepareForCreate: (_ctx, object) => prepared(object, "Opaque"),
        validate: (_ctx, object) => validate(object),
        warningsOnCreate: (_ctx, object) => warnings(object, check),
        prepareForUpdate: (_ctx, object, old) => prepared(object, typeOf(old)),
        validateUpdate: (_ctx, object, old) => validateUpdate(object, old),
        warningsOnUpdate: (_ctx, object) => warnings(object, check),
      },
    ),
    selectableFields: (object) => ({ type: typeOf(object) }),
    selectableFieldNames: ["type"],
    table: tableOf(
      nameColumn(),
      textColumn("Type", "What the data is for.", typeOf),
      textColumn("Data", "The number of entries in data.", (object) => {
        return Object.keys(dataOf(object, "data")).length;
      }),
      AGE,
    ),
  });
}
