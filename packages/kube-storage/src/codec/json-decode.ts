/**
 * Objects of built-in kinds from JSON values, with the rules of Go's decoder (sigs.k8s.io/json):
 * names are case-sensitive, unknown and duplicate fields are reported, null is the zero value. The
 * result has the form in which Go would write the object again, with defaults filled in.
 */
import { toBase64, writeFromBase64 } from "@quorate/proto";
import { isObject } from "../meta/object.ts";
import { type MutableObject, setField, sortedKeys } from "../schema/maps.ts";
import type { Field, MessageType, ValueType } from "../schema/message-type.ts";
import { type CustomDecoding, customFromJson } from "./custom-json.ts";
import { duplicatesIn, jsonKind, TypedJsonError } from "./json-parser.ts";
import { MAX_MESSAGE_DEPTH, MAX_STRICT_ERRORS } from "./limits.ts";
import { objectOf, orNull, zeroOf } from "./values.ts";

/** The state of decoding one object: where it is, for errors, and what was found. */
export class JsonDecoder implements CustomDecoding {
  private found: Set<string> | undefined;
  /** Keys and indexes down to the present value. */
  private readonly path: (string | number)[] = [];
  /** Go's names of the fields down to the present value. */
  private readonly fieldStack: string[] = [];
  private struct = "";
  private firstError: TypedJsonError | undefined;
  private depth = 0;
  /** Above 0 in values that Go decodes without strictness. */
  private lenient = 0;

  /**
   * @param body a JSON value; not changed; null is an empty object
   * @returns the object; throws TypedJsonError with Go's text
   */
  decode(type: MessageType, body: unknown): MutableObject {
    const value = body ?? {};
    if (!isObject(value)) {
      const goType = `${type.package.goName}.${type.name}`;
      throw new TypedJsonError(
        `json: cannot unmarshal ${jsonKind(value)} into Go value of type ${goType}`,
      );
    }
    const object = this.message(type, value);
    if (this.firstError !== undefined) throw this.firstError;
    return object;
  }

  /** Such as 'unknown field "spec.foo"', in the order of the text, without repetitions. */
  get strictErrors(): readonly string[] {
    return this.found === undefined ? [] : [...this.found];
  }

  /** A value of any type; undefined for nil. */
  value(type: ValueType, value: unknown): unknown {
    if (type.shape === "message") return this.messageValue(type, value);
    if (value === null) return undefined;
    if (type.shape === "list") return this.list(type, value);
    if (type.shape === "map") return this.map(type, value);
    return this.scalar(type, value);
  }

  /** An embedded object whose unknown and duplicate fields Go does not look for. */
  leniently(type: MessageType, value: unknown): MutableObject {
    this.lenient++;
    const object = this.message(type, value as MutableObject);
    this.lenient--;
    return object;
  }

  /** Keeps the first error, as Go does. Returns undefined. */
  fail(message: string): undefined {
    this.firstError ??= new TypedJsonError(message);
    return undefined;
  }

  /** The error for a value of the wrong type. Returns undefined. */
  wrongType(value: string, goType: string): undefined {
    const where =
      this.struct === "" ? "value" : `struct field ${this.struct}.${this.fieldStack.join(".")}`;
    return this.fail(`json: cannot unmarshal ${value} into Go ${where} of type ${goType}`);
  }

  private messageValue(type: ValueType, value: unknown): unknown {
    const message = type.message();
    if (message.custom !== undefined)
      return value === null && type.pointer
        ? undefined
        : customFromJson(message.custom, value, this);
    if (value === null) return undefined;
    if (message.alias !== undefined) return this.value(message.alias, value);
    if (!isObject(value)) return this.wrongType(jsonKind(value), type.goType);
    return this.message(message, value);
  }

  private message(type: MessageType, value: MutableObject): MutableObject {
    if (++this.depth > MAX_MESSAGE_DEPTH) {
      this.fail("exceeded max depth");
      this.depth--;
      return {};
    }
    const outerStruct = this.struct;
    const duplicates = duplicatesIn(value);
    const values: unknown[] = [];
    for (const key of Object.keys(value)) {
      const slot = type.slotOf.get(key);
      const field = slot === undefined ? undefined : type.fields[slot];
      if (slot === undefined || field === undefined) {
        this.strict("unknown", key);
        continue;
      }
      if (duplicates?.has(key)) this.strict("duplicate", key);
      this.enter(type, field);
      values[slot] = this.value(field.type, value[key]);
      this.leave(field, outerStruct);
    }
    this.depth--;
    return objectOf(type, values);
  }

