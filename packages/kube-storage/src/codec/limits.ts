/** Limits of the codecs; docs/reference/kubernetes-limits.md lists them. */

/** Nesting of messages in objects of built-in kinds, which only CRD schemas come near to. */
export const MAX_MESSAGE_DEPTH = 100;
/** Unknown and duplicate fields that one request reports (as Kubernetes). */
export const MAX_STRICT_ERRORS = 100;
/** Nesting of JSON and YAML texts. */
export const MAX_JSON_DEPTH = 1000;

/** Whether a JSON value has at most so many levels of maps and lists. */
export function fitsDepth(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (levels === 0) return false;
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    if (typeof item === "object" && !fitsDepth(item, levels - 1)) return false;
  }
  return true;
}

/** Duplicate names that are remembered for one text; later ones are not reported. */
export const MAX_DUPLICATE_FIELDS = 100;
/** Work of reading one object, in the units of the protobuf reader: 1 for a field, 4 for a text. */
export const MAX_READ_WORK: number = 4 * 1024 * 1024;
/** Values of one YAML text, those behind aliases counted at each place. */
export const MAX_YAML_VALUES = 500_000;
