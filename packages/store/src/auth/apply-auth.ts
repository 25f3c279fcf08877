/**
 * The requests of the Auth service, applied (etcd: server/auth/store.go). Each changes the state
 * and raises the auth revision, or changes nothing. Whether the caller may is decided before.
 */
import {
  type AuthenticateResponse,
  type AuthRoleAddRequest,
  type AuthRoleDeleteRequest,
  type AuthRoleGetRequest,
  type AuthRoleGetResponse,
  type AuthRoleGrantPermissionRequest,
  type AuthRoleListResponse,
  type AuthRoleRevokePermissionRequest,
  type AuthStatusResponse,
  type AuthUserAddRequest,
  type AuthUserChangePasswordRequest,
  type AuthUserDeleteRequest,
  type AuthUserGetRequest,
  type AuthUserGetResponse,
  type AuthUserGrantRoleRequest,
  type AuthUserListResponse,
  type AuthUserRevokeRoleRequest,
  authpb,
  defined,
  EMPTY,
  equals,
  errorOf,
  type InternalAuthenticateRequest,
  type ResponseHeader,
  toLatin1,
} from "@quorate/proto";
import type { Steps } from "../backend/steps.ts";
import { InvalidRequestError } from "../entry/invalid-request.ts";
import { type AuthState, ROOT, type User } from "./auth-state.ts";
import { decodeBase64 } from "./base64.ts";
import {
  MAX_PERMISSIONS,
  MAX_ROLE_PERMISSIONS,
  MAX_ROLES,
  MAX_USER_ROLES,
  MAX_USERS,
  tooMany,
} from "./limits.ts";
import { compareNames } from "./names.ts";
import { isGrantable } from "./permission-set.ts";

/** A response that has a header alone. */
export interface HeaderResponse {
  header: ResponseHeader | undefined;
}

/** What every request returns: the header, which the caller has made. */
type Header = ResponseHeader;

/** @throws EtcdError RootUserNotExist, RootRoleNotExist */
export function authEnable(state: AuthState, header: Header): HeaderResponse {
  if (state.isEnabled) return { header };
  if (state.user(ROOT) === undefined) throw errorOf("RootUserNotExist");
  if (!state.isRoot(ROOT)) throw errorOf("RootRoleNotExist");
  state.setEnabled(true);
  state.observer?.changed();
  return { header };
}

export function authDisable(state: AuthState, header: Header): HeaderResponse {
  if (!state.isEnabled) return { header };
  state.setEnabled(false);
  state.commit();
  return { header };
}

export function authStatus(state: AuthState, header: Header): AuthStatusResponse {
  return { header, enabled: state.isEnabled, authRevision: state.revision };
}

/**
 * Notes a token that every member accepts from now on, members of etcd too. Its form is theirs: a
 * random text, a dot and the index of the entry before (etcd: its consistent index meanwhile).
 * @param index of the entry that is applied
 * @throws EtcdError AuthNotEnabled; AuthFailed for no such user, or one without a password
 */
export function authenticate(
  state: AuthState,
  header: Header,
  { name, simpleToken }: InternalAuthenticateRequest,
  index: number,
): AuthenticateResponse {
  if (!state.isEnabled) throw errorOf("AuthNotEnabled");
  const user = state.user(name);
  if (user === undefined || user.options?.noPassword === true) throw errorOf("AuthFailed");
  if (simpleToken === "") return { header, token: "" };
  state.observer?.authenticated(name, simpleToken, index - 1);
  return { header, token: `${simpleToken}.${index - 1}` };
}

/** @throws EtcdError UserEmpty, UserAlreadyExist, and the bound of users */
export function userAdd(
  state: AuthState,
  header: Header,
  request: AuthUserAddRequest,
): HeaderResponse {
  const { name } = request;
  if (name === "") throw errorOf("UserEmpty");
  if (state.user(name) !== undefined) throw errorOf("UserAlreadyExist");
  bound(state, "users", state.userCount, MAX_USERS);
  const options = { noPassword: request.options?.noPassword ?? false };
  const password = options.noPassword ? EMPTY : passwordOf(request);
  state.addUser({ name, password, roles: [], options });
  state.commit();
  return { header };
}

/** From now on each member notes when a user is made. */
export function authUserCreations(state: AuthState): undefined {
  state.noteCreations();
}

