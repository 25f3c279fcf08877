/**
 * Versions that a member reports. The API is etcd's, so the version that clients see is the etcd
 * version whose API this is.
 */

/**
 * The etcd version whose behaviour this server has; in Status, /version and etcd_server_version.
 */
export const SERVER_VERSION = "3.7.0";
/** Quorate's own version. */
export const QUORATE_VERSION = "0.1.0";
/** The oldest cluster version that a peer may speak. */
export const MIN_CLUSTER_VERSION = "3.0.0";

/** "3.7.1" as the cluster version it stands for, "3.7.0": patch releases do not count. */
export function clusterVersionOf(version: string): string {
  const [major, minor] = version.split(".");
  return `${major}.${minor}.0`;
}

/** "3.7.0" as logs and metrics show it, "3.7". */
export function majorMinor(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}
