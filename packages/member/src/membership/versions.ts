/** Versions of members and of the cluster, "3.7.0": major and minor count, as in etcd. */

import { SERVER_VERSION } from "../config/version.ts";

/** Of a text that is no version, so much is shown. */
const MAX_SHOWN_CHARS = 40;

const SHAPE = /^v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:[-+].*)?$/;

/**
 * The version without its patch level and what follows it, "3.7.0"; undefined for a text that is
 * none.
 */
export function minorVersion(version: string): string | undefined {
  const match = SHAPE.exec(version);
  return match === null ? undefined : `${Number(match[1])}.${Number(match[2])}.0`;
}

/**
 * Below, at or above zero as `a` is older than, of the same minor version as, or newer than `b`.
 * Both are versions.
 */
export function compareVersions(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split(".").map(Number);
  const [majorB = 0, minorB = 0] = b.split(".").map(Number);
  return majorA - majorB || minorA - minorB;
}

/**
 * Why the cluster's version cannot be set to `version`; undefined if it can: no member speaks more
 * than it has itself.
 */
export function versionProblem(version: string): string | undefined {
  const minor = minorVersion(version);
  if (minor === undefined)
    return `a cluster version that is none: ${JSON.stringify(version.slice(0, MAX_SHOWN_CHARS))}`;
  if (compareVersions(minor, SERVER_VERSION) <= 0) return undefined;
  return `the cluster version ${minor} is above this member's, ${SERVER_VERSION}`;
}

/** The version that a cluster can be downgraded to: one minor version less. */
export function downgradeTargetOf(version: string): string {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return `${major}.${minor - 1}.0`;
}