  private enter(type: MessageType, field: Field): void {
    this.struct = type.name;
    this.path.push(field.name);
    for (const name of field.inlinedIn) this.fieldStack.push(name);
    this.fieldStack.push(field.name);
  }

  private leave(field: Field, outerStruct: string): void {
    this.struct = outerStruct;
    this.path.pop();
    this.fieldStack.length -= field.inlinedIn.length + 1;
  }

  private list(type: ValueType, value: unknown): unknown {
    const of = type.of as ValueType;
    if (!Array.isArray(value)) return this.wrongType(jsonKind(value), type.goType);
    return value.map((item: unknown, index) => {
      this.path.push(index);
      const decoded = this.value(of, item);
      this.path.pop();
      return orNull(decoded === undefined ? zeroOf(of) : decoded);
    });
  }

  private map(type: ValueType, value: unknown): unknown {
    const of = type.of as ValueType;
    if (!isObject(value)) return this.wrongType(jsonKind(value), type.goType);
    const duplicates = duplicatesIn(value);
    const map: MutableObject = {};
    if (duplicates !== undefined)
      for (const key of Object.keys(value)) if (duplicates.has(key)) this.strict("duplicate", key);
    for (const key of sortedKeys(value)) {
      this.path.push(key);
      const decoded = this.value(of, value[key]);
      this.path.pop();
      setField(map, key, orNull(decoded === undefined ? zeroOf(of) : decoded));
    }
    return map;
  }

  private scalar({ scalar, goType }: ValueType, value: unknown): unknown {
    switch (scalar) {
      case "any":
        return value;
      case "string":
        return typeof value === "string" ? value : this.wrongType(jsonKind(value), goType);
      case "bool":
        return typeof value === "boolean" ? value : this.wrongType(jsonKind(value), goType);
      case "bytes":
        if (Array.isArray(value)) return this.byteList(value);
        return typeof value === "string"
          ? this.bytes(value)
          : this.wrongType(jsonKind(value), goType);
      default:
        break;
    }
    if (typeof value !== "number") return this.wrongType(jsonKind(value), goType);
    if (scalar === "double") return value;
    const fits = scalar === "int32" ? (value | 0) === value : Number.isSafeInteger(value);
    return fits ? value : this.wrongType(`number ${value}`, goType);
  }

  /** Go takes a list of numbers for bytes too. */
  private byteList(items: readonly unknown[]): string | undefined {
    const bytes = Uint8Array.from(items, (item) => {
      if (typeof item === "number" && (item & 0xff) === item) return item;
      if (item !== null)
        this.wrongType(typeof item === "number" ? `number ${item}` : jsonKind(item), "uint8");
      return 0;
    });
    return toBase64(bytes);
  }

  private bytes(text: string): string | undefined {
    const clean = /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, "") : text;
    const valid = /^[A-Za-z0-9+/]*={0,2}/.exec(clean)?.[0] ?? "";
    if (valid.length !== clean.length || clean.length % 4 !== 0)
      return this.fail(`illegal base64 data at input byte ${Math.min(valid.length, clean.length)}`);
    if (!clean.endsWith("=")) return clean;
    // The unused bits of the last character are zero in what Go writes.
    const bytes = new Uint8Array((clean.length / 4) * 3);
    return toBase64(bytes, 0, writeFromBase64(bytes, clean, 0));
  }

  private strict(what: "unknown" | "duplicate", key: string): void {
    this.found ??= new Set();
    if (this.lenient > 0 || this.found.size >= MAX_STRICT_ERRORS) return;
    let at = "";
    for (const step of this.path)
      at += typeof step === "number" ? `[${step}]` : at === "" ? step : `.${step}`;
    this.found.add(`${what} field ${JSON.stringify(at === "" ? key : `${at}.${key}`)}`);
  }
}
