/** What the tables of built-in kinds know about one kind. */
import type { GroupVersionKind } from "../meta/kinds.ts";
import type { DecodedObject, ServedResource } from "../rest/served-resource.ts";
import type { ObjectSchema } from "../schema/schema.ts";
import type { ObjectCodec } from "../storage/codec.ts";

export interface KindSource {
  readonly kind: GroupVersionKind;
  /** How objects are stored. */
  readonly codec: ObjectCodec;
  readonly schema: ObjectSchema | undefined;
  /** Reads a client's JSON value: prunes, defaults, finds unknown fields. Throws ApiError. */
  decode(value: unknown): DecodedObject;
  readonly protobuf: ServedResource["protobuf"];
}
