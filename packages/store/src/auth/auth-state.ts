/**
 * Users, roles and whether they are enforced: a part of the replicated state, in etcd's records
 * (etcd: server/storage/schema/auth*.go).
 *
 *     bucket auth       "authEnabled"  -> one byte: 1 on, 0 off
 *                       "authRevision" -> 8 bytes big-endian
 *                       "tokenRoles"   -> one byte 1, ours: an entry with roles of a token was
 *                                         applied, so every member knows such entries
 *                       "userCreations" -> one byte 1, ours: users' creations are noted
 *                       "created/NAME" -> 8 bytes big-endian, ours: the auth revision that made
 *                                         the user. etcd's record of a user has no place for it
 *     bucket authUsers  user's name    -> authpb.User
 *     bucket authRoles  role's name    -> authpb.Role
 *
 * The auth revision grows with every change of users and roles. A request names the one by which
 * its caller was recognised; an older one is refused when the request is applied. A store without
 * the record stands at revision 1, as etcd does when it starts.
 */
import { authpb, fromUtf8, readU64BE, toUtf8, WireError, writeU64BE } from "@quorate/proto";
import { type Backend, type BackendSnapshot, Bucket } from "../backend/backend.ts";
import { STORE_BOUNDS } from "../backend/bounds.ts";
import { StoreDamageError } from "../backend/errors.ts";
import { MAX_CACHED_INTERVALS } from "./limits.ts";
import { SortedNames } from "./names.ts";
import { PermissionSet } from "./permission-set.ts";

/** The user, and the role, that may do everything. */
export const ROOT = "root";

/** Keys of the bucket auth. */
const AUTH_ENABLED: Uint8Array = fromUtf8("authEnabled");
const AUTH_REVISION: Uint8Array = fromUtf8("authRevision");
const TOKEN_ROLES: Uint8Array = fromUtf8("tokenRoles");
const USER_CREATIONS: Uint8Array = fromUtf8("userCreations");
const CREATED = "created/";
const FIRST_REVISION = 1;

/** A user as it stands. */
export interface User {
  readonly name: string;
  /** bcrypt hash; empty for a user without a password. */
  readonly password: Uint8Array;
  /** In the order of their bytes. */
  readonly roles: readonly string[];
  /** Undefined only for users of old versions of etcd. */
  readonly options: { readonly noPassword: boolean } | undefined;
}

/** Notified of what concerns tokens and streams, right after it was applied. */
export interface AuthObserver {
  /**
   * A user was authenticated by the entry after `index`; `simpleToken` is the random part of the
   * token.
   */
  authenticated(user: string, simpleToken: string, index: number): void;
  /** The tokens of a user must not be accepted any more. */
  invalidated(user: string): void;
  /** Users, roles or enforcement have changed: what was permitted may not be so now. */
  changed(): void;
}

export class AuthState {
  observer: AuthObserver | undefined;
  readonly #backend: Backend;
  readonly #users = new Map<string, User>();
  readonly #userNames = new SortedNames();
  readonly #roles = new Map<string, readonly authpb.Permission[]>();
  readonly #roleNames = new SortedNames();
  /** What each role permits, made when the role is read or changed. */
  readonly #roleSets = new Map<string, PermissionSet>();
  #permissionCount = 0;
  #isEnabled = false;
  #hasTokenRoles = false;
  #notesCreations = false;
  /** The auth revisions that made users, where they were noted. */
  readonly #created = new Map<string, number>();
  #revision = FIRST_REVISION;
  /** Merged permissions by the list of roles that they are of, the oldest first. */
  readonly #merged = new Map<string, PermissionSet>();
  #mergedIntervals = 0;
  /** The same by user. */
  readonly #sets = new Map<User, PermissionSet>();

  /** StoreBounds.stepUsers. */
  readonly stepUsers: number;
  /** Whether requests are applied by etcd's rules where Quorate has others (Store.followsEtcd). */
  readonly followsEtcd: boolean;

  private constructor(backend: Backend, stepUsers: number, followsEtcd: boolean) {
    this.#backend = backend;
    this.stepUsers = stepUsers;
    this.followsEtcd = followsEtcd;
  }

  /**
   * Reads users and roles as of a snapshot.
   * @param path the store's directory, for error texts
   * @param stepUsers StoreBounds.stepUsers
   * @param followsEtcd Store.followsEtcd
   */
  static async open(
    backend: Backend,
    snapshot: BackendSnapshot,
    path: string,
    stepUsers: number = STORE_BOUNDS.stepUsers,
    followsEtcd = false,
  ): Promise<AuthState> {
    const state = new AuthState(backend, stepUsers, followsEtcd);
    state.#isEnabled = isOn(backend.get(Bucket.auth, AUTH_ENABLED));
    state.#hasTokenRoles = isOn(backend.get(Bucket.auth, TOKEN_ROLES));
    state.#notesCreations = isOn(backend.get(Bucket.auth, USER_CREATIONS));
    const revision = backend.get(Bucket.auth, AUTH_REVISION);
    if (revision !== undefined)
      state.#revision = Math.max(FIRST_REVISION, readRevision(path, AUTH_REVISION, revision));
    for await (const slice of snapshot.scan(Bucket.auth)) {
      for (const [key, value] of slice) {
        const name = toUtf8(key);
        if (!name.startsWith(CREATED)) continue;
        state.#created.set(name.slice(CREATED.length), readRevision(path, key, value));
      }
    }
    for await (const slice of snapshot.scan(Bucket.authUsers)) {
      for (const [key, value] of slice) state.#take(decodeUser(path, key, value));
    }
    for await (const slice of snapshot.scan(Bucket.authRoles)) {
      for (const [key, value] of slice) {
        state.#takeRole(toUtf8(key), decodeRole(path, key, value));
      }
    }
    return state;
  }

