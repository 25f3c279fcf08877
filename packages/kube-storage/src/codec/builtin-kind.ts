/**
 * What other parts need of a built-in kind: reading clients' objects, protobuf, the encoding at
 * rest and the schema, all from the tables.
 */
import {
  equals,
  fromUtf8,
  putVarint,
  Reader,
  toUtf8,
  varintSize,
  WireError,
  Writer,
} from "@quorate/proto";
import { apiVersionOf, type GroupVersionKind } from "../meta/kinds.ts";
import { type KubeObject, kubeObjectOf } from "../meta/object.ts";
import { badRequest } from "../meta/status.ts";
import type { KindSource } from "../registry/resource-spec.ts";
import type { DecodedObject } from "../rest/served-resource.ts";
import { builtinSchema } from "../schema/builtin-schema.ts";
import type { MutableObject } from "../schema/maps.ts";
import { kindType, type MessageType, messageType } from "../schema/message-type.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import type { ObjectCodec } from "../storage/codec.ts";
import { decodeJsonObject, withoutStoreFields } from "./json-codec.ts";
import { JsonDecoder } from "./json-decode.ts";
import { TypedJsonError } from "./json-parser.ts";
import { MAX_READ_WORK } from "./limits.ts";
import { readMessage, writeMessage } from "./wire.ts";

/** A built-in kind. Its protobuf has no envelope; its codec at rest has one, as in Kubernetes. */
interface BuiltinKind extends KindSource {
  readonly schema: ObjectSchema;
  readonly protobuf: MessageCodec;
}

const made = new Map<string, BuiltinKind>();

/** Of all encodings: one is over before the next begins. */
const writer = new Writer();

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

/** As builtinKind; throws RangeError where there is no such kind. */
export function kindSource(group: string, version: string, kind: string): BuiltinKind {
  const found = builtinKind({ group, version, kind });
  if (found === undefined) throw new RangeError(`no kind ${group}/${version} ${kind}`);
  return found;
}

function makeKind(kind: GroupVersionKind, type: MessageType): BuiltinKind {
  const head = { kind: kind.kind, apiVersion: apiVersionOf(kind) };
  const decode = (value: unknown): DecodedObject => {
    const decoder = new JsonDecoder();
    const object = kubeObjectOf({ ...head, ...decoder.decode(type, value) });
    return { object, strictErrors: decoder.strictErrors };
  };
  const protobuf = messageCodec(type, head);
  return {
    kind,
    get schema() {
      return builtinSchema(kind) as ObjectSchema;
    },
    protobuf,
    codec: storageCodec(protobufCodec(head, protobuf), (value) => decode(value).object),
    decode(value) {
      try {
        return decode(value);
      } catch (error) {
        if (!(error instanceof TypedJsonError)) throw error;
        throw badRequest(
          `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ` +
            error.message,
        );
      }
    },
  };
}

/**
 * The protobuf of a type's objects.
 * @param head fields that the message itself does not have: kind and apiVersion
 */
function messageCodec(type: MessageType, head: object): MessageCodec {
  return {
    encode(object) {
      writer.reset();
      writeMessage(writer, type, object as MutableObject);
      return writer.finish();
    },
    decode: (bytes) =>
      kubeObjectOf({ ...head, ...readMessage(new Reader(bytes, MAX_READ_WORK), type) }),
  };
}

/** Reads stored JSON with the rules of the kind too, and throws TypeError for all bad values. */
function storageCodec(binary: ObjectCodec, fromJson: (value: unknown) => KubeObject): ObjectCodec {
  return {
    encode: binary.encode,
    decode(bytes) {
      try {
        return isEnvelope(bytes) ? binary.decode(bytes) : fromJson(JSON.parse(toUtf8(bytes)));
      } catch (error) {
        const isBadValue =
          error instanceof WireError ||
          error instanceof SyntaxError ||
          error instanceof TypedJsonError;
        throw isBadValue ? new TypeError(error.message, { cause: error }) : error;
      }
    },
  };
}

type MetaMessage = "Status" | "ListMeta" | "PartialObjectMetadata" | "DeleteOptions";

const codecs = new Map<MetaMessage, MessageCodec>();

function codecOf(name: MetaMessage): MessageCodec {
  let codec = codecs.get(name);
  if (codec === undefined) {
    const type = messageType(`meta.${name}`);
    if (type === undefined) throw new RangeError(`no type ${name}`);
    codec = messageCodec(type, {});
    codecs.set(name, codec);
  }
  return codec;
}

/**
 * Protobuf of meta/v1's types that handlers send and receive, and the envelope around objects.
 * Messages are without envelope. decode throws WireError, unwrap TypeError, for bad bytes.
 */
