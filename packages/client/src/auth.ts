/** Calls about users, roles and whether the cluster asks for them: client.auth. */
import { BYTES, check, checkOptions, INTEGER, TEXT } from "@quorate/host";
import {
  AuthDisableRequest,
  type AuthDisableResponse,
  AuthEnableRequest,
  type AuthEnableResponse,
  AuthRoleAddRequest,
  type AuthRoleAddResponse,
  AuthRoleDeleteRequest,
  type AuthRoleDeleteResponse,
  AuthRoleGetRequest,
  type AuthRoleGetResponse,
  AuthRoleGrantPermissionRequest,
  type AuthRoleGrantPermissionResponse,
  AuthRoleListRequest,
  type AuthRoleListResponse,
  AuthRoleRevokePermissionRequest,
  type AuthRoleRevokePermissionResponse,
  AuthService,
  AuthStatusRequest,
  type AuthStatusResponse,
  AuthUserAddRequest,
  type AuthUserAddResponse,
  AuthUserChangePasswordRequest,
  type AuthUserChangePasswordResponse,
  AuthUserDeleteRequest,
  type AuthUserDeleteResponse,
  AuthUserGetRequest,
  type AuthUserGetResponse,
  AuthUserGrantRoleRequest,
  type AuthUserGrantRoleResponse,
  AuthUserListRequest,
  type AuthUserListResponse,
  AuthUserRevokeRoleRequest,
  type AuthUserRevokeRoleResponse,
  type authpb,
} from "@quorate/proto";
import type { Caller } from "./caller.ts";

const { methods } = AuthService;

export class Auth {
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Has the cluster ask for users from now on; there has to be a user root with the role root. */
  enable(): Promise<AuthEnableResponse> {
    return this.#caller.call(methods.AuthEnable, AuthEnableRequest.create(), false);
  }

  disable(): Promise<AuthDisableResponse> {
    return this.#caller.call(methods.AuthDisable, AuthDisableRequest.create(), false);
  }

  /** Whether the cluster asks for users. */
  status(): Promise<AuthStatusResponse> {
    return this.#caller.call(methods.AuthStatus, AuthStatusRequest.create(), true);
  }

  /** Adds a user; without a password it can only come with a certificate of its name. */
  async userAdd(name: string, password: string | undefined): Promise<AuthUserAddResponse> {
    check("userAdd", "name", name, TEXT);
    if (password !== undefined) check("userAdd", "password", password, TEXT);
    const request = AuthUserAddRequest.create({
      name,
      password: password ?? "",
      options: { noPassword: password === undefined },
    });
    return this.#caller.call(methods.UserAdd, request, false);
  }

  async userDelete(name: string): Promise<AuthUserDeleteResponse> {
    check("userDelete", "name", name, TEXT);
    return this.#caller.call(methods.UserDelete, AuthUserDeleteRequest.create({ name }), false);
  }

  /** The roles of a user. */
  async userGet(name: string): Promise<AuthUserGetResponse> {
    check("userGet", "name", name, TEXT);
    return this.#caller.call(methods.UserGet, AuthUserGetRequest.create({ name }), true);
  }

  userList(): Promise<AuthUserListResponse> {
    return this.#caller.call(methods.UserList, AuthUserListRequest.create(), true);
  }

  async userChangePassword(
    name: string,
    password: string,
  ): Promise<AuthUserChangePasswordResponse> {
    check("userChangePassword", "name", name, TEXT);
    check("userChangePassword", "password", password, TEXT);
    return this.#caller.call(
      methods.UserChangePassword,
      AuthUserChangePasswordRequest.create({ name, password }),
      false,
    );
  }

  async userGrantRole(user: string, role: string): Promise<AuthUserGrantRoleResponse> {
    check("userGrantRole", "user", user, TEXT);
    check("userGrantRole", "role", role, TEXT);
    return this.#caller.call(
      methods.UserGrantRole,
      AuthUserGrantRoleRequest.create({ user, role }),
      false,
    );
  }

  async userRevokeRole(name: string, role: string): Promise<AuthUserRevokeRoleResponse> {
    check("userRevokeRole", "name", name, TEXT);
    check("userRevokeRole", "role", role, TEXT);
    return this.#caller.call(
      methods.UserRevokeRole,
      AuthUserRevokeRoleRequest.create({ name, role }),
      false,
    );
  }

  async roleAdd(name: string): Promise<AuthRoleAddResponse> {
    check("roleAdd", "name", name, TEXT);
    return this.#caller.call(methods.RoleAdd, AuthRoleAddRequest.create({ name }), false);
  }

  async roleDelete(role: string): Promise<AuthRoleDeleteResponse> {
    check("roleDelete", "role", role, TEXT);
    return this.#caller.call(methods.RoleDelete, AuthRoleDeleteRequest.create({ role }), false);
  }

  /** What a role may read and write. */
  async roleGet(role: string): Promise<AuthRoleGetResponse> {
    check("roleGet", "role", role, TEXT);
    return this.#caller.call(methods.RoleGet, AuthRoleGetRequest.create({ role }), true);
  }

  roleList(): Promise<AuthRoleListResponse> {
    return this.#caller.call(methods.RoleList, AuthRoleListRequest.create(), true);
  }

  /**
   * Lets a role read or write a key, or a range of keys: a zero byte as its end means all keys from
   * there on.
   */
  async roleGrantPermission(
    name: string,
    perm: authpb.Permission,
  ): Promise<AuthRoleGrantPermissionResponse> {
    check("roleGrantPermission", "name", name, TEXT);
    checkOptions("roleGrantPermission", perm, { permType: INTEGER, key: BYTES, rangeEnd: BYTES });
    return this.#caller.call(
      methods.RoleGrantPermission,
      AuthRoleGrantPermissionRequest.create({ name, perm }),
      false,
    );
  }

  /** Takes back what was granted for exactly this key or range. */
  async roleRevokePermission(
    role: string,
    key: Uint8Array,
    rangeEnd: Uint8Array,
  ): Promise<AuthRoleRevokePermissionResponse> {
    check("roleRevokePermission", "role", role, TEXT);
    check("roleRevokePermission", "key", key, BYTES);
    check("roleRevokePermission", "rangeEnd", rangeEnd, BYTES);
    const request = AuthRoleRevokePermissionRequest.create({ role, key, rangeEnd });
    return this.#caller.call(methods.RoleRevokePermission, request, false);
  }
}
