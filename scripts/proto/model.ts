/**
 * The .proto files as the emitters want them: resolved, ordered, and with the policy of each field
 * decided.
 */
import { defined } from "@quorate/proto";
import type protobufjs from "protobufjs";
import {
  BIGINT_FIELDS,
  CLAMPED_FIELDS,
  HOT_MESSAGES,
  OPTIONAL_SCALARS,
  RAW_FIELDS,
  RAW_MESSAGES,
  REQUIRED_MESSAGES,
  WIDE_FIELDS,
} from "./policy.ts";

/** A scalar type on the wire and in TypeScript. */
export type ScalarKind =
  | "bool"
  | "string"
  | "bytes"
  | "int32"
  | "uint32"
  | "int64"
  | "uint64"
  | "int64Clamped"
  | "int64Wide"
  | "bigInt64"
  | "bigUint64";

/**
 * What a field holds: a scalar, an enum (ts is its name), an encoded message, or a message (ts is
 * its name).
 */
export type FieldType =
  | { kind: "scalar"; scalar: ScalarKind }
  | { kind: "enum"; ts: string; fullName: string; file: string }
  | { kind: "raw"; fullName: string }
  | { kind: "message"; ts: string; fullName: string; file: string; recursive: boolean };

/**
 * When a field that is neither repeated nor in a oneof is written: if it is not the default, if it
 * is not undefined, or always.
 */
export type Presence = "implicit" | "optional" | "always";

export interface Field {
  protoName: string;
  /** Property name. */
  name: string;
  id: number;
  type: FieldType;
  repeated: boolean;
  packed: boolean;
  presence: Presence;
  comment: string;
}

export interface Oneof {
  protoName: string;
  /** Property name. */
  name: string;
  fields: Field[];
}

/** A property of a message: a field or a oneof. */
export type Member = { field: Field } | { oneof: Oneof };

export interface Message {
  /** Name in TypeScript: nested names joined by an underscore. */
  ts: string;
  /** "package.Message" */
  fullName: string;
  file: string;
  /** In the order of field numbers. */
  members: Member[];
  /** Has generated code; others are read and written by the table. */
  hot: boolean;
  comment: string;
}

export interface EnumModel {
  ts: string;
  fullName: string;
  values: { name: string; value: number; comment: string }[];
  comment: string;
}

export interface File {
  /** Without ".proto". */
  name: string;
  package: string;
  comment: string;
  enums: EnumModel[];
  messages: Message[];
  services: protobufjs.Service[];
}

export interface Model {
  files: File[];
  messagesByFullName: Map<string, Message>;
}

/**
 * Reads proto sources (by file name) into a model; throws Error for what the generator does not
 * support.
 */
export function loadModel(protobuf: typeof protobufjs, sources: Map<string, string>): Model {
  const policy = new Policy();
  const root = new protobuf.Root();
  const packageOf = new Map<string, string>();
  const fileOf = new Map<protobufjs.ReflectionObject, string>();
  const known = new Set<protobufjs.ReflectionObject>();
  const order: protobufjs.ReflectionObject[] = [];
  for (const [name, text] of sources) {
    const parsed = protobuf.parse(text, root, { keepCase: true, alternateCommentMode: true });
    packageOf.set(name, parsed.package ?? "");
    // Every file is parsed into the same root: what is new in it belongs to this file.
    walk(root, (object) => {
      if (known.has(object)) return;
      known.add(object);
      order.push(object);
      fileOf.set(object, name.replace(/\.proto$/, ""));
    });
  }
  root.resolveAll();

  const messagesByFullName = new Map<string, Message>();
  const files: File[] = [];
  const tsName = (object: protobufjs.ReflectionObject): string => {
    const parent = object.parent;
    return parent instanceof protobuf.Type ? `${tsName(parent)}_${object.name}` : object.name;
  };
  const fullName = (object: protobufjs.ReflectionObject): string =>
    object.fullName.replace(/^\./, "");

  const fieldType = (field: protobufjs.Field, key: string, message: protobufjs.Type): FieldType => {
    const resolved = field.resolvedType;
    if (resolved instanceof protobuf.Enum)
      return {
        kind: "enum",
        ts: tsName(resolved),
        fullName: fullName(resolved),
        file: defined(fileOf.get(resolved), "the file of a type"),
      };
    if (resolved instanceof protobuf.Type) {
      if (policy.raw(key, fullName(message), field.name))
        return { kind: "raw", fullName: fullName(resolved) };
      return {
        kind: "message",
        ts: tsName(resolved),
        fullName: fullName(resolved),
        file: defined(fileOf.get(resolved), "the file of a type"),
        recursive: reaches(protobuf, resolved, resolved),
      };
    }
    return { kind: "scalar", scalar: policy.scalar(key, field.type) };
  };

  const fieldOf = (field: protobufjs.Field, message: protobufjs.Type, proto2: boolean): Field => {
    const key = `${fullName(message)}.${field.name}`;
    if (field.map || field.required)
      throw new Error(`${key}: maps and required fields are not supported`);
    const type = fieldType(field, key, message);
    return {
      protoName: field.name,
      name: protobuf.util.camelCase(field.name),
      id: field.id,
      type,
      repeated: field.repeated,
      packed: field.repeated && field.packed && isVarint(type),
      presence: policy.presence(key, type, proto2),
      comment: field.comment ?? "",
    };
  };

  for (const [name, text] of sources) {
    const base = name.replace(/\.proto$/, "");
    const proto2 = /^syntax = "proto2";$/m.test(text);
    const file: File = {
      name: base,
      package: defined(packageOf.get(name), "the package of a file"),
      comment:
        /^((?:\/\/.*\n)+)syntax/
          .exec(text)?.[1]
          .replace(/^\/\/ ?/gm, "")
          .trim() ?? "",
      enums: [],
      messages: [],
      services: [],
    };
    for (const object of order) {
      if (fileOf.get(object) !== base) continue;
      if (object instanceof protobuf.Enum) {
        const values = Object.entries(object.values).map(([key, value]) => ({
          name: key,
          value,
          comment: object.comments[key] ?? "",
        }));
        file.enums.push({
          ts: tsName(object),
          fullName: fullName(object),
          values,
          comment: object.comment ?? "",
        });
      } else if (object instanceof protobuf.Service) {
        file.services.push(object);
      } else if (object instanceof protobuf.Type) {
        const message: Message = {
          ts: tsName(object),
          fullName: fullName(object),
          file: base,
          members: [],
          hot: policy.hot(fullName(object)),
          comment: object.comment ?? "",
        };
        const fields = [...object.fieldsArray].sort((a, b) => a.id - b.id);
        let open: Oneof | undefined;
        for (const field of fields) {
          const made = fieldOf(field, object, proto2);
          if (!field.partOf) {
            open = undefined;
            message.members.push({ field: made });
          } else if (open?.protoName === field.partOf.name) {
            open.fields.push(made);
          } else {
            const { name } = field.partOf;
            open = { protoName: name, name: protobuf.util.camelCase(name), fields: [made] };
            message.members.push({ oneof: open });
          }
        }
        file.messages.push(message);
        messagesByFullName.set(message.fullName, message);
      }
    }
    files.push(file);
  }
  policy.finish();
  return { files, messagesByFullName };
}

