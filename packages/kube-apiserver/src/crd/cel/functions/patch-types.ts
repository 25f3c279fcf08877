/**
 * What expressions of MutatingAdmissionPolicies write: apply configurations, whose types are named
 * by the path of their field, and steps of JSON patches (apiserver: pkg/cel/mutation).
 *
 *     Object{spec: Object.spec{replicas: 1}}
 *     [JSONPatch{op: "remove", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b")}]
 */
import type { Json } from "@quorate/kube-storage";
import { toBase64 } from "@quorate/proto";
import type { Environment, MessageKind } from "../lang/environment.ts";
import { DYN, STRING, struct, type Type } from "../lang/types.ts";
import {
  Duration,
  EvaluationError,
  StructValue,
  shownDuration,
  shownTimestamp,
  Timestamp,
  Uint,
} from "../lang/values.ts";

/** An object that an expression has written. */
export class WrittenObject extends StructValue {
  readonly celType: Type;
  readonly fields: ReadonlyMap<string, unknown>;

  constructor(type: Type, fields: ReadonlyMap<string, unknown>) {
    super();
    this.celType = type;
    this.fields = fields;
  }

  field(name: string): unknown {
    return this.fields.get(name);
  }

  equals(other: unknown): boolean {
    return other === this;
  }
}

const ANY_FIELD = { get: () => DYN, has: () => true };
const PATCH_FIELDS: ReadonlyMap<string, Type> = new Map([
  ["op", STRING],
  ["from", STRING],
  ["path", STRING],
  ["value", DYN],
]);

/** Of fields that a step of a patch does not have. */
const NO_TYPE = struct("", new Map());

function kindNamed(name: string): MessageKind | undefined {
  if (name === "JSONPatch")
    return kindOf(struct(name, PATCH_FIELDS), { get: (it) => PATCH_FIELDS.get(it) ?? NO_TYPE });
  if (name !== "Object" && !name.startsWith("Object.")) return undefined;
  return kindOf(struct(name, ANY_FIELD), ANY_FIELD);
}

function kindOf(type: Type, fields: { get(name: string): Type | undefined }): MessageKind {
  return {
    type,
    field: (name) => fields.get(name),
    make: (values) => new WrittenObject(type, values),
  };
}

export function registerPatchTypes(environment: Environment): void {
  environment
    .messages(kindNamed)
    .function("jsonpatch.escapeKey(string): string", (key: string) =>
      key.replaceAll("~", "~0").replaceAll("/", "~1"),
    );
}

/**
 * A value of an expression as JSON. Throws EvaluationError for one that is none.

 */
export function celJson(value: unknown): Json {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint) return Number(value.value);
  if (value instanceof Uint8Array) return toBase64(value);
  if (value instanceof Timestamp) return shownTimestamp(value);
  if (value instanceof Duration) return shownDuration(value);
  if (Array.isArray(value)) return value.map(celJson);
  const fields =
    value instanceof WrittenObject ? value.fields : value instanceof Map ? value : undefined;
  if (fields === undefined) throw new EvaluationError("the value is no JSON");
  return Object.fromEntries(
    [...fields].map(([key, field]) => {
      if (typeof key !== "string")
        throw new EvaluationError(`map key ${String(key)} is not a string`);
      return [key, celJson(field)];
    }),
  );
}

/** Written objects whose type is not that of their place: "Object.spec" is for the field spec. */
export function misplacedTypes(value: unknown, path: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => misplacedTypes(one, path));
  if (value instanceof Map) return [...value.values()].flatMap((it) => misplacedTypes(it, path));
  if (!(value instanceof WrittenObject)) return [];
  const { name } = value.celType;
  const wanted = path.join(".");
  const own = `unexpected type name "${name}", expected "${wanted}", which matches field name path`;
  return [
    ...(name === wanted ? [] : [`${own} from root Object type`]),
    ...[...value.fields].flatMap(([field, it]) => misplacedTypes(it, [...path, field])),
  ];
}
