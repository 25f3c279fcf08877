/** Names of kinds and resources (apimachinery: runtime/schema/group_version.go). */

export interface GroupVersion {
  /** "" for the core group. */
  readonly group: string;
  readonly version: string;
}

export interface GroupVersionKind extends GroupVersion {
  readonly kind: string;
}

export interface GroupVersionResource extends GroupVersion {
  /** The plural, in lower case, such as "configmaps". */
  readonly resource: string;
}

/** "v1" or "apps/v1". */
export function apiVersionOf({ group, version }: GroupVersion): string {
  return group === "" ? version : `${group}/${version}`;
}

/** Parses "v1" or "apps/v1"; undefined when there is more than one slash or an empty version. */
export function parseApiVersion(text: string): GroupVersion | undefined {
  const parts = text.split("/");
  if (parts.length > 2 || parts.at(-1) === "") return undefined;
  return parts.length === 1
    ? { group: "", version: parts[0] }
    : { group: parts[0], version: parts[1] };
}

/** "configmaps" or "deployments.apps", as errors name resources. */
export function resourceName({ group, resource }: { group: string; resource: string }): string {
  return group === "" ? resource : `${resource}.${group}`;
}