/**
 * Whether values of the type are varints on the wire (the supported types have no fixed-width
 * ones).
 */
export function isVarint(type: FieldType): boolean {
  return (
    type.kind === "enum" ||
    (type.kind === "scalar" && type.scalar !== "bytes" && type.scalar !== "string")
  );
}

/** Answers from the policy tables, and notices entries that were never asked for. */
class Policy {
  private readonly unused = new Set([
    ...BIGINT_FIELDS,
    ...CLAMPED_FIELDS,
    ...HOT_MESSAGES,
    ...WIDE_FIELDS,
    ...RAW_FIELDS,
    ...Object.keys(RAW_MESSAGES),
    ...REQUIRED_MESSAGES,
    ...OPTIONAL_SCALARS,
  ]);

  private has(table: readonly string[], key: string): boolean {
    if (!table.includes(key)) return false;
    this.unused.delete(key);
    return true;
  }

  hot(message: string): boolean {
    return this.has(HOT_MESSAGES, message);
  }

  scalar(key: string, type: string): ScalarKind {
    const bigint = this.has(BIGINT_FIELDS, key);
    const clamped = this.has(CLAMPED_FIELDS, key);
    const wide = this.has(WIDE_FIELDS, key);
    if (wide && (type !== "int64" || bigint || clamped))
      throw new Error(`${key}: only an int64 of one kind can be wide`);
    switch (type) {
      case "int64":
        if (wide) return "int64Wide";
        return bigint ? "bigInt64" : clamped ? "int64Clamped" : "int64";
      case "uint64":
        if (clamped) throw new Error(`${key}: only int64 can be clamped`);
        return bigint ? "bigUint64" : "uint64";
      case "bool":
      case "string":
      case "bytes":
      case "int32":
      case "uint32":
        if (bigint || clamped) throw new Error(`${key}: not a 64-bit field`);
        return type;
      default:
        throw new Error(`${key}: type ${type} is not supported`);
    }
  }

  raw(key: string, message: string, field: string): boolean {
    const exceptions = RAW_MESSAGES[message];
    if (exceptions !== undefined) {
      this.unused.delete(message);
      return !exceptions.includes(field);
    }
    return this.has(RAW_FIELDS, key);
  }

  presence(key: string, type: FieldType, proto2: boolean): Presence {
    if (type.kind === "message" || type.kind === "raw")
      return this.has(REQUIRED_MESSAGES, key) ? "always" : "optional";
    if (this.has(OPTIONAL_SCALARS, key)) return "optional";
    return proto2 && !(type.kind === "scalar" && type.scalar === "bytes") ? "always" : "implicit";
  }

  finish(): void {
    if (this.unused.size > 0)
      throw new Error(`scripts/proto/policy.ts names no field: ${[...this.unused].join(", ")}`);
  }
}

function walk(
  namespace: protobufjs.NamespaceBase,
  visit: (object: protobufjs.ReflectionObject) => void,
): void {
  for (const object of namespace.nestedArray) {
    visit(object);
    if ("nestedArray" in object) walk(object as protobufjs.NamespaceBase, visit);
  }
}

// Whether a message of type `from` can contain one of type `to`.
function reaches(
  protobuf: typeof protobufjs,
  from: protobufjs.Type,
  to: protobufjs.Type,
  seen = new Set<protobufjs.Type>(),
): boolean {
  if (seen.has(from)) return false;
  seen.add(from);
  return from.fieldsArray.some((field) => {
    const next = field.resolvedType;
    return next instanceof protobuf.Type && (next === to || reaches(protobuf, next, to, seen));
  });
}
