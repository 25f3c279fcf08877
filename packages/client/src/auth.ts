/** Calls about users, roles and whether the cluster asks for them: client.auth. */
import { BYTES, check, checkOptions, INTEGER, TEXT } from "@quorate/host";
import {
  type AuthDisableResponse,
  type AuthEnableResponse,
  type AuthRoleAddResponse,
  type AuthRoleDeleteResponse,
  type AuthRoleGetResponse,
  type AuthRoleGrantPermissionResponse,
  type AuthRoleListResponse,
  type AuthRoleRevokePermissionResponse,
  AuthService,
  type AuthStatusResponse,
  type AuthUserAddResponse,
  type AuthUserChangePasswordResponse,
  type AuthUserDeleteResponse,
  type AuthUserGetResponse,
  type AuthUserGrantRoleResponse,
  type AuthUserListResponse,
  type AuthUserRevokeRoleResponse,
  type authpb,
} from "@quorate/proto";
import type { CallOptions } from "./call-options.ts";
import type { Caller, UnaryMethod } from "./caller.ts";

const { methods } = AuthService;

/** Users, roles and whether the cluster asks for them: `client.auth`. */
export class Auth {
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Has the cluster ask for users from now on; there has to be a user root with the role root. */
  enable(options?: CallOptions): Promise<AuthEnableResponse> {
    return this.#write(methods.AuthEnable, {}, options);
  }

  disable(options?: CallOptions): Promise<AuthDisableResponse> {
    return this.#write(methods.AuthDisable, {}, options);
  }

  /** Whether the cluster asks for users. */
  status(options?: CallOptions): Promise<AuthStatusResponse> {
    return this.#read(methods.AuthStatus, {}, options);
  }

  /** Adds a user; without a password it can only come with a certificate of its name. */
  async userAdd(
    name: string,
    password: string | undefined,
    options?: CallOptions,
  ): Promise<AuthUserAddResponse> {
    check("userAdd", "name", name, TEXT);
    if (password !== undefined) check("userAdd", "password", password, TEXT);
    const fields = {
      name,
      password: password ?? "",
      options: { noPassword: password === undefined },
    };
    return this.#write(methods.UserAdd, fields, options);
  }

  async userDelete(name: string, options?: CallOptions): Promise<AuthUserDeleteResponse> {
    check("userDelete", "name", name, TEXT);
    return this.#write(methods.UserDelete, { name }, options);
  }

  /** The roles of a user. */
  async userGet(name: string, options?: CallOptions): Promise<AuthUserGetResponse> {
    check("userGet", "name", name, TEXT);
    return this.#read(methods.UserGet, { name }, options);
  }

  userList(options?: CallOptions): Promise<AuthUserListResponse> {
    return this.#read(methods.UserList, {}, options);
  }

  async userChangePassword(
    name: string,
    password: string,
    options?: CallOptions,
  ): Promise<AuthUserChangePasswordResponse> {
    check("userChangePassword", "name", name, TEXT);
    check("userChangePassword", "password", password, TEXT);
    return this.#write(methods.UserChangePassword, { name, password }, options);
  }

  async userGrantRole(
    user: string,
    role: string,
    options?: CallOptions,
  ): Promise<AuthUserGrantRoleResponse> {
    check("userGrantRole", "user", user, TEXT);
    check("userGrantRole", "role", role, TEXT);
    return this.#write(methods.UserGrantRole, { user, role }, options);
  }

  async userRevokeRole(
    name: string,
    role: string,
    options?: CallOptions,
  ): Promise<AuthUserRevokeRoleResponse> {
    check("userRevokeRole", "name", name, TEXT);
    check("userRevokeRole", "role", role, TEXT);
    return this.#write(methods.UserRevokeRole, { name, role }, options);
  }

  async roleAdd(name: string, options?: CallOptions): Promise<AuthRoleAddResponse> {
    check("roleAdd", "name", name, TEXT);
    return this.#write(methods.RoleAdd, { name }, options);
  }

  async roleDelete(role: string, options?: CallOptions): Promise<AuthRoleDeleteResponse> {
    check("roleDelete", "role", role, TEXT);
    return this.#write(methods.RoleDelete, { role }, options);
  }

  /** What a role may read and write. */
  async roleGet(role: string, options?: CallOptions): Promise<AuthRoleGetResponse> {
    check("roleGet", "role", role, TEXT);
    return this.#read(methods.RoleGet, { role }, options);
  }

  roleList(options?: CallOptions): Promise<AuthRoleListResponse> {
    return this.#read(methods.RoleList, {}, options);
  }

  /**
   * Lets a role read or write a key, or a range of keys: a zero byte as its end means all keys from
   * there on.
   */
  async roleGrantPermission(
    name: string,
    perm: authpb.Permission,
    options?: CallOptions,
  ): Promise<AuthRoleGrantPermissionResponse> {
    check("roleGrantPermission", "name", name, TEXT);
    checkOptions("roleGrantPermission", perm, { permType: INTEGER, key: BYTES, rangeEnd: BYTES });
    return this.#write(methods.RoleGrantPermission, { name, perm }, options);
  }

  /** Takes back what was granted for exactly this key or range. */
  async roleRevokePermission(
    role: string,
    key: Uint8Array,
    rangeEnd: Uint8Array,
    options?: CallOptions,
  ): Promise<AuthRoleRevokePermissionResponse> {
    check("roleRevokePermission", "role", role, TEXT);
    check("roleRevokePermission", "key", key, BYTES);
    check("roleRevokePermission", "rangeEnd", rangeEnd, BYTES);
    return this.#write(methods.RoleRevokePermission, { role, key, rangeEnd }, options);
  }

  #read<T>(method: UnaryMethod<T>, fields: object, options?: CallOptions): Promise<T> {
    return this.#caller.call(method, method.requestType.create(fields), true, options);
  }

  #write<T>(method: UnaryMethod<T>, fields: object, options?: CallOptions): Promise<T> {
    return this.#caller.call(method, method.requestType.create(fields), false, options);
  }
}
