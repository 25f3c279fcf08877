/**
 * The administrator: changes users, roles and permissions while clients work. The first requests
 * make the users and roles and enable auth; random ones follow, some of them by other callers.
 */
import {
  AuthDisableRequest,
  AuthEnableRequest,
  AuthRoleAddRequest,
  AuthRoleDeleteRequest,
  AuthRoleGrantPermissionRequest,
  AuthRoleRevokePermissionRequest,
  AuthService,
  AuthUserAddRequest,
  AuthUserChangePasswordRequest,
  AuthUserDeleteRequest,
  AuthUserGrantRoleRequest,
  AuthUserRevokeRoleRequest,
  type authpb,
  fromLatin1,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "../base/actor.ts";
import type { Node } from "../node.ts";
import type { AuthBook } from "./auth-book.ts";
import type { Identity } from "./identity.ts";

const { methods } = AuthService;
const TIMEOUT_MS = 3000;

/** Users that come and go. */
export const USERS = ["ann", "bob", "cid"] as const;
export const ROLES = ["r0", "r1", "r2", "r3"] as const;

/** A request of the Auth service. */
interface Change {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly words: string;
  /** One of the keys for which a permission ends. */
  readonly key?: string;
}

export interface AdministratorOptions {
  readonly keys: number;
  readonly usersEveryMs: number;
}

export interface AdministratorDeps
  extends Pick<ActorDeps, "nodes" | "scheduler" | "story" | "random"> {
  readonly book: AuthBook;
  /** Passwords that users were given last, or are about to be. */
  readonly passwords: Map<string, string>;
  /** Called with the member that is asked for a change, for what is to come at the same time. */
  beside(node: Node, key: string): void;
  /** Called when a user's password is about to change, with the present one. */
  besidePassword(user: string, password: string): void;
  /** A caller of random identity. */
  anyone(): Identity;
  readonly root: Identity;
  ask(
    identity: Identity,
    node: Node,
    path: string,
    bytes: Uint8Array,
    timeoutMs: number,
  ): Promise<{ readonly error?: string }>;
}

export class Administrator extends Actor<AdministratorDeps, AdministratorOptions> {
  #passwords = 0;
  readonly counts = { changes: 0 };

  async work(): Promise<void> {
    for (const change of this.#beginning()) {
      while (!this.isStopped && !(await this.#make(this.deps.root, change)))
        await this.deps.scheduler.delay(this.random.unit() * 100);
    }
    while (!this.isStopped) {
      await this.deps.scheduler.delay(2 * this.random.unit() * this.options.usersEveryMs);
      if (this.isStopped) return;
      const isOther = this.random.below(6) === 0;
      await this.#make(isOther ? this.deps.anyone() : this.deps.root, this.#draw());
    }
  }

  /** Enforcement is on at the end, so that all that depends on it is looked at. */
  async settle(): Promise<void> {
    this.stop();
    for (const change of [this.#userAdd("root"), this.#grantRole("root", "root"), this.#enable()])
      while (!(await this.#make(this.deps.root, change))) await this.deps.scheduler.delay(100);
  }

  #beginning(): Change[] {
    return [
      this.#userAdd("root"),
      this.#grantRole("root", "root"),
      ...USERS.slice(0, 2).map((user) => this.#userAdd(user)),
      ...ROLES.slice(0, 3).flatMap((role) => [this.#roleAdd(role), this.#grant(role)]),
      ...USERS.slice(0, 2).map((user) => this.#grantRole(user, this.#one(ROLES.slice(0, 3)))),
      this.#enable(),
    ];
  }

  /** Whether it is done: the request succeeded, or what it asks for is there. */
  async #make(identity: Identity, { path, bytes, words, key }: Change): Promise<boolean> {
    const { nodes, story } = this.deps;
    const node = nodes[this.random.below(nodes.length)];
    story.record("admin", `asks ${node.name} to ${words}`);
    const answer = this.deps.ask(identity, node, path, bytes, TIMEOUT_MS);
    if (this.random.below(2) === 0) this.deps.beside(node, key ?? this.#key());
    const { error } = await answer;
    story.record("admin", `${words}: ${error ?? "done"}`);
    if (error === undefined) this.counts.changes++;
    return error === undefined || /already exists/.test(error);
  }

  #key(): string {
    return `k${String.fromCharCode(97 + this.random.below(this.options.keys))}`;
  }

  #one<T>(choices: readonly T[]): T {
    return choices[this.random.below(choices.length)];
  }

  #draw(): Change {
    const { book } = this.deps;
    const user = this.#one(USERS);
    const role = this.#one(ROLES);
    switch (this.random.below(27)) {
      case 0:
      case 1:
        return this.#userAdd(user);
      case 2:
        return this.#userDelete(this.random.below(6) === 0 ? "root" : user);
      case 3:
        return this.#changePassword(user);
      case 4:
      case 5:
        return this.#roleAdd(role);
      case 6:
        return this.#roleDelete(role);
      case 7:
      case 8:
      case 9:
      case 10:
        return this.#grant(role);
      case 11:
      case 12:
        return this.#revoke(role);
      case 13:
      case 14:
      case 15:
        return this.#grantRole(user, role);
      case 16:
      case 17:
        return this.#revokeRole(user);
      case 18:
        return this.#grantRole("root", "root");
      case 19:
        return this.#userAdd("root");
      case 20:
        return this.#toggle();
      case 21:
      case 22:
        return this.#changePassword(user);
      case 23:
        return this.#userDelete(user);
      case 24:
        return this.#userAdd(user);
      default:
        return book.last.isEnabled ? this.#grantRole(user, role) : this.#enable();
    }
  }

  #toggle(): Change {
    if (!this.deps.book.last.isEnabled) return this.#enable();
    const { path } = methods.AuthDisable;
    return { path, bytes: AuthDisableRequest.encode({}), words: "disable auth" };
  }

  #enable(): Change {
    const { path } = methods.AuthEnable;
    return { path, bytes: AuthEnableRequest.encode({}), words: "enable auth" };
  }

  #password(user: string): string {
    const password = `${user}${this.#passwords++}`;
    this.deps.passwords.set(user, password);
    return password;
  }

  #userAdd(name: string): Change {
    const noPassword = this.random.below(8) === 0;
    // A request for a user that is there must not spoil the password that is known.
    const isNew = !this.deps.book.last.users.has(name);
    const password = isNew && !noPassword ? this.#password(name) : "unused";
    const bytes = AuthUserAddRequest.encode({
      name,
      password: noPassword ? "" : password,
      hashedPassword: "",
      options: { noPassword },
    });
    return { path: methods.UserAdd.path, bytes, words: `add the user ${name}` };
  }

  #userDelete(name: string): Change {
    const bytes = AuthUserDeleteRequest.encode({ name });
    return { path: methods.UserDelete.path, bytes, words: `delete the user ${name}` };
  }

  #changePassword(name: string): Change {
    const before = this.deps.passwords.get(name);
    if (before !== undefined) this.deps.besidePassword(name, before);
    const password = this.#password(name);
    const bytes = AuthUserChangePasswordRequest.encode({ name, password, hashedPassword: "" });
    return { path: methods.UserChangePassword.path, bytes, words: `change ${name}'s password` };
  }

  #roleAdd(name: string): Change {
    const bytes = AuthRoleAddRequest.encode({ name });
    return { path: methods.RoleAdd.path, bytes, words: `add the role ${name}` };
  }

  #roleDelete(role: string): Change {
    const bytes = AuthRoleDeleteRequest.encode({ role });
    return { path: methods.RoleDelete.path, bytes, words: `delete the role ${role}` };
  }

  /** A key, some keys, those with a prefix, all from one on; to read, to write, or both. */
  #grant(name: string): Change {
    const letter = (i: number) => String.fromCharCode(97 + i);
    const first = this.random.below(this.options.keys);
    const key = `k${letter(first)}`;
    const ends = ["", "", `${key}~`, `k${letter(first + 1 + this.random.below(3))}`, "l", "\0"];
    const end = this.#one(ends);
    const permType = this.#one([0, 1, 1, 2]) as authpb.Permission_Type;
    const perm = { key: fromLatin1(key), rangeEnd: fromLatin1(end), permType };
    const bytes = AuthRoleGrantPermissionRequest.encode({ name, perm });
    const words = `grant ${name} ${["read", "write", "both"][permType]} ${JSON.stringify([key, end])}`;
    return { path: methods.RoleGrantPermission.path, bytes, words };
  }

  #revoke(role: string): Change {
    const granted = this.deps.book.last.roles.get(role) ?? [];
    const { key, end } = granted.length === 0 ? { key: "ka", end: "" } : this.#one(granted);
    const [keyBytes, rangeEnd] = [fromLatin1(key), fromLatin1(end)];
    const bytes = AuthRoleRevokePermissionRequest.encode({ role, key: keyBytes, rangeEnd });
    const words = `revoke of ${role} ${JSON.stringify([key, end])}`;
    return { path: methods.RoleRevokePermission.path, bytes, words, key };
  }

  #grantRole(user: string, role: string): Change {
    const bytes = AuthUserGrantRoleRequest.encode({ user, role });
    return { path: methods.UserGrantRole.path, bytes, words: `give ${user} the role ${role}` };
  }

  #revokeRole(name: string): Change {
    const roles = this.deps.book.last.users.get(name)?.roles ?? [];
    const role = roles.length === 0 ? ROLES[0] : this.#one(roles);
    const bytes = AuthUserRevokeRoleRequest.encode({ name, role });
    const key = this.deps.book.last.roles.get(role)?.[0]?.key;
    const words = `take of ${name} the role ${role}`;
    return { path: methods.UserRevokeRole.path, bytes, words, ...(key !== undefined && { key }) };
  }
}
