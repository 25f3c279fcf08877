/**
 * What other parts need of a built-in kind: reading clients' objects, protobuf, the encoding at
 * rest and the schema, all from the tables.
 */
import { Reader, toUtf8, WireError, Writer } from "@quorate/proto";
import { apiVersionOf, type GroupVersionKind } from "../meta/kinds.ts";
import { type KubeObject, kubeObjectOf } from "../meta/object.ts";
import { badRequest } from "../meta/status.ts";
import type { KindSource } from "../registry/kind-source.ts";
import type { DecodedObject } from "../rest/served-resource.ts";
import { builtinSchema } from "../schema/builtin-schema.ts";
import type { MutableObject } from "../schema/maps.ts";
import { kindType, type MessageType, messageType } from "../schema/message-type.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import type { ObjectCodec } from "../storage/codec.ts";
import {
  isEnvelope,
  type MessageCodec,
  protobufCodec,
  unwrapEnvelope,
  wrapEnvelope,
} from "./envelope.ts";
import { TypedJsonError } from "./go-json-error.ts";
import { JsonDecoder } from "./json-decode.ts";
import { MAX_READ_WORK } from "./limits.ts";
import { readMessage } from "./wire-decode.ts";
import { writeMessage } from "./wire-encode.ts";

/** A built-in kind. Its protobuf has no envelope; its codec at rest has one, as in Kubernetes. */
export interface BuiltinKind extends KindSource {
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
export function messageCodec(type: MessageType, head: object): MessageCodec {
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
