/** The versions that the tools print. */
import manifest from "../../package.json" with { type: "json" };

/** This program's own. */
export const programVersion: string = manifest.version;

/** The etcd release whose API the tools use. */
export const apiVersion = "3.7";

/** Major and minor of a version such as "3.6.8" as one number that grows with it. */
export function release(version: string): number {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major * 1000 + minor;
}
