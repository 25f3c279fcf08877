/** Protobuf of meta/v1's types that handlers send and receive, and the envelope around objects. */
import type { KubeObject } from "../meta/object.ts";
import { messageType } from "../schema/message-type.ts";
import { messageCodec } from "./builtin-kind.ts";
import { type MessageCodec, unwrapEnvelope, wrapEnvelope } from "./envelope.ts";

export type MetaMessage = "Status" | "ListMeta" | "PartialObjectMetadata" | "DeleteOptions";

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

/** Messages are without envelope. decode throws WireError, unwrap TypeError, for bad bytes. */
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
