/** Labels and selectable fields of objects, and which fields a selector may name. */
import { quoteText as goQuote } from "@quorate/proto";
import type { Selector } from "../meta/selectors.ts";
import { badRequest } from "../meta/status.ts";
import type { AttributesOf } from "../storage/interface.ts";
import type { ResourceSpec } from "./resource-spec.ts";

const NO_LABELS: Readonly<Record<string, string>> = {};

/** The attributes of a resource's objects, for its storage. */
export function attributesOf(
  spec: Pick<ResourceSpec, "namespaced" | "selectableFields">,
): AttributesOf {
  return (object) => {
    const { name = "", namespace = "", labels = NO_LABELS } = object.metadata;
    const own = spec.selectableFields?.(object);
    const fields: Record<string, string> = { ...own, "metadata.name": name };
    if (spec.namespaced) fields["metadata.namespace"] = namespace;
    return { labels, fields };
  };
}

/**
 * Checks that the resource can be selected by these fields; throws ApiError 400 otherwise
 * (apimachinery: runtime/conversion.go, DefaultMetaV1FieldSelectorConversion).
 */
export function checkSelectableFields(spec: ResourceSpec, selector: Selector): void {
  const own = spec.selectableFieldNames;
  for (const field of selector.attributes ?? []) {
    if (field === "metadata.name") continue;
    if (own === undefined) {
      if (field === "metadata.namespace") continue;
      const text = `${goQuote(field)} is not a known field selector: only `;
      throw badRequest(`${text}"metadata.name", "metadata.namespace"`);
    }
    if (field === "metadata.namespace" && spec.namespaced) continue;
    if (!own.includes(field)) throw badRequest(`field label not supported: ${field}`);
  }
}