/** @throws EtcdError UserNotFound; InvalidAuthMgmt for the user root while auth is enabled */
export function userDelete(
  state: AuthState,
  header: Header,
  { name }: AuthUserDeleteRequest,
): HeaderResponse {
  if (state.isEnabled && name === ROOT) throw errorOf("InvalidAuthMgmt");
  userOf(state, name);
  state.deleteUser(name);
  state.observer?.invalidated(name);
  state.commit();
  return { header };
}

/** @throws EtcdError UserNotFound */
export function userChangePassword(
  state: AuthState,
  header: Header,
  request: AuthUserChangePasswordRequest,
): HeaderResponse {
  const user = userOf(state, request.name);
  const password = user.options?.noPassword === true ? EMPTY : passwordOf(request);
  state.putUser({ ...user, password });
  state.observer?.invalidated(user.name);
  state.commit();
  return { header };
}

/** @throws EtcdError UserNotFound, RoleNotFound, and the bound of a user's roles */
export function userGrantRole(
  state: AuthState,
  header: Header,
  request: AuthUserGrantRoleRequest,
): HeaderResponse {
  const user = userOf(state, request.user);
  const { role } = request;
  // The role root needs no record.
  if (role !== ROOT && state.role(role) === undefined) throw errorOf("RoleNotFound");
  if (user.roles.includes(role)) return { header };
  bound(state, "roles of a user", user.roles.length, MAX_USER_ROLES);
  state.putUser({ ...user, roles: [...user.roles, role].sort(compareNames) });
  state.commit();
  return { header };
}

/** @throws EtcdError UserNotFound, RoleNotGranted; InvalidAuthMgmt for root's role root */
export function userRevokeRole(
  state: AuthState,
  header: Header,
  { name, role }: AuthUserRevokeRoleRequest,
): HeaderResponse {
  if (state.isEnabled && name === ROOT && role === ROOT) throw errorOf("InvalidAuthMgmt");
  const user = userOf(state, name);
  if (!user.roles.includes(role)) throw errorOf("RoleNotGranted");
  state.putUser(withoutRole(user, role));
  state.commit();
  return { header };
}

/** @throws EtcdError UserNotFound */
export function userGet(
  state: AuthState,
  header: Header,
  { name }: AuthUserGetRequest,
): AuthUserGetResponse {
  return { header, roles: [...userOf(state, name).roles] };
}

export function userList(state: AuthState, header: Header): AuthUserListResponse {
  return { header, users: state.userNames() };
}

/** @throws EtcdError RoleEmpty, RoleAlreadyExist, and the bound of roles */
export function roleAdd(
  state: AuthState,
  header: Header,
  { name }: AuthRoleAddRequest,
): HeaderResponse {
  if (name === "") throw errorOf("RoleEmpty");
  if (state.role(name) !== undefined) throw errorOf("RoleAlreadyExist");
  bound(state, "roles", state.roleCount, MAX_ROLES);
  state.putRole(name, []);
  state.commit();
  return { header };
}

/**
 * Deletes a role and takes it from all users, at once after the last step.
 * @throws EtcdError RoleNotFound; InvalidAuthMgmt for the role root while auth is enabled
 */
export function* roleDelete(
  state: AuthState,
  header: Header,
  { role }: AuthRoleDeleteRequest,
): Steps<HeaderResponse> {
  if (state.isEnabled && role === ROOT) throw errorOf("InvalidAuthMgmt");
  if (state.role(role) === undefined) throw errorOf("RoleNotFound");
  const changed: User[] = [];
  let looked = 0;
  const names = state.userNames();
  state.stage();
  for (const name of names) {
    const before = defined(state.user(name), "the user");
    if (before.roles.includes(role)) {
      const user = withoutRole(before, role);
      state.stageUser(user);
      changed.push(user);
    }
    if (++looked % state.stepUsers === 0) yield;
  }
  state.commitStaged(changed);
  state.deleteRole(role);
  state.commit();
  return { header };
}

/** @throws EtcdError RoleNotFound */
export function roleGet(
  state: AuthState,
  header: Header,
  { role }: AuthRoleGetRequest,
): AuthRoleGetResponse {
  const permissions = permissionsOf(state, role);
  return { header, perm: role === ROOT ? [rootPermission()] : [...permissions] };
}

