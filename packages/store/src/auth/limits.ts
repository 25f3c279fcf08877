/**
 * Bounds of users and roles, which etcd leaves open. They are the same on every member: a request
 * beyond one is refused when it is applied. A state that comes from etcd with more is taken as it
 * is, and can only shrink.
 */
import { EtcdError } from "@quorate/proto";

/** Users of a cluster. */
export const MAX_USERS = 20_000;
/** Roles of a cluster. */
export const MAX_ROLES = 10_000;
/** Roles of one user. */
export const MAX_USER_ROLES = 1_000;
/** Permissions of one role. */
export const MAX_ROLE_PERMISSIONS = 10_000;
/** Permissions of all roles. Those of one user are merged in parts (mvcc/intervals.ts). */
export const MAX_PERMISSIONS = 20_000;
/** Bytes of the name of a user or a role. */
export const MAX_NAME_BYTES = 1_024;
/** Bytes of the key, and of the range end, of a permission. */
export const MAX_PERMISSION_KEY_BYTES = 4_096;
/** Roles that a token of an identity provider may list. */
export const MAX_TOKEN_ROLES = 64;
/** Characters in the name of such a role. */
export const MAX_TOKEN_ROLE_LENGTH = 256;
/** Intervals of merged permissions that are kept for later checks. */
export const MAX_CACHED_INTERVALS = 200_000;

/** The error of a request beyond a bound: RESOURCE_EXHAUSTED. @param what such as "users" */
export function tooMany(what: string, bound: number): EtcdError {
  return new EtcdError("TooManyRequests", `etcdserver: too many ${what}: at most ${bound}`);
}
