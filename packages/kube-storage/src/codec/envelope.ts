/**
 * Kubernetes' protobuf encoding of an object (apimachinery: runtime/serializer/protobuf):
 *
 *     "k8s\0"  runtime.Unknown { 1: TypeMeta { 1: apiVersion, 2: kind }, 2: raw,
 *                                3: contentEncoding, 4: contentType }
 *
 * `raw` is the message of the kind. Kubernetes writes the two last fields also when they are empty.
 */
import { equals, fromUtf8, putVarint, Reader, toUtf8, varintSize, WireError } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import type { ObjectCodec } from "../storage/codec.ts";
import { decodeJsonObject, withoutStoreFields } from "./json-codec.ts";

const MAGIC = new Uint8Array([0x6b, 0x38, 0x73, 0]);

/** Fields 3 and 4, both empty. */
const NO_CONTENT_TYPE = new Uint8Array([0x1a, 0, 0x22, 0]);

/** The parts of an envelope. */
export interface Envelope {
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
export interface MessageCodec {
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
