/**
 * The chain of admission plug-ins (apiserver: pkg/admission/chain.go). All that change objects run
 * first, in order, each on what the one before returned; then those that check.
 */
import type { KubeObject } from "@quorate/kube-storage";
import { type ApiError, forbidden } from "@quorate/kube-storage";
import type { Admission, AdmissionAttributes } from "./admission.ts";

/** One plug-in: it changes, checks, or both. Both reject with ApiError. */
export interface AdmissionPlugin {
  /** Resolves with the object, changed or not. */
  mutate?(attributes: AdmissionAttributes): Promise<KubeObject | undefined>;
  validate?(attributes: AdmissionAttributes): Promise<void>;
}

export function admissionChain(plugins: readonly AdmissionPlugin[]): Admission {
  return {
    async mutate(attributes) {
      let { object } = attributes;
      for (const plugin of plugins)
        if (plugin.mutate !== undefined) object = await plugin.mutate({ ...attributes, object });
      return object;
    },
    async validate(attributes) {
      for (const plugin of plugins) await plugin.validate?.(attributes);
    },
  };
}

/** The error of a plug-in that refuses a request; a new object may not have a name yet. */
export function admissionForbidden(attributes: AdmissionAttributes, why: string): ApiError {
  return forbidden(attributes.resource, nameFor(attributes), why);
}

function nameFor({ name, object }: AdmissionAttributes): string {
  if (name !== "") return name;
  return object?.metadata.name || object?.metadata.generateName || "Unknown";
}