  /** Whether requests need a permission. */
  get isEnabled(): boolean {
    return this.#isEnabled;
  }

  /** The auth revision. */
  get revision(): number {
    return this.#revision;
  }

  /** Whether an entry with roles of a token was applied. */
  get hasTokenRoles(): boolean {
    return this.#hasTokenRoles;
  }

  /** Whether users' creations are noted, on every member. */
  get notesCreations(): boolean {
    return this.#notesCreations;
  }

  /**
   * The auth revision that made a user: who was recognised by an older one is another party, whose
   * user was deleted. 0 where it was not noted; undefined: there is no such user.
   */
  createdAt(name: string): number | undefined {
    return this.#users.has(name) ? (this.#created.get(name) ?? 0) : undefined;
  }

  get userCount(): number {
    return this.#users.size;
  }

  get roleCount(): number {
    return this.#roles.size;
  }

  /** Permissions of all roles. */
  get permissionCount(): number {
    return this.#permissionCount;
  }

  user(name: string): User | undefined {
    return this.#users.get(name);
  }

  /** The permissions of a role, in the order of their keys; undefined: there is no such role. */
  role(name: string): readonly authpb.Permission[] | undefined {
    return this.#roles.get(name);
  }

  /** All users' names, in the order of their bytes. */
  userNames(): string[] {
    return this.#userNames.list();
  }

  /** All roles' names, in the order of their bytes. */
  roleNames(): string[] {
    return this.#roleNames.list();
  }

  /** True if the user has the role root, whether there is a record of that role or not. */
  isRoot(name: string): boolean {
    return this.#users.get(name)?.roles.includes(ROOT) ?? false;
  }

  /**
   * What the roles of a user permit, merged. It is kept until users or roles change, so that a
   * check takes O(log n); users with the same roles share it.
   */
  permissionsOf(user: User): PermissionSet {
    const kept = this.#sets.get(user);
    if (kept !== undefined) return kept;
    const merged = this.permissionsOfRoles(user.roles);
    this.#sets.set(user, merged);
    return merged;
  }

