/** Revisions as Kubernetes shows them (apiserver: pkg/storage/api_object_versioner.go). */
import type { KubeObject } from "../meta/object.ts";
import { badRequest } from "../meta/status.ts";
import type { Versioner } from "./interface.ts";

/** No revision of this program is as large, so all larger ones are equal. */
const LARGEST: number = Number.MAX_SAFE_INTEGER - 1;

const TOO_LARGE = "value out of range";
const NO_NUMBER = "invalid syntax";

/** A decimal text as a number; a text of what is wrong with it, in Go's words, otherwise. */
function parsed(text: string): number | string {
  const quoted = JSON.stringify(text);
  if (!/^[0-9]{1,40}$/.test(text)) return `strconv.ParseUint: parsing ${quoted}: ${NO_NUMBER}`;
  if (BigInt(text) >= 2n ** 64n) return `strconv.ParseUint: parsing ${quoted}: ${TOO_LARGE}`;
  return Math.min(Number(text), LARGEST);
}

/** The one Versioner: an object's revision is its metadata.resourceVersion. */
export const objectVersioner: Versioner = {
  withResourceVersion(object, revision) {
    const { resourceVersion: _, ...rest } = object.metadata ?? {};
    const metadata = revision === 0 ? rest : { ...rest, resourceVersion: String(revision) };
    return { ...object, metadata };
  },

  resourceVersionOf(object: KubeObject) {
    const text = object.metadata?.resourceVersion ?? "";
    if (text === "") return 0;
    const value = parsed(text);
    if (typeof value === "string") throw badRequest(value);
    return value;
  },

  parse(resourceVersion) {
    if (resourceVersion === "" || resourceVersion === "0") return 0;
    const value = parsed(resourceVersion);
    if (typeof value === "string")
      throw badRequest(
        `invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(resourceVersion)}: ${value}`,
      );
    return value;
  },
};
