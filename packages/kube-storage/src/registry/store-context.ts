/** What each operation of a registry store works with. */
import type { ResourceParts } from "./resource-parts.ts";
import type { ResourceSpec } from "./resource-spec.ts";
import type { Strategy } from "./strategy.ts";

export interface StoreContext {
  readonly spec: ResourceSpec;
  readonly parts: ResourceParts;
  /** As errors name it. */
  readonly resource: { readonly group: string; readonly resource: string };
  /** The rules of updates: the resource's own, or those of a subresource. */
  readonly updateStrategy: Strategy;
}
