/**
 * Whether the state demands users and passwords. etcd keeps that as one record of the bucket auth;
 * users and roles are beside it:
 *
 *     auth/authEnabled    one byte: 1 for on, 0 for off (etcd: server/storage/schema/auth.go)
 *
 * Users and roles are not enforced yet. A state that demands them would be open to everyone, so it
 * is refused wherever it comes in: from a file, at a member's start, and from another member. The
 * records themselves are kept.
 */
import { fromUtf8 } from "@quorate/proto";

/** The key of the record in the bucket auth. */
export const AUTH_ENABLED: Uint8Array = fromUtf8("authEnabled");

/** The flag that has a state served all the same, by its name for the server and for quorateutl. */
export const IGNORE_AUTH_FLAG = "unsafe-serve-without-auth";

/** A state whose users and roles would not be enforced. */
export class AuthEnabledError extends Error {
  readonly code = "AUTH_ENABLED";
  /** @param place the file, folder or sender that the state is from */
  constructor(place: string) {
    super(
      `${place}: authentication is enabled in it, and this release does not enforce users and roles: every client could read and write ` +
        `everything. To serve it openly all the same, give --${IGNORE_AUTH_FLAG}; or disable authentication in etcd ("etcdctl auth ` +
        'disable") and take it from there again',
    );
    this.name = "AuthEnabledError";
  }
}

/**
 * Reads the record's value. Anything but 0 counts as on: a value that etcd would not write must not
 * open the state.
 */
export function isAuthEnabled(value: Uint8Array | undefined): boolean {
  return value?.some((byte) => byte !== 0) ?? false;
}
