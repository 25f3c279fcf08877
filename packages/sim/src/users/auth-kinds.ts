/** The requests of the Auth service as they are in the log: fields of InternalRaftRequest. */
import {
  AuthDisableRequest,
  AuthEnableRequest,
  AuthRoleAddRequest,
  AuthRoleDeleteRequest,
  AuthRoleGetRequest,
  AuthRoleGrantPermissionRequest,
  AuthRoleListRequest,
  AuthRoleRevokePermissionRequest,
  AuthStatusRequest,
  AuthUserAddRequest,
  AuthUserChangePasswordRequest,
  AuthUserDeleteRequest,
  AuthUserGetRequest,
  AuthUserGrantRoleRequest,
  AuthUserListRequest,
  AuthUserRevokeRoleRequest,
  InternalAuthenticateRequest,
  type InternalRaftRequest,
  UserCreationsRequest,
} from "@quorate/proto";

/** Their types, by field. */
export const AUTH_KINDS = {
  authenticate: InternalAuthenticateRequest,
  authStatus: AuthStatusRequest,
  authEnable: AuthEnableRequest,
  authDisable: AuthDisableRequest,
  authUserCreations: UserCreationsRequest,
  authUserAdd: AuthUserAddRequest,
  authUserDelete: AuthUserDeleteRequest,
  authUserGet: AuthUserGetRequest,
  authUserChangePassword: AuthUserChangePasswordRequest,
  authUserGrantRole: AuthUserGrantRoleRequest,
  authUserRevokeRole: AuthUserRevokeRoleRequest,
  authUserList: AuthUserListRequest,
  authRoleAdd: AuthRoleAddRequest,
  authRoleDelete: AuthRoleDeleteRequest,
  authRoleGet: AuthRoleGetRequest,
  authRoleGrantPermission: AuthRoleGrantPermissionRequest,
  authRoleRevokePermission: AuthRoleRevokePermissionRequest,
  authRoleList: AuthRoleListRequest,
} as const;

export type AuthKind = keyof typeof AUTH_KINDS;

const NAMES = Object.keys(AUTH_KINDS) as readonly AuthKind[];

/** The request of the Auth service in an entry; undefined where it has another. */
export function authKindOf(internal: InternalRaftRequest): AuthKind | undefined {
  return NAMES.find((kind) => internal[kind] !== undefined);
}

/** The message of a request. */
export function decodeAuth(kind: AuthKind, bytes: Uint8Array): unknown {
  return AUTH_KINDS[kind].decode(bytes);
}
