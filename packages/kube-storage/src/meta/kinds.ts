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
  const [first = "", second, third] = text.split("/");
  const version = second ?? first;
  if (third !== undefined || version === "") return undefined;
  return { group: second === undefined ? "" : first, version };
}

/** "configmaps" or "deployments.apps", as errors name resources. */
export function resourceName({ group, resource }: { group: string; resource: string }): string {
  return group === "" ? resource : `${resource}.${group}`;
}

/** 3 for v1, 2 for v1beta1, 1 for v1alpha1, 0 for other names. */
function parsedVersion(text: string): readonly [number, number, number] {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(text);
  if (match === null) return [0, 0, 0];
  const stage = match[2] === undefined ? 3 : match[2] === "beta" ? 2 : 1;
  return [stage, Number(match[1]), Number(match[3] ?? 0)];
}

/** From new to old: v2, v1, v1beta2, v1alpha1, others by name (apimachinery: util/version). */
export function compareVersions(a: string, b: string): number {
  const [one, other] = [parsedVersion(a), parsedVersion(b)];
  for (const [i, part] of one.entries()) {
    const difference = (other[i] ?? 0) - part;
    if (difference !== 0) return difference;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}
