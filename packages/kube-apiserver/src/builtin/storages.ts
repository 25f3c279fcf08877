/** A resource's storages: the main one, and those of /status, /scale and others. */
import type { ResourceParts, ResourceSpec, RestStorage, SpecStorages } from "@quorate/kube-storage";
import { Store, SubresourceStore } from "@quorate/kube-storage";
import { ScaleStore } from "./scale.ts";

/** Builds the storages of a resource from its declaration. */
export function storagesOf(spec: ResourceSpec, parts: ResourceParts): SpecStorages {
  const subresources: Record<string, RestStorage> = {};
  if (spec.statusStrategy !== undefined) {
    subresources["status"] = new SubresourceStore(spec, parts, spec.statusStrategy);
  }
  if (spec.scale !== undefined) subresources["scale"] = new ScaleStore(spec, parts, spec.scale);
  const storages = { main: new Store(spec, parts), subresources };
  return spec.customize?.(storages, parts) ?? storages;
}