export const metaProtobuf = {
  encode: (name: MetaMessage, value: unknown): Uint8Array =>
    codecOf(name).encode(value as KubeObject),
  decode: (name: MetaMessage, bytes: Uint8Array): unknown => codecOf(name).decode(bytes),
  wrap: (apiVersion: string, kind: string, message: Uint8Array): Uint8Array =>
    wrapEnvelope({ apiVersion, kind, raw: message }),
  unwrap(bytes: Uint8Array): { apiVersion: string; kind: string; message: Uint8Array } {
    const { apiVersion, kind, raw } = unwrapEnvelope(bytes);
    return { apiVersion, kind, message: raw };
  },
};

/**
 * Kubernetes' protobuf encoding of an object (apimachinery: runtime/serializer/protobuf):
 *
 *     "k8s\0"  runtime.Unknown { 1: TypeMeta { 1: apiVersion, 2: kind }, 2: raw,
 *                                3: contentEncoding, 4: contentType }
 *
 * `raw` is the message of the kind. Kubernetes writes the two last fields also when they are empty.
 */
const MAGIC = new Uint8Array([0x6b, 0x38, 0x73, 0]);

/** Fields 3 and 4, both empty. */
const NO_CONTENT_TYPE = new Uint8Array([0x1a, 0, 0x22, 0]);

/** The parts of an envelope. */
interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  /** The message of the kind; a view of the bytes that were read. */
  readonly raw: Uint8Array;
}

/** Whether bytes are an envelope; if not, they are JSON. */
export function isEnvelope(bytes: Uint8Array): boolean {
  return bytes.length >= MAGIC.length && equals(bytes.subarray(0, MAGIC.length), MAGIC);
}

export function wrapEnvelope({ apiVersion, kind, raw }: Envelope): Uint8Array {
  const version = fromUtf8(apiVersion);
  const name = fromUtf8(kind);
  const typeMeta = field(version) + field(name);
  const size =
    MAGIC.length + 1 + varintSize(typeMeta) + typeMeta + field(raw) + NO_CONTENT_TYPE.length;
  const bytes = new Uint8Array(size);
  bytes.set(MAGIC);
  let at = MAGIC.length;
  bytes[at++] = 0x0a;
  at = putVarint(bytes, at, typeMeta);
  at = putField(bytes, at, 0x0a, version);
  at = putField(bytes, at, 0x12, name);
  at = putField(bytes, at, 0x12, raw);
  bytes.set(NO_CONTENT_TYPE, at);
  return bytes;
}

function field(value: Uint8Array): number {
  return 1 + varintSize(value.length) + value.length;
}

function putField(bytes: Uint8Array, at: number, tag: number, value: Uint8Array): number {
  bytes[at] = tag;
  const start = putVarint(bytes, at + 1, value.length);
  bytes.set(value, start);
  return start + value.length;
}

/** Throws TypeError for bytes that are no envelope, or one with an encoding of its content. */
export function unwrapEnvelope(bytes: Uint8Array): Envelope {
  if (!isEnvelope(bytes)) throw new TypeError("the value does not begin with k8s and a zero byte");
  let apiVersion = "";
  let kind = "";
  let raw: Uint8Array = new Uint8Array(0);
  for (const [number, value] of fieldsOf(bytes.subarray(MAGIC.length))) {
    if (number === 1)
      for (const [inner, text] of fieldsOf(value)) {
        if (inner === 1) apiVersion = toUtf8(text);
        else if (inner === 2) kind = toUtf8(text);
      }
    else if (number === 2) raw = value;
    else if (number === 3 && value.length > 0)
      throw new TypeError(`unknown content encoding ${JSON.stringify(toUtf8(value))}`);
  }
  return { apiVersion, kind, raw };
}

/** The length-delimited fields of a message. */
function* fieldsOf(bytes: Uint8Array): Generator<[number, Uint8Array], undefined> {
  const reader = new Reader(bytes);
  try {
    while (reader.pos < reader.end) {
      const tag = reader.tag();
      if ((tag & 7) === 2) yield [tag >>> 3, reader.view()];
      else reader.skip(tag, {});
    }
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    throw new TypeError(`the value is no protobuf message: ${error.message}`);
  }
}

/** The message of a kind, without envelope. */
interface MessageCodec {
  encode(object: KubeObject): Uint8Array;
  decode(bytes: Uint8Array): KubeObject;
}

/**
 * Stores a kind as protobuf, as kube-apiserver does with built-in kinds, and reads JSON too.
 * @param kind what objects must be; others are refused
 */
export function protobufCodec(
  kind: { readonly apiVersion: string; readonly kind: string },
  message: MessageCodec,
): ObjectCodec {
  return {
    encode: (object) => wrapEnvelope({ ...kind, raw: message.encode(withoutStoreFields(object)) }),
    decode(bytes) {
      if (!isEnvelope(bytes)) return decodeJsonObject(bytes);
      const envelope = unwrapEnvelope(bytes);
      if (envelope.apiVersion !== kind.apiVersion || envelope.kind !== kind.kind)
        throw new TypeError(
          `the stored object is ${envelope.apiVersion} ${envelope.kind}, not ${kind.apiVersion} ${kind.kind}`,
        );
      return { ...message.decode(envelope.raw), ...kind };
    },
  };
}