export function roleList(state: AuthState, header: Header): AuthRoleListResponse {
  return { header, roles: state.roleNames() };
}

/**
 * Grants a permission, or changes its type where the role has one for the same range. (etcd looks
 * at the first permission with that key alone, and adds a second one beside others, and so does
 * a store that follows it: see docs/reference/divergence.md.)
 * @throws EtcdError PermissionNotGiven, InvalidAuthMgmt, RoleNotFound, and the bounds of
 *   permissions
 */
export function roleGrantPermission(
  state: AuthState,
  header: Header,
  { name, perm }: AuthRoleGrantPermissionRequest,
): HeaderResponse {
  if (perm === undefined) throw errorOf("PermissionNotGiven");
  const { key, rangeEnd, permType } = perm;
  if (!isGrantable(key, rangeEnd)) throw errorOf("InvalidAuthMgmt");
  const before = permissionsOf(state, name);
  const at = state.followsEtcd
    ? placeInEtcd(before, key, rangeEnd)
    : before.findIndex((one) => isOf(one, key, rangeEnd));
  const granted = { permType, key: key.slice(), rangeEnd: rangeEnd.slice() };
  if (at >= 0) {
    state.putRole(name, before.with(at, granted));
  } else {
    bound(state, "permissions of a role", before.length, MAX_ROLE_PERMISSIONS);
    bound(state, "permissions", state.permissionCount, MAX_PERMISSIONS);
    const sortKey = toLatin1(key);
    const next = before.findIndex((one) => toLatin1(one.key) > sortKey);
    state.putRole(name, before.toSpliced(next < 0 ? before.length : next, 0, granted));
  }
  state.commit();
  return { header };
}

/** @throws EtcdError RoleNotFound, PermissionNotGranted */
export function roleRevokePermission(
  state: AuthState,
  header: Header,
  { role, key, rangeEnd }: AuthRoleRevokePermissionRequest,
): HeaderResponse {
  const before = permissionsOf(state, role);
  const left = before.filter((one) => !isOf(one, key, rangeEnd));
  if (left.length === before.length) throw errorOf("PermissionNotGranted");
  state.putRole(role, left);
  state.commit();
  return { header };
}

/** Refuses one more of what is bounded; etcd has no bounds. */
function bound({ followsEtcd }: AuthState, what: string, count: number, most: number): void {
  if (count >= most && !followsEtcd) throw tooMany(what, most);
}

/** The permission that etcd changes: the first one with that key, if the range is the same. */
function placeInEtcd(
  permissions: readonly authpb.Permission[],
  key: Uint8Array,
  rangeEnd: Uint8Array,
): number {
  const first = permissions.findIndex((one) => equals(one.key, key));
  const found = permissions[first];
  return found !== undefined && equals(found.rangeEnd, rangeEnd) ? first : -1;
}

function userOf(state: AuthState, name: string): User {
  const user = state.user(name);
  if (user === undefined) throw errorOf("UserNotFound");
  return user;
}

function permissionsOf(state: AuthState, role: string): readonly authpb.Permission[] {
  const permissions = state.role(role);
  if (permissions === undefined) throw errorOf("RoleNotFound");
  return permissions;
}

function withoutRole(user: User, role: string): User {
  return { ...user, roles: user.roles.filter((one) => one !== role) };
}

function isOf(permission: authpb.Permission, key: Uint8Array, rangeEnd: Uint8Array): boolean {
  return equals(permission.key, key) && equals(permission.rangeEnd, rangeEnd);
}

/** What the role root permits, as etcd shows it. */
function rootPermission(): authpb.Permission {
  const { READWRITE } = authpb.Permission_Type;
  return { permType: READWRITE, key: EMPTY, rangeEnd: new Uint8Array(1) };
}

/**
 * The hash of an entry. Plain passwords must not be in the log: hashing at apply would make the
 * members differ by their salts.
 */
function passwordOf(request: { readonly password: string; readonly hashedPassword: string }) {
  if (request.password !== "") throw new InvalidRequestError("a plain password in an entry");
  const hash = decodeBase64(request.hashedPassword);
  if (hash === undefined) throw new InvalidRequestError("a password hash that is not base64");
  return hash;
}
