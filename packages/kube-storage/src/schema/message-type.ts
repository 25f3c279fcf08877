/**
 * Types of built-in kinds as codecs, defaults and schemas read them: entries of the tables with
 * their references resolved. Types are made when they are first asked for.
 */
import { type FieldEntry, parseType, splitTable, type TypeExpression } from "./table-parser.ts";
import { admissionTypes } from "./tables/admission.ts";
import { admissionregistrationTypes } from "./tables/admissionregistration.ts";
import { apiextensionsTypes } from "./tables/apiextensions.ts";
import { apiregistrationTypes } from "./tables/apiregistration.ts";
import { appsTypes } from "./tables/apps.ts";
import { authenticationTypes } from "./tables/authentication.ts";
import { authorizationTypes } from "./tables/authorization.ts";
import { autoscalingTypes } from "./tables/autoscaling.ts";
import { autoscalingV2Types } from "./tables/autoscaling-v2.ts";
import { batchTypes } from "./tables/batch.ts";
import { certificatesTypes } from "./tables/certificates.ts";
import { coordinationTypes } from "./tables/coordination.ts";
import { coreTypes } from "./tables/core.ts";
import { coreClusterTypes } from "./tables/core-cluster.ts";
import { corePodsTypes } from "./tables/core-pods.ts";
import { coreVolumesTypes } from "./tables/core-volumes.ts";
import { discoveryTypes } from "./tables/discovery.ts";
import { eventsTypes } from "./tables/events.ts";
import { flowcontrolTypes } from "./tables/flowcontrol.ts";
import { metaTypes } from "./tables/meta.ts";
import { networkingTypes } from "./tables/networking.ts";
import { nodeTypes } from "./tables/node.ts";
import { policyTypes } from "./tables/policy.ts";
import { rbacTypes } from "./tables/rbac.ts";
import { resourceTypes } from "./tables/resource.ts";
import { schedulingTypes } from "./tables/scheduling.ts";
import { storageTypes } from "./tables/storage.ts";
import { storagemigrationTypes } from "./tables/storagemigration.ts";

interface TypePackage {
  /** The name of the package in tables, such as "core" in "core.ObjectReference". */
  readonly alias: string;
  /** The API group of its kinds. */
  readonly group: string;
  readonly version: string;
  /** In Go's type names and errors. */
  readonly goName: string;
  /** Before a type's name in OpenAPI documents. */
  readonly definitionPrefix: string;
  readonly tables: readonly string[];
}

function apiPackage(alias: string, group: string, ...tables: readonly string[]): TypePackage {
  const definitionPrefix = `io.k8s.api.${alias}.v1.`;
  return { alias, group, version: "v1", goName: "v1", definitionPrefix, tables };
}

const RESOURCE_PREFIX = "io.k8s.api.resource.v1.";
const MACHINERY = "io.k8s.apimachinery.pkg.";

/** A package whose types are all custom ones: no kinds and no tables. */
function customPackage(alias: string, path: string, goName: string): TypePackage {
  return { alias, group: "", version: "", goName, definitionPrefix: MACHINERY + path, tables: [] };
}

/**
 * Go's packages of API types, each with its tables. A new kind is one entry in the table of its
 * package; a new package is one line here.
 */
const TYPE_PACKAGES: readonly TypePackage[] = [
  apiPackage("core", "", coreTypes, corePodsTypes, coreVolumesTypes, coreClusterTypes),
  { ...apiPackage("meta", "", metaTypes), definitionPrefix: `${MACHINERY}apis.meta.v1.` },
  apiPackage("admission", "admission.k8s.io", admissionTypes),
  apiPackage("admissionregistration", "admissionregistration.k8s.io", admissionregistrationTypes),
  {
    ...apiPackage("apiextensions", "apiextensions.k8s.io", apiextensionsTypes),
    definitionPrefix: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.",
  },
  {
    ...apiPackage("apiregistration", "apiregistration.k8s.io", apiregistrationTypes),
    definitionPrefix: "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.",
  },
  apiPackage("apps", "apps", appsTypes),
  apiPackage("authentication", "authentication.k8s.io", authenticationTypes),
  apiPackage("authorization", "authorization.k8s.io", authorizationTypes),
  apiPackage("autoscaling", "autoscaling", autoscalingTypes),
  {
    ...apiPackage("autoscalingv2", "autoscaling", autoscalingV2Types),
    version: "v2",
    goName: "v2",
    definitionPrefix: "io.k8s.api.autoscaling.v2.",
  },
  apiPackage("batch", "batch", batchTypes),
  apiPackage("certificates", "certificates.k8s.io", certificatesTypes),
  apiPackage("coordination", "coordination.k8s.io", coordinationTypes),
  apiPackage("discovery", "discovery.k8s.io", discoveryTypes),
  apiPackage("events", "events.k8s.io", eventsTypes),
  apiPackage("flowcontrol", "flowcontrol.apiserver.k8s.io", flowcontrolTypes),
  apiPackage("networking", "networking.k8s.io", networkingTypes),
  apiPackage("node", "node.k8s.io", nodeTypes),
  apiPackage("policy", "policy", policyTypes),
  apiPackage("rbac", "rbac.authorization.k8s.io", rbacTypes),
  // "resource" is apimachinery's package, with Quantity.
  { ...apiPackage("dra", "resource.k8s.io", resourceTypes), definitionPrefix: RESOURCE_PREFIX },
  apiPackage("scheduling", "scheduling.k8s.io", schedulingTypes),
  apiPackage("storage", "storage.k8s.io", storageTypes),
  apiPackage("storagemigration", "storagemigration.k8s.io", storagemigrationTypes),
  customPackage("runtime", "runtime.", "runtime"),
  customPackage("resource", "api.resource.", "resource"),
  customPackage("intstr", "util.intstr.", "intstr"),
  customPackage("types", "types.", "types"),
];

