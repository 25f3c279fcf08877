/** Users and roles as npm's etcd3 has them. All calls reject with the errors of errors.ts. */
import type { Buffer } from "node:buffer";
import type { Permission } from "./messages.ts";
import type { CallOptions } from "./options.ts";
import { Range } from "./range.ts";
import type { AuthClient } from "./services.ts";

/** A permission for a range, or for one key. */
export type IPermissionRequest =
  | { readonly permission: keyof typeof Permission; readonly range: Range }
  | { readonly permission: keyof typeof Permission; readonly key: Buffer | string };

export interface IPermissionResult {
  readonly permission: keyof typeof Permission;
  readonly range: Range;
}

function rangeOf(request: IPermissionRequest): Range {
  return "key" in request ? new Range(request.key) : request.range;
}

function listOf<T>(given: T | readonly T[]): readonly T[] {
  return Array.isArray(given) ? given : [given as T];
}

function nameOf(one: string | { readonly name: string }): string {
  return typeof one === "string" ? one : one.name;
}

export class Role {
  readonly name: string;
  readonly #client: AuthClient;

  /** Made by client.role(). */
  constructor(client: AuthClient, name: string) {
    this.#client = client;
    this.name = name;
  }

  async create(options?: CallOptions): Promise<this> {
    await this.#client.roleAdd({ name: this.name }, options);
    return this;
  }

  async delete(options?: CallOptions): Promise<this> {
    await this.#client.roleDelete({ role: this.name }, options);
    return this;
  }

  async revoke(
    request: IPermissionRequest | readonly IPermissionRequest[],
    options?: CallOptions,
  ): Promise<this> {
    for (const { start, end } of listOf(request).map(rangeOf)) {
      const range = { role: this.name, key: start, range_end: end };
      await this.#client.roleRevokePermission(range, options);
    }
    return this;
  }

  async grant(
    request: IPermissionRequest | readonly IPermissionRequest[],
    options?: CallOptions,
  ): Promise<this> {
    for (const one of listOf(request)) {
      const { start, end } = rangeOf(one);
      const perm = { permType: one.permission, key: start, range_end: end };
      await this.#client.roleGrantPermission({ name: this.name, perm }, options);
    }
    return this;
  }

  async permissions(options?: CallOptions): Promise<IPermissionResult[]> {
    const { perm } = await this.#client.roleGet({ role: this.name }, options);
    return perm.map(({ permType, key, range_end }) => ({
      permission: permType,
      range: new Range(key, range_end),
    }));
  }

  async addUser(user: string | User, options?: CallOptions): Promise<this> {
    await this.#client.userGrantRole({ user: nameOf(user), role: this.name }, options);
    return this;
  }

  async removeUser(user: string | User, options?: CallOptions): Promise<this> {
    await this.#client.userRevokeRole({ name: nameOf(user), role: this.name }, options);
    return this;
  }
}

export class User {
  readonly name: string;
  readonly #client: AuthClient;

  /** Made by client.user(). */
  constructor(client: AuthClient, name: string) {
    this.#client = client;
    this.name = name;
  }

  async create(password: string, options?: CallOptions): Promise<this> {
    await this.#client.userAdd({ name: this.name, password }, options);
    return this;
  }

  async setPassword(password: string, options?: CallOptions): Promise<this> {
    await this.#client.userChangePassword({ name: this.name, password }, options);
    return this;
  }

  async delete(options?: CallOptions): Promise<this> {
    await this.#client.userDelete({ name: this.name }, options);
    return this;
  }

  async roles(options?: CallOptions): Promise<Role[]> {
    const { roles } = await this.#client.userGet({ name: this.name }, options);
    return roles.map((name) => new Role(this.#client, name));
  }

  async addRole(role: string | Role, options?: CallOptions): Promise<this> {
    await this.#client.userGrantRole({ user: this.name, role: nameOf(role) }, options);
    return this;
  }

  async removeRole(role: string | Role, options?: CallOptions): Promise<this> {
    await this.#client.userRevokeRole({ name: this.name, role: nameOf(role) }, options);
    return this;
  }
}
