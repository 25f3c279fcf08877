/**
 * Users, roles and permissions as plainly as they can be said: what etcd's Auth service promises,
 * by which entries of the log and calls of clients are judged. A state does not change: a request
 * returns another one. Nothing here is merged, cached or searched cleverly.
 */
import {
  type AuthRoleGrantPermissionRequest,
  authpb,
  defined,
  type ErrorName,
  type InternalRaftRequest,
  toBase64,
  toLatin1,
} from "@quorate/proto";
import { type AuthKind, type AuthMessage, decodeAuth } from "./auth-kinds.ts";

/** What may be done with a key. */
export type KeyAccess = "read" | "write";

/** A permission of a role. `end` as in requests: empty for one key, a zero byte for no end. */
export interface ModelPermission {
  readonly key: string;
  readonly end: string;
  readonly read: boolean;
  readonly write: boolean;
}

export interface ModelUser {
  /** The hash as it is kept, as base64; empty without a password. */
  readonly hash: string;
  readonly noPassword: boolean;
  /** In order. */
  readonly roles: readonly string[];
  /** The revision that made it; 0: it was not noted. */
  readonly createdAt: number;
}

/** The user of an entry or a call, and the auth revision by which it was recognised. */
export interface ModelIdentity {
  /** Empty: none. */
  readonly user: string;
  /** 0: none. */
  readonly authRevision: number;
  /** Those of a token, which stand in place of the user's; undefined: a user of the store. */
  readonly roles?: readonly string[] | undefined;
}

/** What an operation needs permission for. */
export type Need =
  | { readonly kind: "open" }
  | { readonly kind: "user" }
  | { readonly kind: "root" }
  | { readonly kind: "this-user"; readonly name: string }
  | { readonly kind: "this-role"; readonly name: string }
  | {
      readonly kind: "range";
      readonly access: KeyAccess;
      readonly key: string;
      readonly end: string;
    }
  /** Each of the keys, where there are any and the user has not the role root. */
  | { readonly kind: "lease"; readonly access: KeyAccess; readonly keys: readonly string[] };

const ROOT = "root";
const { READ, WRITE, READWRITE } = authpb.Permission_Type;

/** The users, roles and enforcement after one entry. */
export class AuthModel {
  readonly isEnabled: boolean;
  readonly revision: number;
  readonly users: ReadonlyMap<string, ModelUser>;
  readonly roles: ReadonlyMap<string, readonly ModelPermission[]>;
  /** Whether users' creations are noted. */
  readonly notesCreations: boolean;

  constructor(
    isEnabled = false,
    revision = 1,
    users: AuthModel["users"] = new Map(),
    roles: AuthModel["roles"] = new Map(),
    notesCreations = false,
  ) {
    this.isEnabled = isEnabled;
    this.revision = revision;
    this.users = users;
    this.roles = roles;
    this.notesCreations = notesCreations;
  }

  /** Whether a user has the role root. */
  isRoot(user: string): boolean {
    return this.users.get(user)?.roles.includes(ROOT) ?? false;
  }

  /** The roles of an identity; undefined for no user. */
  rolesOf({ user, roles }: ModelIdentity): readonly string[] | undefined {
    return user === "" ? undefined : (roles ?? this.users.get(user)?.roles);
  }

  /** Whether roles together permit every key of a range. */
  permits(roles: readonly string[], access: KeyAccess, key: string, end: string): boolean {
    const granted = roles
      .flatMap((role) => this.roles.get(role) ?? [])
      .filter((one) => one[access]);
    if (key === "") return false;
    const holds = ({ key: from, end: to }: ModelPermission, at: string) =>
      to === "" ? at === from : at >= from && (to === "\0" || at < to);
    // A range is covered if its first key is, and each key at which a permission ends within it.
    const ends = granted.map(({ key: from, end: to }) => (to === "" ? `${from}\0` : to));
    const isWithin = (at: string) => at > key && (end === "\0" || at < end);
    const points = [key, ...(end === "" ? [] : ends.filter((at) => at !== "\0" && isWithin(at)))];
    return points.every((at) => granted.some((one) => holds(one, at)));
  }