export type Scalar = "string" | "bool" | "int32" | "int64" | "double" | "bytes" | "any";

/** Types whose JSON is not an object of their fields; codec/custom-json.ts has their rules. */
export type CustomName =
  | "Time"
  | "MicroTime"
  | "Quantity"
  | "IntOrString"
  | "RawExtension"
  | "FieldsV1"
  | "JSON"
  | "JSONSchemaPropsOrArray"
  | "JSONSchemaPropsOrBool"
  | "JSONSchemaPropsOrStringArray";

/** The type of a field, or of the items of a list or map. */
export interface ValueType {
  readonly shape: "scalar" | "list" | "map" | "message";
  readonly pointer: boolean;
  /** Of a scalar; else "any". */
  readonly scalar: Scalar;
  /** Of the items of a list or map. */
  readonly of: ValueType | undefined;
  /** Go's type as errors print it, without the star of a pointer. */
  readonly goType: string;
  /** Of a message. Throws for other shapes. */
  message(): MessageType;
}

/** A field as JSON has it; fields of inlined messages stand in the message that inlines them. */
export interface Field {
  readonly name: string;
  readonly type: ValueType;
  /** Whether JSON leaves it out where it is empty, or where it is the zero value of its type. */
  readonly omit: "" | "empty" | "zero";
  readonly required: boolean;
  /** Go's names of the inlined messages that it stands in, for errors; usually none. */
  readonly inlinedIn: readonly string[];
  readonly facts: Readonly<Record<string, string>>;
  /** The default of an absent field, where the table declares one. */
  readonly preset: string | number | boolean | undefined;
}

/** A field as protobuf has it. */
export interface WireField {
  readonly number: number;
  /** Position in MessageType.fields of the field, or of the first one of the inlined message. */
  readonly slot: number;
  readonly type: ValueType;
  readonly inlined: boolean;
}

export interface MessageType {
  readonly name: string;
  /** The name in tables, such as "core.ConfigMap". */
  readonly fullName: string;
  readonly package: TypePackage;
  /** The name in OpenAPI documents. */
  readonly definition: string;
  readonly custom: CustomName | undefined;
  /** For a message that JSON writes as a list or map: that type. */
  readonly alias: ValueType | undefined;
  /** In the order of JSON. */
  readonly fields: readonly Field[];
  readonly slotOf: ReadonlyMap<string, number>;
  /** By ascending number. */
  readonly wire: readonly WireField[];
  readonly wireByNumber: ReadonlyMap<number, WireField>;
  /** Names by number, for errors of the protobuf reader. */
  readonly wireNames: Readonly<Record<number, string>>;
  /** Whether it has kind and apiVersion (metav1.TypeMeta). */
  readonly isKind: boolean;
  readonly facts: Readonly<Record<string, string>>;
}

const CUSTOM: ReadonlyMap<string, CustomName> = new Map([
  ["meta.Time", "Time"],
  ["meta.MicroTime", "MicroTime"],
  ["resource.Quantity", "Quantity"],
  ["intstr.IntOrString", "IntOrString"],
  ["runtime.RawExtension", "RawExtension"],
  ["meta.FieldsV1", "FieldsV1"],
  ["apiextensions.JSON", "JSON"],
  ["apiextensions.JSONSchemaPropsOrArray", "JSONSchemaPropsOrArray"],
  ["apiextensions.JSONSchemaPropsOrBool", "JSONSchemaPropsOrBool"],
  ["apiextensions.JSONSchemaPropsOrStringArray", "JSONSchemaPropsOrStringArray"],
]);

const SCALARS: ReadonlySet<string> = new Set<Scalar>([
  "string",
  "bool",
  "int32",
  "int64",
  "double",
  "bytes",
  "any",
]);

const GO_SCALARS: Readonly<Record<string, string>> = {
  double: "float64",
  bytes: "[]uint8",
  any: "interface {}",
};

