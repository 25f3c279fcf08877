/** Namespaces as admission sees them: from an informer, and from the store where that is behind. */

import type { Getter, KubeObject, RequestContext } from "@quorate/kube-storage";
import { ApiError } from "@quorate/kube-storage";
import type { Informer } from "../informers/informer.ts";

export interface Namespaces {
  /** From memory; undefined where there is none, or not yet. */
  cached(name: string): KubeObject | undefined;
  /** From the store; undefined where there is none. Rejects with ApiError. */
  live(name: string): Promise<KubeObject | undefined>;
}

/** @param context of reads, with a user that may read namespaces */
export function namespacesOf(
  informer: Informer,
  storage: Getter,
  context: () => RequestContext,
): Namespaces {
  return {
    cached: (name) => informer.get("", name),
    async live(name) {
      try {
        return (await storage.get(context(), name, { resourceVersion: "" })).object();
      } catch (error) {
        if (error instanceof ApiError && error.httpStatus === 404) return undefined;
        throw error;
      }
    },
  };
}
