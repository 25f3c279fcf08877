/**
 * How custom resources are stored: JSON in the storage version. Objects that an earlier storage
 * version left are read as they are and converted later, because a webhook may be needed.
 */

import type { ObjectCodec } from "@quorate/kube-storage";
import { jsonCodec, parseApiVersion, withMetadata } from "@quorate/kube-storage";
import type { VersionSchema } from "./version-schema.ts";

/** @param versions all versions of the definition, by name */
export function storedCodec(versions: ReadonlyMap<string, VersionSchema>): ObjectCodec {
  return {
    encode: jsonCodec.encode,
    decode(bytes) {
      const object = jsonCodec.decode(bytes);
      const { version = "" } = parseApiVersion(object.apiVersion) ?? {};
      const known = versions.get(version);
      if (known === undefined) {
        const why = "request to convert CR from an invalid group/version";
        throw new TypeError(`${why}: ${object.apiVersion}`);
      }
      const read = known.read(object, { dropMalformed: true });
      // Very old objects have no generation.
      return (read.metadata.generation ?? 0) === 0 ? withMetadata(read, { generation: 1 }) : read;
    },
  };
}
