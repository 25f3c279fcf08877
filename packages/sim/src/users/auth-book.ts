/**
 * Users and roles by the log: the model's state after each entry, by which verdicts of members and
 * responses to clients are judged.
 *
 *   AUTH-1 verdicts      an entry of a caller is refused, or not, exactly as the model refuses it
 *                        by its header and the state before it (reported as SIM-5)
 *   AUTH-2 equal state   the users, roles, revision and enforcement of a store are the model's at
 *                        its index: after each request of the Auth service, after a start, and
 *                        after a snapshot
 *   AUTH-3 never back    the auth revision of the log does not fall, and rises with each change
 */
import {
  AuthUserChangePasswordRequest,
  AuthUserDeleteRequest,
  defined,
  type ErrorName,
  InternalRaftRequest,
  TokenRolesRequest,
} from "@quorate/proto";
import type { Store } from "@quorate/store";
import { violate } from "../base/violation.ts";
import { type AuthKind, authKindOf } from "./auth-kinds.ts";
import {
  AuthModel,
  hashText,
  type ModelIdentity,
  type ModelUser,
  toPermission,
} from "./auth-model.ts";
import { entryNeeds, type KeysOf } from "./needs.ts";

interface Change {
  readonly index: number;
  readonly state: AuthModel;
}

export class AuthBook {
  /** In the order of the log; the first is the beginning. */
  readonly #changes: Change[] = [{ index: 0, state: new AuthModel() }];
  /** Entries that ended all tokens of a user, by user. */
  readonly #invalidated = new Map<string, number[]>();
  /** Entries that ended all tokens. */
  readonly #disabled: number[] = [];
  /** Requests of the Auth service by index, and whether they succeeded. */
  readonly #requests = new Map<number, { readonly kind: AuthKind; isDone: boolean }>();
  /** Where the store that a member has was opened, or taken over, by member. */
  readonly #opened = new Map<string, number>();
  readonly counts = { changes: 0, refusedEntries: 0, compared: 0 };

  /** A cluster begins with this state. */
  begin(state: AuthModel): void {
    this.#changes.splice(0, this.#changes.length, { index: 0, state });
  }

  /** The state after the last entry. */
  get last(): AuthModel {
    return this.#changes[this.#changes.length - 1].state;
  }

  /** Whether anything but the beginning is known of users and roles. */
  get isUsed(): boolean {
    return this.#changes.length > 1 || this.last.revision > 1;
  }

  #placeOf(index: number): number {
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#changes[middle].index <= index) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** The state after the entry `index`. */
  at(index: number): AuthModel {
    return this.#changes[this.#placeOf(index)].state;
  }

