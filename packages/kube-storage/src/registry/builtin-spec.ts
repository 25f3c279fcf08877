/** The declaration of a built-in resource: what follows from its kind and its plural. */
import type { KindSource } from "./kind-source.ts";
import type { ResourceSpec } from "./resource-spec.ts";

/** What most built-in resources have in common; each may be given. */
type Usual = "singular" | "shortNames" | "categories" | "namespaced" | "storagePrefix";
/** What the kind decides. */
type OfKind = "kind" | "codec" | "schema" | "resource";

/**
 * A namespaced resource without short names, stored below its plural, unless `own` says otherwise.
 * The schema is made when it is first read: a start needs few of them.
 * @param resource the plural
 */
export function builtinSpec(
  source: KindSource,
  resource: string,
  own: Omit<ResourceSpec, Usual | OfKind> & Partial<Pick<ResourceSpec, Usual>>,
): ResourceSpec {
  return {
    kind: source.kind,
    resource,
    singular: resource.slice(0, -1),
    shortNames: [],
    categories: [],
    namespaced: true,
    storagePrefix: resource,
    codec: source.codec,
    ...own,
    get schema() {
      return source.schema;
    },
  };
}
