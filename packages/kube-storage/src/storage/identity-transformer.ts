/** Values that are stored as they are. */
import { equals, fromUtf8 } from "@quorate/proto";
import type { ValueTransformer } from "./codec.ts";

/** All encrypted values begin with this; protobuf does with "k8s\0", and JSON with "{". */
const encryptedPrefix = fromUtf8("k8s:enc:");

/** Refuses encrypted values, so that another provider is tried. */
export const identityTransformer: ValueTransformer = {
  toStorage: (_key, value) => value,
  fromStorage(_key, value) {
    if (equals(value.subarray(0, encryptedPrefix.length), encryptedPrefix))
      throw new Error("identity transformer tried to read encrypted data");
    return { value, stale: false };
  },
};
