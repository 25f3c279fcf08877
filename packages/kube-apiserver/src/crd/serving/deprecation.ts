/** The warning of a deprecated version (apiextensions-apiserver: customresource_handler.go). */
import type { Crd, CrdVersion } from "../definition/types.ts";
import { compareKubeVersions } from "./kube-versions.ts";

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
