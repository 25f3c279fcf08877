/** The version that clients see (apimachinery: pkg/version). */
import { QUORATE_VERSION } from "@quorate/member";

/** The Kubernetes release whose API is served. */
export const KUBERNETES_VERSION = "1.36.3";

/** The document of /version. */
export function versionDocument(): Readonly<Record<string, unknown>> {
  const [major, minor] = KUBERNETES_VERSION.split(".");
  return {
    major,
    minor,
    emulationMajor: major,
    emulationMinor: minor,
    minCompatibilityMajor: major,
    minCompatibilityMinor: String(Number(minor) - 1),
    gitVersion: `v${KUBERNETES_VERSION}+quorate.${QUORATE_VERSION}`,
    gitCommit: "",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: "",
    compiler: "node",
    platform: `${process.platform}/${process.arch}`,
  };
}
