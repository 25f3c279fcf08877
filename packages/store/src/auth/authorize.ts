/**
 * The verdict on one operation of one identity, the same as etcd's (etcd: server/auth/store.go,
 * isOpPermitted and IsAdminPermitted). A pure function of the replicated state: the same on every
 * member, and for the same entry always.
 */
import { EMPTY, type ErrorName } from "@quorate/proto";
import { runSteps, type Steps } from "../backend/steps.ts";
import { type AuthState, ROOT } from "./auth-state.ts";
import type { KeyAccess, PermissionSet } from "./permission-set.ts";

/** A user, and the auth revision by which it was recognised. */
export interface AuthIdentity {
  /** Empty: no user. */
  readonly username: string;
  /** 0: no user was recognised. */
  readonly authRevision: number;
  /**
   * The roles that its token lists. Undefined: those that the user has in the store. Where they
   * are given, a user of that name in the store has nothing to do with the identity.
   */
  readonly roles?: readonly string[] | undefined;
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
  | { readonly kind: "lease"; readonly access: KeyAccess; readonly keys: AttachedKeys };

/** The keys of a lease, which may be many. */
export interface AttachedKeys {
  readonly isEmpty: boolean;
  /** Whether permissions cover all of them, in steps. */
  readonly areCovered: (permissions: PermissionSet, access: KeyAccess) => Steps<boolean>;
}

/** What permission depends on: the part of AuthState that a verdict reads. */
export type Authorities = Pick<
  AuthState,
  | "isEnabled"
  | "revision"
  | "user"
  | "isRoot"
  | "permissionsOf"
  | "permissionsOfRoles"
  | "notesCreations"
  | "createdAt"
>;

/**
 * The verdict on an operation.
 * @returns the name of the error that the operation is refused with; undefined: it is permitted.
 *   UserEmpty without a user, AuthOldRevision where users or roles have changed since the user was
 *   recognised, UserNotFound for a user that does not exist where a user or the role root is
 *   needed, InvalidAuthToken for one that was recognised before the user of now was made,
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
      return userVerdict(state, identity);
    case "root":
      return rootVerdict(state, identity);
    case "user":
      return isUser(identity, operation.name) && userVerdict(state, identity) === undefined
        ? undefined
        : rootVerdict(state, identity);
    case "role":
      return rolesOf(state, identity)?.includes(operation.name) === true &&
        userVerdict(state, identity) === undefined
        ? undefined
        : rootVerdict(state, identity);
    case "keys":
      return keysVerdict(state, identity, operation.access, operation.key, operation.rangeEnd);
    case "lease":
      return runSteps(leaseVerdict(state, identity, operation));
  }
}

/** Whether an identity is a user of the store by that name. */
function isUser({ username, roles }: AuthIdentity, name: string): boolean {
  return username !== "" && username === name && roles === undefined;
}

function rolesOf(
  state: Authorities,
  { username, roles }: AuthIdentity,
): readonly string[] | undefined {
  // No user has roles, whatever else an entry says.
  if (username === "") return undefined;
  return roles ?? state.user(username)?.roles;
}

/**
 * Why an identity is not a user of now; undefined: it is one. Where creations are noted, its user
 * must still be there, and be the one of that time: another party may have the name now.
 */
export function userVerdict(
  state: Authorities,
  { username, authRevision, roles }: AuthIdentity,
): ErrorName | undefined {
  if (username === "") return "UserEmpty";
  if (roles !== undefined || !state.notesCreations) return undefined;
  const createdAt = state.createdAt(username);
  if (createdAt === undefined) return "UserNotFound";
  return authRevision < createdAt ? "InvalidAuthToken" : undefined;
}

function rootVerdict(state: Authorities, identity: AuthIdentity): ErrorName | undefined {
  const { username, roles } = identity;
  const refused = userVerdict(state, identity);
  if (refused !== undefined) return refused;
  if (roles !== undefined) return roles.includes(ROOT) ? undefined : "PermissionDenied";
  if (state.user(username) === undefined) return "UserNotFound";
  return state.isRoot(username) ? undefined : "PermissionDenied";
}

/** What an identity permits, by its roles; undefined for a user that does not exist. */
function permissions(
  state: Authorities,
  { username, roles }: AuthIdentity,
): PermissionSet | undefined {
  if (roles !== undefined && username !== "") return state.permissionsOfRoles(roles);
  const user = state.user(username);
  return user === undefined ? undefined : state.permissionsOf(user);
}

function keysVerdict(
  state: Authorities,
  identity: AuthIdentity,
  access: KeyAccess,
  key: Uint8Array,
  rangeEnd: Uint8Array,
): ErrorName | undefined {
  const { authRevision } = identity;
  if (authRevision === 0) return "UserEmpty";
  if (authRevision < state.revision) return "AuthOldRevision";
  if (rolesOf(state, identity)?.includes(ROOT) === true) return undefined;
  return permissions(state, identity)?.covers(access, key, rangeEnd) === true
    ? undefined
    : "PermissionDenied";
}

/** For a lease without keys nothing is needed (etcd: checkLeasePutsKeys). */
export function* leaseVerdict(
  state: Authorities,
  identity: AuthIdentity,
  { access, keys }: Operation & { readonly kind: "lease" },
): Steps<ErrorName | undefined> {
  if (!state.isEnabled || keys.isEmpty || rootVerdict(state, identity) === undefined)
    return undefined;
  if (identity.authRevision === 0) return "UserEmpty";
  if (identity.authRevision < state.revision) return "AuthOldRevision";
  const permitted = permissions(state, identity);
  if (permitted === undefined || !(yield* keys.areCovered(permitted, access)))
    return "PermissionDenied";
  // Users and roles may have changed between two steps.
  return identity.authRevision < state.revision ? "AuthOldRevision" : undefined;
}

/** A permission for one range. */
export function keysOperation(
  access: KeyAccess,
  { key, rangeEnd = EMPTY }: { readonly key: Uint8Array; readonly rangeEnd?: Uint8Array },
): Operation {
  return { kind: "keys", access, key, rangeEnd };
}
