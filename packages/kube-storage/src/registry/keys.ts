/**
 * Keys of objects (apiserver: registry/generic/registry/store.go, NamespaceKeyFunc):
 *
 *     /configmaps/default/app      namespaced
 *     /namespaces/default          not namespaced
 */
import { quoteText as goQuote } from "@quorate/proto";
import { isPathSegmentName } from "../meta/names.ts";
import { badRequest } from "../meta/status.ts";
import type { ResourceSpec } from "./resource-spec.ts";

/** The prefix of all keys of the resource in a namespace; "" for all namespaces. */
export function keyRootOf(spec: ResourceSpec, namespace: string): string {
  const root = `/${spec.storagePrefix}/`;
  return spec.namespaced && namespace !== "" ? `${root}${namespace}/` : root;
}

/** The key of one object. Throws ApiError 400 for a name that cannot be part of a key. */
export function keyOf(spec: ResourceSpec, namespace: string, name: string): string {
  if (spec.namespaced && namespace === "") throw badRequest("Namespace parameter required.");
  if (name === "") throw badRequest("Name parameter required.");
  const texts = isPathSegmentName(name);
  if (texts.length > 0) {
    throw badRequest(`Name parameter invalid: ${goQuote(name)}: ${texts.join(";")}`);
  }
  return keyRootOf(spec, namespace) + name;
}
