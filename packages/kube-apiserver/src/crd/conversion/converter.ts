/** Conversion of custom resources between versions. */
import type { KubeObject } from "@quorate/kube-storage";

export interface Converter {
  /**
   * Objects in one version, in the same order. Those that have it already are returned as they are.
   * Returns at once where nothing has to be asked. Rejects with ApiError.
   * @param apiVersion such as "example.org/v2"
   */
  convert(
    objects: readonly KubeObject[],
    apiVersion: string,
  ): readonly KubeObject[] | Promise<readonly KubeObject[]>;
}

/** Conversion "None": only the apiVersion changes. */
export const noConversion: Converter = {
  convert: (objects, apiVersion) =>
    objects.map((object) =>
      object.apiVersion === apiVersion ? object : { ...object, apiVersion },
    ),
};