  /**
   * The first error that what is needed comes to; undefined: it is permitted. Errors and their
   * order are etcd's (server/auth/store.go: isOpPermitted, IsAdminPermitted).
   */
  verdict(identity: ModelIdentity, needs: readonly Need[]): ErrorName | undefined {
    if (!this.isEnabled) return undefined;
    for (const need of needs) {
      const refused = this.#verdict(identity, need);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  #verdict(identity: ModelIdentity, need: Need): ErrorName | undefined {
    const { user, roles } = identity;
    switch (need.kind) {
      case "open":
        return undefined;
      case "user":
        return this.#userVerdict(identity);
      case "root":
        return this.#rootVerdict(identity);
      case "this-user":
        return need.name === user &&
          roles === undefined &&
          this.#userVerdict(identity) === undefined
          ? undefined
          : this.#rootVerdict(identity);
      case "this-role":
        return this.rolesOf(identity)?.includes(need.name) === true &&
          this.#userVerdict(identity) === undefined
          ? undefined
          : this.#rootVerdict(identity);
      case "range":
        return this.#keyVerdict(identity, need.access, need.key, need.end);
      case "lease": {
        if (this.#rootVerdict(identity) === undefined) return undefined;
        for (const key of need.keys) {
          const refused = this.#keyVerdict(identity, need.access, key, "");
          if (refused !== undefined) return refused;
        }
        return undefined;
      }
    }
  }

  /** A user that is there, and that was there when the identity was recognised. */
  #userVerdict({ user, roles, authRevision }: ModelIdentity): ErrorName | undefined {
    if (user === "") return "UserEmpty";
    if (roles !== undefined || !this.notesCreations) return undefined;
    const known = this.users.get(user);
    if (known === undefined) return "UserNotFound";
    return known.createdAt > authRevision ? "InvalidAuthToken" : undefined;
  }

  #rootVerdict(identity: ModelIdentity): ErrorName | undefined {
    const { user, roles } = identity;
    const refused = this.#userVerdict(identity);
    if (refused !== undefined) return refused;
    if (roles !== undefined) return roles.includes(ROOT) ? undefined : "PermissionDenied";
    if (!this.users.has(user)) return "UserNotFound";
    return this.isRoot(user) ? undefined : "PermissionDenied";
  }

  #keyVerdict(
    identity: ModelIdentity,
    access: KeyAccess,
    key: string,
    end: string,
  ): ErrorName | undefined {
    const { authRevision } = identity;
    if (authRevision === 0) return "UserEmpty";
    if (authRevision < this.revision) return "AuthOldRevision";
    const roles = this.rolesOf(identity);
    if (roles === undefined) return "PermissionDenied";
    return roles.includes(ROOT) || this.permits(roles, access, key, end)
      ? undefined
      : "PermissionDenied";
  }

  /**
   * A request of the Auth service. Returns the error that it comes to, or the state after it; this
   * one for a request that changes nothing.
   */
  apply(kind: AuthKind, internal: InternalRaftRequest): AuthModel | ErrorName {
    const change = CHANGES[kind] as (state: AuthModel, request: never) => AuthModel | ErrorName;
    return change(this, decodeAuth(kind, defined(internal[kind], kind)) as never);
  }

  /** The state with users and roles replaced: one revision on. */
  with(changes: {
    readonly users?: AuthModel["users"];
    readonly roles?: AuthModel["roles"];
    readonly isEnabled?: boolean;
  }): AuthModel {
    const { users = this.users, roles = this.roles, isEnabled = this.isEnabled } = changes;
    return new AuthModel(isEnabled, this.revision + 1, users, roles, this.notesCreations);
  }

  /** Everything as text: equal for equal states. */
  get text(): string {
    const users = [...this.users].sort(([a], [b]) => (a < b ? -1 : 1));
    const roles = [...this.roles].sort(([a], [b]) => (a < b ? -1 : 1));
    return JSON.stringify([this.isEnabled, this.revision, users, roles, this.notesCreations]);
  }
}

function replaced<V>(map: ReadonlyMap<string, V>, key: string, value: V | undefined) {
  const next = new Map(map);
  if (value === undefined) next.delete(key);
  else next.set(key, value);
  return next;
}

function withUser(state: AuthModel, name: string, user: ModelUser | undefined): AuthModel {
  return state.with({ users: replaced(state.users, name, user) });
}

function withoutRole(user: ModelUser, role: string): ModelUser {
  return { ...user, roles: user.roles.filter((one) => one !== role) };
}

/** A permission of etcd's as the model has it. */
export function toPermission({ key, rangeEnd, permType }: authpb.Permission): ModelPermission {
  return {
    key: toLatin1(key),
    end: toLatin1(rangeEnd),
    read: permType === READ || permType === READWRITE,
    write: permType === WRITE || permType === READWRITE,
  };
}

