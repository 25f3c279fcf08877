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
  type MessageType,
  type MethodDescriptor,
} from "@quorate/proto";
import type { Caller } from "./caller.ts";

const { methods } = AuthService;

type Method<T> = MethodDescriptor & { readonly responseType: MessageType<T> };

export class Auth {
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Has the cluster ask for users from now on; there has to be a user root with the role root. */
  enable(): Promise<AuthEnableResponse> {
    return this.#write(methods.AuthEnable);
  }

  disable(): Promise<AuthDisableResponse> {
    return this.#write(methods.AuthDisable);
  }

  /** Whether the cluster asks for users. */
  status(): Promise<AuthStatusResponse> {
    return this.#read(methods.AuthStatus);
  }

  /** Adds a user; without a password it can only come with a certificate of its name. */
  async userAdd(name: string, password: string | undefined): Promise<AuthUserAddResponse> {
    check("userAdd", "name", name, TEXT);
    if (password !== undefined) check("userAdd", "password", password, TEXT);
    const options = { noPassword: password === undefined };
    return this.#write(methods.UserAdd, { name, password: password ?? "", options });
  }

  async userDelete(name: string): Promise<AuthUserDeleteResponse> {
    check("userDelete", "name", name, TEXT);
    return this.#write(methods.UserDelete, { name });
  }

  /** The roles of a user. */
  async userGet(name: string): Promise<AuthUserGetResponse> {
    check("userGet", "name", name, TEXT);
    return this.#read(methods.UserGet, { name });
  }

  userList(): Promise<AuthUserListResponse> {
    return this.#read(methods.UserList);
  }

  async userChangePassword(
    name: string,
    password: string,
  ): Promise<AuthUserChangePasswordResponse> {
    check("userChangePassword", "name", name, TEXT);
    check("userChangePassword", "password", password, TEXT);
    return this.#write(methods.UserChangePassword, { name, password });
  }

  async userGrantRole(user: string, role: string): Promise<AuthUserGrantRoleResponse> {
    check("userGrantRole", "user", user, TEXT);
    check("userGrantRole", "role", role, TEXT);
    return this.#write(methods.UserGrantRole, { user, role });
  }

  async userRevokeRole(name: string, role: string): Promise<AuthUserRevokeRoleResponse> {
    check("userRevokeRole", "name", name, TEXT);
    check("userRevokeRole", "role", role, TEXT);
    return this.#write(methods.UserRevokeRole, { name, role });
  }

  async roleAdd(name: string): Promise<AuthRoleAddResponse> {
    check("roleAdd", "name", name, TEXT);
    return this.#write(methods.RoleAdd, { name });
  }

  async roleDelete(role: string): Promise<AuthRoleDeleteResponse> {
    check("roleDelete", "role", role, TEXT);
    return this.#write(methods.RoleDelete, { role });
  }

  /** What a role may read and write. */
  async roleGet(role: string): Promise<AuthRoleGetResponse> {
    check("roleGet", "role", role, TEXT);
    return this.#read(methods.RoleGet, { role });
  }

  roleList(): Promise<AuthRoleListResponse> {
    return this.#read(methods.RoleList);
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
    return this.#write(methods.RoleGrantPermission, { name, perm });
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
    return this.#write(methods.RoleRevokePermission, { role, key, rangeEnd });
  }

  #read<T>(method: Method<T>, fields: object = {}): Promise<T> {
    return this.#caller.call(method, method.requestType.create(fields), true);
  }

  /** Not repeated after an error that leaves open whether it was done. */
  #write<T>(method: Method<T>, fields: object = {}): Promise<T> {
    return this.#caller.call(method, method.requestType.create(fields), false);
  }
}