  /** The states after the entries from `first` to `last`, in order, each once. */
  between(first: number, last: number): AuthModel[] {
    return this.#changes
      .slice(this.#placeOf(first), this.#placeOf(Math.max(first, last)) + 1)
      .map(({ state }) => state);
  }

  /** The indexes in this interval at which the state became another, and `first`. */
  changedBetween(first: number, last: number): number[] {
    const found = this.#changes.slice(this.#placeOf(first) + 1, this.#placeOf(last) + 1);
    return [first, ...found.map(({ index }) => index)];
  }

  /** The first entry after `index` that ended a user's tokens; Infinity: none has. */
  endOfTokens(user: string, index: number): number {
    const after = (list: readonly number[]) => list.find((one) => one > index);
    return Math.min(
      after(this.#invalidated.get(user) ?? []) ?? Number.POSITIVE_INFINITY,
      after(this.#disabled) ?? Number.POSITIVE_INFINITY,
    );
  }

  /**
   * The error that an entry must come to for its caller's sake; undefined: it is permitted.
   * @param keysOf leases and their keys before the entry
   */
  refusal(
    internal: InternalRaftRequest,
    identity: ModelIdentity,
    keysOf: KeysOf,
  ): ErrorName | undefined {
    const state = this.last;
    if (!state.isEnabled) return undefined;
    const refused = state.verdict(identity, entryNeeds(internal, keysOf));
    if (refused !== undefined) this.counts.refusedEntries++;
    return refused;
  }

  /**
   * An entry that is permitted is applied for the first time. Returns the error that a request of
   * the Auth service must come to; undefined for success and for other requests.
   */
  applied(internal: InternalRaftRequest, index: number): ErrorName | undefined {
    const kind = authKindOf(internal);
    if (kind === undefined) return undefined;
    const before = this.last;
    const after = before.apply(kind, internal);
    this.#requests.set(index, { kind, isDone: after instanceof AuthModel });
    if (!(after instanceof AuthModel)) return after;
    if (after === before) return undefined;
    if (after.revision < before.revision)
      violate("AUTH-3", `the auth revision falls to ${after.revision} at ${index}`);
    this.#changes.push({ index, state: after });
    this.counts.changes++;
    if (before.isEnabled && !after.isEnabled) this.#disabled.push(index);
    if (kind === "authUserDelete")
      this.#invalidate(
        AuthUserDeleteRequest.decode(defined(internal.authUserDelete, "the request")).name,
        index,
      );
    else if (kind === "authUserChangePassword") {
      const { name } = AuthUserChangePasswordRequest.decode(
        defined(internal.authUserChangePassword, "the request"),
      );
      this.#invalidate(name, index);
    }
    return undefined;
  }

  #invalidate(user: string, index: number): void {
    const list = this.#invalidated.get(user);
    if (list === undefined) this.#invalidated.set(user, [index]);
    else list.push(index);
  }

  /** Whether a request of a kind succeeded after `first`, up to `last`. */
  hasSuccess(kind: AuthKind, first: number, last: number): boolean {
    for (const [index, request] of this.#requests)
      if (index > first && index <= last && request.kind === kind && request.isDone) return true;
    return false;
  }

  /** A member has opened a store, or taken one over: AUTH-2. */
  opened(name: string, store: Pick<Store, "auth">, index: number): void {
    this.#opened.set(name, index);
    this.compare(name, store, index);
  }

  /** Where a member's present store was opened. */
  openedAt(name: string): number {
    return this.#opened.get(name) ?? 0;
  }

  /** AUTH-2, for a store that has applied everything up to `index`. */
  compare(name: string, store: Pick<Store, "auth">, index: number): void {
    this.counts.compared++;
    const expected = this.at(index).text;
    const actual = modelOf(store).text;
    if (actual !== expected)
      violate("AUTH-2", `${name} has at ${index} the users and roles ${actual}, not ${expected}`);
  }

  /** AUTH-2, if the entry is one that may have changed users or roles. */
  compareAfter(name: string, store: Pick<Store, "auth">, index: number): void {
    if (this.#requests.has(index)) this.compare(name, store, index);
  }
}

/** The request in an entry, and whose it is: of a user, or of a caller whose token has roles. */
export function unwrapped(entry: InternalRaftRequest): {
  readonly internal: InternalRaftRequest;
  readonly identity: ModelIdentity;
} {
  const { username: user = "", authRevision = 0 } = entry.header ?? {};
  if (entry.tokenRoles === undefined) return { internal: entry, identity: { user, authRevision } };
  const { roles, request } = TokenRolesRequest.decode(entry.tokenRoles);
  const internal = InternalRaftRequest.decode(request);
  return { internal, identity: { user, authRevision, roles } };
}

/** What a store has, as the model has it. */
export function modelOf({ auth }: Pick<Store, "auth">): AuthModel {
  const users = auth.userNames().map((name): [string, ModelUser] => {
    const { password, roles, options } = defined(auth.user(name), "the user");
    const noPassword = options?.noPassword ?? false;
    const createdAt = defined(auth.createdAt(name), "the revision");
    return [name, { hash: hashText(password), noPassword, roles, createdAt }];
  });
  const roles = auth
    .roleNames()
    .map((name) => [name, defined(auth.role(name), "the role").map(toPermission)] as const);
  const { isEnabled, revision, notesCreations } = auth;
  return new AuthModel(isEnabled, revision, new Map(users), new Map(roles), notesCreations);
}
