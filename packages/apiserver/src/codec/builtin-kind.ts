/**
 * What other parts need of a built-in kind: reading clients' objects, protobuf, the encoding at
 * rest and the schema, all from the tables.
 */
import { fromUtf8, toUtf8, WireError, Writer } from "@quorate/proto";
import { apiVersionOf, type GroupVersionKind } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import { badRequest } from "../meta/status.ts";
import type { DecodedObject } from "../rest/served-resource.ts";
import { builtinSchema } from "../schema/builtin-schema.ts";
import { kindType, type MessageType } from "../schema/message-type.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import type { ObjectCodec } from "../storage/codec.ts";
import { closeEnvelope, isProtobuf, openEnvelope, readerOf } from "./envelope.ts";
import { TypedJsonError } from "./go-json-error.ts";
import { JsonDecoder } from "./json-decode.ts";
import type { MutableObject } from "./values.ts";
import { readMessage } from "./wire-decode.ts";
import { writeMessage } from "./wire-encode.ts";

export interface BuiltinKind {
  readonly kind: GroupVersionKind;
  /** Made when it is first read. */
  readonly schema: ObjectSchema;
  /** ServedResource.decode: throws ApiError 400 for a value of the wrong type. */
  decode(value: unknown): DecodedObject;
  /** ServedResource.protobuf. Both have the envelope; decode also throws WireError. */
  readonly protobuf: {
    encode(object: KubeObject): Uint8Array;
    decode(bytes: Uint8Array): KubeObject;
    /** The object's own message, without the envelope, for lists. */
    encodeMessage(object: KubeObject): Uint8Array;
  };
  /** The encoding at rest: protobuf, as Kubernetes does. Reads JSON too. */
  readonly storageCodec: ObjectCodec;
}

const made = new Map<string, BuiltinKind>();

/** The kind, if it is a built-in one; lists and meta/v1's kinds are kinds too. */
export function builtinKind(kind: GroupVersionKind): BuiltinKind | undefined {
  const key = `${apiVersionOf(kind)}/${kind.kind}`;
  const before = made.get(key);
  if (before !== undefined) return before;
  const type = kindType(kind.group, kind.version, kind.kind);
  if (type === undefined) return undefined;
  const builtin = makeKind(kind, type);
  made.set(key, builtin);
  return builtin;
}

/** The kind; throws RangeError where it is not a built-in one. */
export function mustBuiltinKind(kind: GroupVersionKind): BuiltinKind {
  const found = builtinKind(kind);
  if (found === undefined) throw new RangeError(`no kind ${apiVersionOf(kind)}/${kind.kind}`);
  return found;
}

function makeKind(kind: GroupVersionKind, type: MessageType): BuiltinKind {
  const apiVersion = apiVersionOf(kind);
  const withKind = (object: MutableObject): KubeObject =>
    ({ kind: kind.kind, apiVersion, ...object }) as unknown as KubeObject;
  const fromMessage = (raw: Uint8Array): KubeObject => withKind(readMessage(readerOf(raw), type));
  const decode = (value: unknown): DecodedObject => {
    const decoder = new JsonDecoder();
    const object = withKind(decoder.decode(type, value)) as unknown as KubeObject;
    return { object, strictErrors: decoder.strictErrors };
  };
  const encodeMessage = (object: KubeObject): Uint8Array => {
    const writer = new Writer();
    writeMessage(writer, type, object as MutableObject);
    return writer.finish();
  };
  const encode = (object: KubeObject): Uint8Array =>
    closeEnvelope(apiVersion, kind.kind, encodeMessage(object));
  return {
    kind,
    get schema() {
      return builtinSchema(kind) as ObjectSchema;
    },
    decode: (value) => {
      try {
        return decode(value);
      } catch (error) {
        if (!(error instanceof TypedJsonError)) throw error;
        const { kind: name, version } = kind;
        throw badRequest(
          `${name} in version "${version}" cannot be handled as a ${name}: ${error.message}`,
        );
      }
    },
    protobuf: {
      encode,
      encodeMessage,
      decode: (bytes) => fromMessage(openEnvelope(bytes).raw),
    },
    storageCodec: {
      encode: (object) => encode(withoutRevision(object)),
      decode: (bytes) => fromStore(bytes, fromMessage, (value) => decode(value).object),
    },
  };
}

function withoutRevision(object: KubeObject): KubeObject {
  const {
    resourceVersion,
    selfLink: _selfLink,
    ...metadata
  } = object.metadata as {
    resourceVersion?: string;
    selfLink?: string;
  };
  return resourceVersion === undefined ? object : { ...object, metadata };
}

function fromStore(
  bytes: Uint8Array,
  fromMessage: (raw: Uint8Array) => KubeObject,
  fromJson: (value: unknown) => KubeObject,
): KubeObject {
  try {
    if (isProtobuf(bytes)) return fromMessage(openEnvelope(bytes).raw);
    return fromJson(JSON.parse(toUtf8(bytes)));
  } catch (error) {
    if (error instanceof WireError || error instanceof SyntaxError)
      throw new TypeError(error.message, { cause: error });
    if (error instanceof TypedJsonError) throw new TypeError(error.message, { cause: error });
    throw error;
  }
}

/** The encoding at rest of resources without a protobuf form, such as custom ones. */
export const JSON_STORAGE_CODEC: ObjectCodec = {
  encode: (object) => fromUtf8(`${JSON.stringify(withoutRevision(object))}\n`),
  decode: (bytes) => {
    try {
      return JSON.parse(toUtf8(bytes)) as KubeObject;
    } catch (error) {
      throw new TypeError((error as SyntaxError).message, { cause: error });
    }
  },
};
