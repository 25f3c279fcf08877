/**
 * Whether two members can work together, by the versions that they send each other. As in etcd,
 * only major and minor count.
 */

/** [major, minor] of a version such as "3.7.0-rc.1", or undefined if it is none. */
export function majorMinor(version: string): readonly [number, number] | undefined {
  const match = /^v?(\d{1,6})\.(\d{1,6})(?:[.+-].*)?$/.exec(version);
  return match ? [Number(match[1]), Number(match[2])] : undefined;
}

function isLower(a: readonly [number, number], b: readonly [number, number]): boolean {
  return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
}

/** A member's own version, and the lowest version of a cluster that it can be part of. */
export interface Versions {
  readonly server: string;
  readonly minCluster: string;
}

/** Why `local` does not work with `remote`, or undefined if it does. */
export function refuseVersions(local: Versions, remote: Versions): string | undefined {
  const [localServer, localMin, remoteServer, remoteMin] = [
    local.server,
    local.minCluster,
    remote.server,
    remote.minCluster,
  ].map(majorMinor);
  if (
    remoteServer === undefined ||
    remoteMin === undefined ||
    localServer === undefined ||
    localMin === undefined
  ) {
    return `versions cannot be read: remote=${remote.server}, ${remote.minCluster}, local=${local.server}, ${local.minCluster}`;
  }
  if (isLower(remoteServer, localMin))
    return `remote version is too low: remote=${remote.server}, local=${local.server}`;
  if (isLower(localServer, remoteMin))
    return `local version is too low: remote=${remote.server}, local=${local.server}`;
  return undefined;
}
