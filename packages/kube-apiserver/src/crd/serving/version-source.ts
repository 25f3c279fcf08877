/** Reads what clients send for one version of a custom resource. */

import type { DecodedObject, KindSource, ObjectCodec } from "@quorate/kube-storage";
import {
  badRequest,
  duplicateFieldsOf,
  fitsDepth,
  isObject,
  kubeObjectOf,
} from "@quorate/kube-storage";
import { EmbeddedError } from "../schema/embedded.ts";
import { MetaTypeError } from "../schema/object-meta.ts";
import { MAX_VALUE_DEPTH, type VersionSchema } from "./version-schema.ts";

/** @param codec of the storage */
export function versionSource(version: VersionSchema, codec: ObjectCodec): KindSource {
  const { kind } = version;
  return {
    kind,
    codec,
    schema: { kind, schema: version.complete },
    decode: (value) => decode(version, value),
    protobuf: undefined,
  };
}

function decode(version: VersionSchema, value: unknown): DecodedObject {
  const { kind } = version.kind;
  const refuse = (why: string) =>
    badRequest(
      `${kind} in version "${version.kind.version}" cannot be handled as a ${kind}: ${why}`,
    );
  if (!isObject(value)) throw refuse("the value is no JSON object");
  if (!fitsDepth(value, MAX_VALUE_DEPTH))
    throw refuse(`it is nested deeper than ${MAX_VALUE_DEPTH} levels`);
  const unknown: string[] = [];
  try {
    const duplicates = duplicateFieldsOf(value);
    const object = version.read(kubeObjectOf(value), { dropMalformed: false, unknown });
    return {
      object,
      strictErrors: [...duplicates, ...unknown.map((path) => `unknown field "${path}"`)],
    };
  } catch (error) {
    if (error instanceof MetaTypeError || error instanceof EmbeddedError)
      throw refuse(error.message);
    throw error;
  }
}