function grant(
  state: AuthModel,
  { name, perm }: AuthRoleGrantPermissionRequest,
): AuthModel | ErrorName {
  if (perm === undefined) return "PermissionNotGiven";
  const granted = toPermission(perm);
  const { key, end } = granted;
  if (key === "" || (end !== "" && end !== "\0" && end <= key)) return "InvalidAuthMgmt";
  const before = state.roles.get(name);
  if (before === undefined) return "RoleNotFound";
  const isSame = (one: ModelPermission) => one.key === key && one.end === end;
  const after = before.some(isSame)
    ? before.map((one) => (isSame(one) ? granted : one))
    : [
        ...before.filter((one) => one.key <= key),
        granted,
        ...before.filter((one) => one.key > key),
      ];
  return state.with({ roles: replaced(state.roles, name, after) });
}

/** What each request does, or the error that it comes to. */
const CHANGES: {
  readonly [K in AuthKind]: (state: AuthModel, request: AuthMessage<K>) => AuthModel | ErrorName;
} = {
  authenticate(state, { name }) {
    if (!state.isEnabled) return "AuthNotEnabled";
    const user = state.users.get(name);
    return user === undefined || user.noPassword ? "AuthFailed" : state;
  },
  authStatus: (state) => state,
  authUserList: (state) => state,
  authRoleList: (state) => state,
  authUserGet: (state, { name }) => (state.users.has(name) ? state : "UserNotFound"),
  authRoleGet: (state, { role }) => (state.roles.has(role) ? state : "RoleNotFound"),
  authEnable(state) {
    if (state.isEnabled) return state;
    if (!state.users.has(ROOT)) return "RootUserNotExist";
    if (!state.isRoot(ROOT)) return "RootRoleNotExist";
    return new AuthModel(true, state.revision, state.users, state.roles, state.notesCreations);
  },
  authDisable: (state) => (state.isEnabled ? state.with({ isEnabled: false }) : state),
  authUserCreations: (state) =>
    state.notesCreations
      ? state
      : new AuthModel(state.isEnabled, state.revision, state.users, state.roles, true),
  authUserAdd(state, { name, hashedPassword, options }) {
    if (name === "") return "UserEmpty";
    if (state.users.has(name)) return "UserAlreadyExist";
    const noPassword = options?.noPassword ?? false;
    return withUser(state, name, {
      hash: noPassword ? "" : hashedPassword,
      noPassword,
      roles: [],
      createdAt: state.notesCreations ? state.revision + 1 : 0,
    });
  },
  authUserDelete(state, { name }) {
    if (state.isEnabled && name === ROOT) return "InvalidAuthMgmt";
    return state.users.has(name) ? withUser(state, name, undefined) : "UserNotFound";
  },
  authUserChangePassword(state, { name, hashedPassword }) {
    const user = state.users.get(name);
    if (user === undefined) return "UserNotFound";
    return withUser(state, name, { ...user, hash: user.noPassword ? "" : hashedPassword });
  },
  authUserGrantRole(state, { user: name, role }) {
    const user = state.users.get(name);
    if (user === undefined) return "UserNotFound";
    if (role !== ROOT && !state.roles.has(role)) return "RoleNotFound";
    if (user.roles.includes(role)) return state;
    return withUser(state, name, { ...user, roles: [...user.roles, role].sort() });
  },
  authUserRevokeRole(state, { name, role }) {
    if (state.isEnabled && name === ROOT && role === ROOT) return "InvalidAuthMgmt";
    const user = state.users.get(name);
    if (user === undefined) return "UserNotFound";
    return user.roles.includes(role)
      ? withUser(state, name, withoutRole(user, role))
      : "RoleNotGranted";
  },
  authRoleAdd(state, { name }) {
    if (name === "") return "RoleEmpty";
    if (state.roles.has(name)) return "RoleAlreadyExist";
    return state.with({ roles: replaced(state.roles, name, []) });
  },
  authRoleDelete(state, { role }) {
    if (state.isEnabled && role === ROOT) return "InvalidAuthMgmt";
    if (!state.roles.has(role)) return "RoleNotFound";
    const users = new Map([...state.users].map(([name, one]) => [name, withoutRole(one, role)]));
    return state.with({ roles: replaced(state.roles, role, undefined), users });
  },
  authRoleGrantPermission: grant,
  authRoleRevokePermission(state, { role, key, rangeEnd }) {
    const before = state.roles.get(role);
    if (before === undefined) return "RoleNotFound";
    const left = before.filter(
      (one) => one.key !== toLatin1(key) || one.end !== toLatin1(rangeEnd),
    );
    if (left.length === before.length) return "PermissionNotGranted";
    return state.with({ roles: replaced(state.roles, role, left) });
  },
};

/** A hash as the model keeps it. */
export function hashText(password: Uint8Array): string {
  return toBase64(password);
}