  /** What roles permit, merged; roles that do not exist permit nothing. */
  permissionsOfRoles(roles: readonly string[]): PermissionSet {
    // Lengths go before the names: a name may hold any character.
    let id = "";
    for (const role of roles) if (this.#roles.has(role)) id += `${role.length}:${role}`;
    const kept = this.#merged.get(id);
    if (kept !== undefined) return kept;
    const sets = roles.flatMap((role) => this.#roleSets.get(role) ?? []);
    const merged = PermissionSet.together(sets);
    this.#keep(id, merged);
    return merged;
  }

  #keep(id: string, merged: PermissionSet): void {
    this.#merged.set(id, merged);
    this.#mergedIntervals += costOf(id, merged);
    if (this.#mergedIntervals <= MAX_CACHED_INTERVALS) return;
    for (const [oldest, set] of this.#merged) {
      if (this.#mergedIntervals <= MAX_CACHED_INTERVALS || set === merged) break;
      this.#merged.delete(oldest);
      this.#mergedIntervals -= costOf(oldest, set);
    }
    // It refers to what was dropped.
    this.#sets.clear();
  }

  // --- Changes, made by applied entries alone ---

  setEnabled(isEnabled: boolean): void {
    this.#isEnabled = isEnabled;
    this.#backend.put(Bucket.auth, AUTH_ENABLED, new Uint8Array([isEnabled ? 1 : 0]));
  }

  /** An entry with roles of a token was applied. */
  noteTokenRoles(): void {
    if (this.#hasTokenRoles) return;
    this.#hasTokenRoles = true;
    this.#backend.put(Bucket.auth, TOKEN_ROLES, new Uint8Array([1]));
  }

  /** Users that are made from now on have their creation noted. */
  noteCreations(): void {
    if (this.#notesCreations) return;
    this.#notesCreations = true;
    this.#backend.put(Bucket.auth, USER_CREATIONS, new Uint8Array([1]));
  }

  /** Adds a user, by a change that `commit` ends. */
  addUser(user: User): void {
    this.putUser(user);
    if (!this.#notesCreations) return;
    const revision = this.#revision + 1;
    this.#created.set(user.name, revision);
    this.#backend.put(Bucket.auth, fromUtf8(CREATED + user.name), revisionBytes(revision));
  }

  /** Adds a user or replaces one. */
  putUser(user: User): void {
    this.#take(user);
    this.#backend.put(Bucket.authUsers, fromUtf8(user.name), encodeUser(user));
  }

  /** Begins a change of many users: their records are staged, and taken at once at its end. */
  stage(): void {
    this.#backend.stage();
  }

  /** Stages the record of a user that is there; the user stays as it is until `commitStaged`. */
  stageUser(user: User): void {
    this.#backend.putStaged(Bucket.authUsers, fromUtf8(user.name), encodeUser(user));
  }

  /** Takes the users whose records were staged. */
  commitStaged(users: readonly User[]): void {
    this.#backend.commitStaged();
    this.#sets.clear();
    for (const user of users) this.#users.set(user.name, user);
  }

  deleteUser(name: string): void {
    if (!this.#users.delete(name)) return;
    this.#sets.clear();
    this.#userNames.delete(name);
    this.#backend.delete(Bucket.authUsers, fromUtf8(name));
    if (this.#created.delete(name)) this.#backend.delete(Bucket.auth, fromUtf8(CREATED + name));
  }

  /** Adds a role or replaces its permissions, which must be in the order of their keys. */
  putRole(name: string, permissions: readonly authpb.Permission[]): void {
    this.#takeRole(name, permissions);
    const key = fromUtf8(name);
    const record = authpb.Role.encode({ name: key, keyPermission: [...permissions] });
    this.#backend.put(Bucket.authRoles, key, record);
  }

  deleteRole(name: string): void {
    const permissions = this.#roles.get(name);
    if (permissions === undefined) return;
    this.#permissionCount -= permissions.length;
    this.#roles.delete(name);
    this.#roleSets.delete(name);
    this.#roleNames.delete(name);
    this.#backend.delete(Bucket.authRoles, fromUtf8(name));
    this.#forgetMerged();
  }

  /** Ends a change: the revision grows, and the observer is notified. */
  commit(): void {
    this.#revision++;
    this.#backend.put(Bucket.auth, AUTH_REVISION, revisionBytes(this.#revision));
    this.observer?.changed();
  }

  #take(user: User): void {
    this.#sets.clear();
    if (!this.#users.has(user.name)) this.#userNames.add(user.name);
    this.#users.set(user.name, user);
  }

  #takeRole(name: string, permissions: readonly authpb.Permission[]): void {
    const before = this.#roles.get(name);
    if (before === undefined) this.#roleNames.add(name);
    this.#permissionCount += permissions.length - (before?.length ?? 0);
    this.#roles.set(name, permissions);
    this.#roleSets.set(name, PermissionSet.of(permissions));
    this.#forgetMerged();
  }

  #forgetMerged(): void {
    this.#sets.clear();
    this.#merged.clear();
    this.#mergedIntervals = 0;
  }
}

/** What a kept set counts for, in intervals: its name may be longer than it. */
function costOf(id: string, set: PermissionSet): number {
  return set.size + 1 + (id.length >> 5);
}

/** Anything but 0 counts as on: a value that etcd would not write must not open the state. */
function isOn(value: Uint8Array | undefined): boolean {
  return value?.some((byte) => byte !== 0) ?? false;
}

function revisionBytes(revision: number): Uint8Array {
  const bytes = new Uint8Array(8);
  writeU64BE(bytes, revision);
  return bytes;
}

/** @throws StoreDamageError */
function readRevision(path: string, key: Uint8Array, value: Uint8Array): number {
  if (value.length !== 8) throw damage(path, "auth", key, "not 8 bytes");
  return readU64BE(value);
}

/** etcd's record of a user. */
export function encodeUser({ name, password, roles, options }: User): Uint8Array {
  return authpb.User.encode({
    name: fromUtf8(name),
    password,
    roles: [...roles],
    options: options === undefined ? undefined : { noPassword: options.noPassword },
  });
}

function damage(path: string, bucket: string, key: Uint8Array, problem: string): StoreDamageError {
  return new StoreDamageError(path, `bucket ${bucket}, key ${toUtf8(key)}`, problem);
}

function decodeUser(path: string, key: Uint8Array, value: Uint8Array): User {
  try {
    const { name, password, roles, options } = authpb.User.decode(value);
    if (toUtf8(name) !== toUtf8(key)) {
      throw damage(path, "authUsers", key, `the record is of the user ${toUtf8(name)}`);
    }
    return { name: toUtf8(key), password: password.slice(), roles, options };
  } catch (error) {
    if (error instanceof WireError) throw damage(path, "authUsers", key, error.message);
    throw error;
  }
}

function decodeRole(path: string, key: Uint8Array, value: Uint8Array): authpb.Permission[] {
  try {
    const { name, keyPermission } = authpb.Role.decode(value.slice());
    if (toUtf8(name) !== toUtf8(key)) {
      throw damage(path, "authRoles", key, `the record is of the role ${toUtf8(name)}`);
    }
    return keyPermission;
  } catch (error) {
    if (error instanceof WireError) throw damage(path, "authRoles", key, error.message);
    throw error;
  }
}
