/**
 * The verdict on one operation of one identity, the same as etcd's (etcd: server/auth/store.go,
 * isOpPermitted and IsAdminPermitted). A pure function of the replicated state: the same on every
 * member, and for the same entry always.
 */
import { EMPTY, type ErrorName } from "@quorate/proto";
import type { AuthState } from "./auth-state.ts";
import type { KeyAccess } from "./permission-set.ts";

/** A user, and the auth revision by which it was recognised. */
export interface AuthIdentity {
  /** Empty: no user. */
  readonly username: string;
  /** 0: no user was recognised. */
  readonly authRevision: number;
}

/** The identity of a caller that has brought no evidence. */
export const ANONYMOUS: AuthIdentity = { username: "", authRevision: 0 };

/** What an operation needs. */
export type Operation =
  /** Nothing. */
  | { readonly kind: "open" }
  /** A user, whatever its roles. */
  | { readonly kind: "authenticated" }
  /** The role root. */
  | { readonly kind: "root" }
  /** The role root, or to be that user. */
  | { readonly kind: "user"; readonly name: string }
  /** The role root, or to have that role. */
  | { readonly kind: "role"; readonly name: string }
  /** A permission for every key of a range; `rangeEnd` as in requests. */
  | {
      readonly kind: "keys";
      readonly access: KeyAccess;
      readonly key: Uint8Array;
      readonly rangeEnd: Uint8Array;
    }
  /** A permission for every key that is attached to a lease. */
  | { readonly kind: "lease"; readonly access: KeyAccess; readonly keys: Iterable<string> };

/** What permission depends on: the part of AuthState that a verdict reads. */
export type Authorities = Pick<
  AuthState,
  "isEnabled" | "revision" | "user" | "isRoot" | "permissionsOf"
>;

/**
 * The verdict on an operation.
 * @returns the name of the error that the operation is refused with; undefined: it is permitted.
 *   UserEmpty without a user, AuthOldRevision where users or roles have changed since the user was
 *   recognised, UserNotFound for a user that does not exist where the role root is needed,
 *   PermissionDenied
 */
export function authorize(
  state: Authorities,
  identity: AuthIdentity,
  operation: Operation,
): ErrorName | undefined {
  if (!state.isEnabled) return undefined;
  switch (operation.kind) {
    case "open":
      return undefined;
    case "authenticated":
      return identity.username === "" ? "UserEmpty" : undefined;
    case "root":
      return rootVerdict(state, identity);
    case "user":
      return identity.username !== "" && operation.name === identity.username
        ? undefined
        : rootVerdict(state, identity);
    case "role":
      return state.user(identity.username)?.roles.includes(operation.name) === true
        ? undefined
        : rootVerdict(state, identity);
    case "keys":
      return keysVerdict(state, identity, operation.access, operation.key, operation.rangeEnd);
    case "lease":
      return leaseVerdict(state, identity, operation.access, operation.keys);
  }
}

function rootVerdict(state: Authorities, { username }: AuthIdentity): ErrorName | undefined {
  if (username === "") return "UserEmpty";
  if (state.user(username) === undefined) return "UserNotFound";
  return state.isRoot(username) ? undefined : "PermissionDenied";
}

function keysVerdict(
  state: Authorities,
  { username, authRevision }: AuthIdentity,
  access: KeyAccess,
  key: Uint8Array,
  rangeEnd: Uint8Array,
): ErrorName | undefined {
  if (authRevision === 0) return "UserEmpty";
  if (authRevision < state.revision) return "AuthOldRevision";
  const user = state.user(username);
  if (user === undefined) return "PermissionDenied";
  if (state.isRoot(username)) return undefined;
  return state.permissionsOf(user).covers(access, key, rangeEnd) ? undefined : "PermissionDenied";
}

/** For a lease without keys nothing is needed (etcd: checkLeasePutsKeys). */
function leaseVerdict(
  state: Authorities,
  identity: AuthIdentity,
  access: KeyAccess,
  keys: Iterable<string>,
): ErrorName | undefined {
  if (rootVerdict(state, identity) === undefined) return undefined;
  const { username, authRevision } = identity;
  const user = state.user(username);
  for (const key of keys) {
    if (authRevision === 0) return "UserEmpty";
    if (authRevision < state.revision) return "AuthOldRevision";
    if (user === undefined) return "PermissionDenied";
    if (!state.permissionsOf(user).coversKey(access, key)) return "PermissionDenied";
  }
  return undefined;
}

/** A permission for one range. */
export function keysOperation(
  access: KeyAccess,
  { key, rangeEnd = EMPTY }: { readonly key: Uint8Array; readonly rangeEnd?: Uint8Array },
): Operation {
  return { kind: "keys", access, key, rangeEnd };
}