const packages = new Map(TYPE_PACKAGES.map((each) => [each.alias, each]));
const byGroup = new Map(
  TYPE_PACKAGES.filter((each) => each.tables.length > 0 && each.alias !== "meta").map((each) => [
    `${each.group}/${each.version}`,
    each,
  ]),
);
const texts = new Map<TypePackage, ReadonlyMap<string, string>>();
const made = new Map<string, MessageType>();

/** A type by its name in tables, such as "core.ConfigMap"; undefined where there is none. */
export function messageType(name: string): MessageType | undefined {
  const before = made.get(name);
  if (before !== undefined) return before;
  const at = name.indexOf(".");
  const home = packages.get(name.slice(0, at));
  if (home === undefined) return undefined;
  const type = makeType(name, name.slice(at + 1), home);
  if (type !== undefined) made.set(name, type);
  return type;
}

/** The type of a kind in a group and version; meta/v1's kinds are in every one. */
export function kindType(group: string, version: string, kind: string): MessageType | undefined {
  const home = byGroup.get(`${group}/${version}`);
  const own = home === undefined ? undefined : messageType(`${home.alias}.${kind}`);
  const type = own ?? messageType(`meta.${kind}`);
  return type?.isKind === true ? type : undefined;
}

function textsOf(home: TypePackage): ReadonlyMap<string, string> {
  let found = texts.get(home);
  if (found === undefined) {
    found = new Map(home.tables.flatMap((table) => [...splitTable(table)]));
    texts.set(home, found);
  }
  return found;
}

function makeType(fullName: string, name: string, home: TypePackage): MessageType | undefined {
  const custom = CUSTOM.get(fullName);
  const text = custom === undefined ? textsOf(home).get(name) : name;
  if (text === undefined) return undefined;
  const entry = parseType(text);
  const fields: Field[] = [];
  const wire: WireField[] = [];
  for (const field of entry.fields) addField(field, home, fields, wire);
  wire.sort((a, b) => a.number - b.number);
  return {
    name,
    fullName,
    package: home,
    definition: home.definitionPrefix + name,
    custom,
    alias:
      entry.alias === undefined
        ? undefined
        : { ...valueType(entry.alias, home), goType: `${home.goName}.${name}` },
    fields,
    slotOf: new Map(fields.map((field, slot) => [field.name, slot])),
    wire,
    wireByNumber: new Map(wire.map((field) => [field.number, field])),
    wireNames: Object.fromEntries(
      wire.map(({ number, slot }) => [number, fields[slot]?.name ?? ""]),
    ),
    isKind: entry.fields.some(({ name, type }) => name === "..." && type.word.endsWith("TypeMeta")),
    facts: entry.facts,
  };
}

function addField(entry: FieldEntry, home: TypePackage, fields: Field[], wire: WireField[]): void {
  const type = valueType(entry.type, home);
  const inlined = entry.name === "...";
  if (entry.number > 0) wire.push({ number: entry.number, slot: fields.length, type, inlined });
  if (inlined) {
    const message = type.message();
    for (const field of message.fields)
      fields.push({ ...field, inlinedIn: [message.name, ...field.inlinedIn] });
    return;
  }
  const { name, omit, required, facts } = entry;
  const preset = facts.default === undefined ? undefined : JSON.parse(facts.default);
  fields.push({ name, type, omit, required, inlinedIn: [], facts, preset });
}

function valueType(expression: TypeExpression, home: TypePackage): ValueType {
  const { pointer, shape, word } = expression;
  const named = expression.goType === "" ? undefined : goName(expression.goType, home);
  if (shape !== "word") {
    const of = valueType(expression.of as TypeExpression, home);
    const star = of.pointer ? "*" : "";
    const goType = named ?? `${shape === "list" ? "[]" : "map[string]"}${star}${of.goType}`;
    return { shape, pointer, scalar: "any", of, goType, message: notMessage };
  }
  if (SCALARS.has(word)) {
    const goType = named ?? GO_SCALARS[word] ?? word;
    const scalar = word as Scalar;
    return { shape: "scalar", pointer, scalar, of: undefined, goType, message: notMessage };
  }
  const fullName = word.includes(".") ? word : `${home.alias}.${word}`;
  let resolved: MessageType | undefined;
  const message = (): MessageType => {
    resolved ??= messageType(fullName);
    if (resolved === undefined) throw new SyntaxError(`no type ${fullName}`);
    return resolved;
  };
  const goType = goName(word, home);
  return { shape: "message", pointer, scalar: "any", of: undefined, goType, message };
}

function notMessage(): never {
  throw new TypeError("not a message");
}

function goName(name: string, home: TypePackage): string {
  const at = name.indexOf(".");
  if (at < 0) return `${home.goName}.${name}`;
  return `${packages.get(name.slice(0, at))?.goName}.${name.slice(at + 1)}`;
}

/** Every type of every package, for tests and documents. */
export function* allTypes(): Generator<MessageType> {
  for (const home of TYPE_PACKAGES)
    for (const name of textsOf(home).keys()) {
      const type = messageType(`${home.alias}.${name}`);
      if (type !== undefined) yield type;
    }
}
