/** The warning of a deprecated version (apiextensions-apiserver: customresource_handler.go). */
import type { Crd, CrdVersion } from "../definition/types.ts";

/** Undefined for a version that is not deprecated. */
export function deprecationWarning(version: CrdVersion, crd: Crd): string | undefined {
  if (version.deprecated !== true) return undefined;
  if (version.deprecationWarning !== undefined) return version.deprecationWarning;
  const { group = "", names, versions = [] } = crd.spec;
  const kind = names?.kind ?? "";
  const text = `${group}/${version.name} ${kind} is deprecated`;
  const newer = versions
    .filter(
      ({ name, served, deprecated }) =>
        served === true && deprecated !== true && compareKubeVersions(name, version.name) > 0,
    )
    .map(({ name }) => name)
    .sort((a, b) => compareKubeVersions(b, a));
  return newer.length === 0 ? text : `${text}; use ${group}/${newer[0]} ${kind}`;
}

const STAGES = ["alpha", "beta", ""];

function parse(version: string): readonly number[] | undefined {
  const parts = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
  if (parts === null) return undefined;
  return [STAGES.indexOf(parts[2] ?? ""), Number(parts[1]), Number(parts[3] ?? 0)];
}

/**
 * The order of versions: v2 > v1 > v1beta2 > v1alpha1 > others (apimachinery: util/version). Less
 * than 0 where `a` is the older one. Versions of another form are older, by their names.
 */
function compareKubeVersions(a: string, b: string): number {
  const one = parse(a);
  const other = parse(b);
  if (one === undefined || other === undefined) {
    if (one !== undefined) return 1;
    if (other !== undefined) return -1;
    return a < b ? 1 : a > b ? -1 : 0;
  }
  for (const [i, part] of one.entries()) if (part !== other[i]) return part - other[i];
  return 0;
}
