/**
 * Shared schemas of a document ("definitions" in OpenAPI v2, "components" in v3), collected as
 * operations and schemas refer to them (kube-openapi: pkg/builder, pkg/builder3;
 * apiextensions-apiserver: pkg/controller/openapi/builder).
 */

import type { ObjectSchema, Schema, ServedResource } from "@quorate/kube-storage";
import {
  apiVersionOf,
  builtinSchema,
  type GroupVersion,
  type GroupVersionKind,
  messageType,
  referenceOf,
  typeSchema,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import type { Content } from "./operations.ts";

export type Version = "v2" | "v3";
export type OpenApiNode = Record<string, unknown>;

const PREFIXES: Readonly<Record<Version, string>> = {
  v2: "#/definitions/",
  v3: "#/components/schemas/",
};
const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/** A text in v2; v3 can say that it may be a number too. */
const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/** A patch may be any object. */
const PATCH: Schema = {
  definition: `${META}Patch`,
  description: "A patch of an object, in the form that its media type says.",
  type: "object",
};

/** What v2 cannot say. */
const NOT_IN_V2 = new Set(["default", "nullable", "allOf", "anyOf", "oneOf", "not", "example"]);
const SCHEMAS = new Set(["properties", "items", "additionalProperties", "not"]);
const SCHEMA_LISTS = new Set(["allOf", "anyOf", "oneOf"]);

/** Collects the definitions of one document. */
export class Definitions {
  private readonly version: Version;
  /** Group-versions of the document, for the kinds that belong to all of them. */
  private readonly versions: readonly GroupVersion[];
  private readonly waiting: (readonly [name: string, schema: Schema])[] = [];
  private readonly known = new Set<string>();
  private readonly kinds = new Map<string, GroupVersionKind[]>();
  private readonly done: (readonly [name: string, value: OpenApiNode])[] = [];

  constructor(version: Version, versions: readonly GroupVersion[]) {
    this.version = version;
    this.versions = versions;
  }

  /** The reference to what a body or response is. */
  reference(content: Content): OpenApiNode {
    if (content.of === "object") return this.kindReference(content.resource, false);
    if (content.of === "list") return this.kindReference(content.resource, true);
    if (content.of === "Patch") return this.add(PATCH.definition as string, PATCH);
    const type = messageType(`meta.${content.of}`);
    if (type === undefined) throw new RangeError(`no type ${content.of}`);
    const name = META + content.of;
    if (!this.known.has(name)) {
      const groups = content.of === "DeleteOptions" ? this.versions : [CORE];
      this.kinds.set(
        name,
        groups.map(({ group, version }) => ({ group, version, kind: content.of })),
      );
    }
    return this.add(name, typeSchema(type));
  }

  /** Completes one definition that waits; returns whether there was one. */
  step(): boolean {
    const next = this.waiting.pop();
    if (next === undefined) return false;
    const [name, schema] = next;
    const kinds = this.kinds.get(name);
    const builtin = isBuiltin(name);
    // kubectl would complain of what is unknown beside any field that is named.
    const isOpen = this.version === "v2" && !builtin && kinds !== undefined && isOpaque(schema);
    const value = isOpen ? { type: "object" } : this.inline(schema, builtin);
    if (kinds !== undefined) value["x-kubernetes-group-version-kind"] = kinds;
    this.done.push([name, value]);
    return true;
  }

  /** All definitions, by name. */
  sorted(): Record<string, OpenApiNode> {
    return Object.fromEntries(this.done.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  private kindReference(resource: ServedResource, asList: boolean): OpenApiNode {
    const { kind, schema } = resource;
    const objectName = schema?.schema.definition ?? customName(kind);
    const object =
      schema?.schema.definition === undefined ? this.customObject(schema) : schema.schema;
    if (!asList) return this.addKind(objectName, object, kind);
    const listKind = { ...kind, kind: `${kind.kind}List` };
    const builtin = builtinSchema(listKind);
    if (builtin !== undefined)
      return this.addKind(builtin.schema.definition as string, builtin.schema, listKind);
    this.addKind(objectName, object, kind);
    const list = this.customList(kind, { ...object, definition: objectName });
    return this.addKind(`${objectName}List`, list, listKind);
  }

  /** The schema of a custom kind, with the fields that all kinds have. */
  private customObject(schema: ObjectSchema | undefined): Schema {
    const own: Schema = schema?.schema ?? {
      type: "object",
      "x-kubernetes-preserve-unknown-fields": true,
    };
    const metadata = this.metadataOf("ObjectMeta");
    return {
      ...own,
      type: "object",
      properties: { ...own.properties, ...typeFields(), metadata },
    };
  }

  private customList(kind: GroupVersionKind, item: Schema): Schema {
    const { apiVersion, kind: kindField } = typeFields();
    const selectable = item["x-kubernetes-selectable-fields"];
    return {
      ...(selectable === undefined ? {} : { "x-kubernetes-selectable-fields": selectable }),
      description: `A list of ${kind.kind} objects of ${apiVersionOf(kind)}.`,
      type: "object",
      required: ["items"],
      properties: {
        apiVersion,
        items: { type: "array", items: item, description: "The objects of this list." },
        kind: kindField,
        metadata: this.metadataOf("ListMeta"),
      },
    };
  }

  /** The field "metadata" of a custom kind: in v2 a reference has no description of its own. */
  private metadataOf(name: "ObjectMeta" | "ListMeta"): Schema {
    const shared = meta(name);
    const { description } = shared;
    return this.version === "v2" ? shared : { description, allOf: [shared] };
  }

  private addKind(name: string, schema: Schema, kind: GroupVersionKind): OpenApiNode {
    this.kinds.set(name, [{ group: kind.group, kind: kind.kind, version: kind.version }]);
    return this.add(name, schema);
  }

  private add(name: string, schema: Schema): OpenApiNode {
    if (!this.known.has(name)) {
      this.known.add(name);
      this.waiting.push([name, schema]);
    }
    return { $ref: PREFIXES[this.version] + name };
  }

  /** A schema as a place in another one has it: shared ones by reference. */
  private emit(schema: Schema, builtin: boolean): OpenApiNode {
    const refined = referenceOf(schema);
    if (refined !== undefined) {
      const { target, overrides } = refined;
      const reference = this.add(target.definition as string, target);
      const own = this.facts(overrides, builtin);
      return this.version === "v3" ? { allOf: [reference], ...own } : { ...reference, ...own };
    }
    if (schema.definition !== undefined) return this.add(schema.definition, schema);
    return this.inline(schema, builtin);
  }

  private inline(schema: Schema, builtin: boolean): OpenApiNode {
    if (schema["x-kubernetes-int-or-string"] === true) return this.intOrString(schema, builtin);
    if (this.version === "v3" && schema.definition === QUANTITY)
      return { description: schema.description, oneOf: [{ type: "string" }, { type: "number" }] };
    if (builtin) return this.facts(schema, true);
    return this.facts(this.withEmbedded(this.version === "v2" ? forV2(schema) : schema), false);
  }

  /** A custom schema of a whole object inside another has the fields that say what it is. */
  private withEmbedded(schema: Schema): Schema {
    const isOpen = this.version === "v2" && isOpaque(schema);
    if (schema["x-kubernetes-embedded-resource"] !== true || isOpen) return schema;
    const { required = [] } = schema;
    const missing = ["kind", "apiVersion"].filter((name) => !required.includes(name));
    const own = { ...typeFields(), metadata: this.metadataOf("ObjectMeta") };
    return {
      ...schema,
      properties: { ...schema.properties, ...own },
      required: [...required, ...missing],
    };
  }

  private intOrString(schema: Schema, builtin: boolean): OpenApiNode {
    if (!builtin || schema.format !== "int-or-string") {
      const { type: _, ...rest } = schema;
      return this.facts(this.version === "v2" ? rest : unfolded(schema), builtin);
    }
    const { description, format } = schema;
    return this.version === "v2"
      ? { description, type: "string", format }
      : { description, format, oneOf: [{ type: "integer" }, { type: "string" }] };
  }

  private facts(schema: Schema, builtin: boolean): OpenApiNode {
    const out: OpenApiNode = {};
    for (const [key, value] of Object.entries(schema)) {
      if (value === undefined || key === "definition") continue;
      if (builtin && key === "x-kubernetes-preserve-unknown-fields") continue;
      if (this.version === "v2" && NOT_IN_V2.has(key)) continue;
      if (key === "properties") out[key] = this.properties(value as object, builtin);
      else if (SCHEMAS.has(key) && typeof value === "object")
        out[key] = this.emit(value as Schema, builtin);
      else if (SCHEMA_LISTS.has(key))
        out[key] = (value as readonly Schema[]).map((each) => this.emit(each, builtin));
      else out[key] = value;
    }
    return out;
  }

  private properties(properties: object, builtin: boolean): OpenApiNode {
    return Object.fromEntries(
      Object.entries(properties).map(([name, schema]) => [
        name,
        this.emit(schema as Schema, builtin),
      ]),
    );
  }
}

const CORE: GroupVersion = { group: "", version: "v1" };

function isOpaque(schema: Schema): boolean {
  return schema["x-kubernetes-preserve-unknown-fields"] === true;
}

const INT_OR_STRING: readonly Schema[] = [{ type: "integer" }, { type: "string" }];

/** A custom schema of numbers and texts with what it stands for (schema/unfold.go). */
function unfolded(schema: Schema): Schema {
  const isSaid = schema.anyOf !== undefined || schema.allOf?.[0]?.anyOf !== undefined;
  return isSaid ? schema : { ...schema, anyOf: INT_OR_STRING };
}

/**
 * A custom schema as v2 can say it (apiextensions-apiserver: pkg/controller/openapi/v2). kubectl
 * refuses unknown fields and null beside known ones, so such values have no type.
 */
function forV2(schema: Schema): Schema {
  const { properties, items, type, required, ...rest } = schema;
  const isOpen = isOpaque(schema) || schema.nullable === true;
  const hasItems = items !== undefined && !isOpen;
  const isTyped =
    schema.nullable !== true &&
    (type !== "array" || hasItems) &&
    (type !== "object" || !isOpaque(schema));
  const needed = required?.filter((name) => properties?.[name]?.nullable !== true);
  return {
    ...rest,
    ...(isTyped && type !== undefined ? { type } : {}),
    ...(hasItems ? { items } : {}),
    ...(isOpen || properties === undefined ? {} : { properties }),
    ...(needed === undefined || needed.length === 0 ? {} : { required: needed }),
  };
}

function isBuiltin(name: string): boolean {
  return /^io\.k8s\.(?:api|apimachinery|apiextensions-apiserver)\./.test(name);
}

/** The definition of a custom kind, such as "org.example.v1.Widget". */
function customName({ group, version, kind }: GroupVersionKind): string {
  return `${group.split(".").reverse().join(".")}.${version}.${kind}`;
}

function meta(name: string): Schema {
  const type = messageType(`meta.${name}`);
  if (type === undefined) throw new RangeError(`no type ${name}`);
  return typeSchema(type);
}

/** The fields that say what an object is. */
function typeFields(): Readonly<Record<"apiVersion" | "kind", Schema>> {
  const { apiVersion, kind } = meta("Status").properties ?? {};
  return { apiVersion: defined(apiVersion, "apiVersion"), kind: defined(kind, "kind") };
}
