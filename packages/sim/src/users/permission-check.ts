/**
 * What clients may, judged by the log:
 *
 *   AUTH-4 served, so permitted  a call that was served was permitted at some point between its
 *                                call and its return; by nothing that the log has is one served
 *                                without a user, with a token that is made up or has ended, once
 *                                enforcement was acknowledged
 *   AUTH-5 refused, so forbidden a call that was refused was not permitted at some point in it
 *   AUTH-8 acknowledged changes  a change of users and roles that was acknowledged is in the log,
 *                                between its call and its return
 *
 * What goes through the log, and a linearizable read, is judged by what was applied anywhere at the
 * call; what a member decides alone by what that member had applied.
 */
import { AuthService, defined, type ErrorName, errorNameOf } from "@quorate/proto";
import { violate } from "../base/violation.ts";
import type { Safety } from "../check/safety.ts";
import type { Reply } from "../exchanges.ts";
import type { Node } from "../node.ts";
import type { AuthModel, ModelIdentity, Need } from "./auth-model.ts";
import { type CallRules, CHANGES, rulesOf } from "./calls.ts";
import { type Identity, nameOf } from "./identity.ts";
import { ALL_LEASES, type KeysOf } from "./needs.ts";

/** Errors that come after permission was looked at: as good as an answer. */
const AFTER_PERMISSION: ReadonlySet<string> = new Set([
  "KeyNotFound",
  "LeaseNotFound",
  "LeaseExist",
  "Compacted",
  "FutureRev",
]);

const AUTH_PATHS = `/${AuthService.typeName}/`;

/** Errors that refuse a caller. */
export const REFUSED: ReadonlySet<string> = new Set([
  "PermissionDenied",
  "UserEmpty",
  "UserNotFound",
  "AuthOldRevision",
  "InvalidAuthToken",
]);

/** A call may reach its member so long after its client stopped waiting: members are paused. */
const LATE_MS = 6000;

/** A moment as the log and one member see it. */
export interface Moment {
  readonly node: Node;
  /** Entries that were applied anywhere. */
  readonly index: number;
  /** Those that the member had applied. */
  readonly memberIndex: number;
  readonly starts: number;
  readonly timesAltered: number;
  readonly ms: number;
}

/** A call that is under way. */
export interface CallNote {
  readonly identity: Identity;
  readonly path: string;
  readonly rules: CallRules | undefined;
  readonly begin: Moment;
  /** When the token was used before. */
  readonly usedMs: number;
}

export interface PermissionCheckOptions {
  readonly tokenTtlSeconds: number;
  readonly drift: number;
}

export class PermissionCheck {
  readonly #options: PermissionCheckOptions;
  readonly #safety: Safety;
  readonly #now: () => number;
  readonly counts = { served: 0, refused: 0, anonymous: 0, tokens: 0 };

  constructor(options: PermissionCheckOptions, safety: Safety, now: () => number) {
    this.#options = options;
    this.#safety = safety;
    this.#now = now;
  }

  /** Now, at a member. */
  moment(node: Node): Moment {
    const { starts, timesAltered, member } = node;
    const index = this.#safety.lastIndex;
    const memberIndex = member?.appliedIndex ?? 0;
    return { node, index, memberIndex, starts, timesAltered, ms: this.#now() };
  }

  /** The lowest index by which the member may have decided since. */
  lowest({ node, memberIndex, starts }: Moment): number {
    return node.starts === starts ? memberIndex : 0;
  }

  called(node: Node, identity: Identity, path: string, bytes: Uint8Array): CallNote {
    const begin = this.moment(node);
    const { session } = identity;
    const usedMs = session?.lastUsedMs ?? 0;
    if (session !== undefined) session.lastUsedMs = begin.ms;
    return { identity, path, rules: rulesOf(path, bytes), begin, usedMs };
  }

  /** Throws a Violation. */
  returned(call: CallNote, { bytes, error }: Reply): void {
    const name = error === undefined ? undefined : errorNameOf(error);
    const { session } = call.identity;
    if (session !== undefined) session.lastUsedMs = this.#now();
    if (call.rules === undefined) return;
    if (bytes !== undefined || (name !== undefined && AFTER_PERMISSION.has(name)))
      this.#served(call, call.rules, bytes);
    // Of the user that a request of the Auth service names, it is an answer.
    else if (name === "UserNotFound" && call.path.startsWith(AUTH_PATHS)) return;
    else if (name !== undefined && REFUSED.has(name)) this.#refused(call, call.rules, name);
  }

  #served(call: CallNote, rules: CallRules, response: Uint8Array | undefined): void {
    const { begin, identity, path } = call;
    this.counts.served++;
    const last = this.#safety.lastIndex;
    const first = rules.served === "local" ? this.lowest(begin) : begin.index;
    if (response !== undefined && CHANGES.has(path)) this.#acknowledged(call, last);
    if (begin.node.timesAltered > 0 && rules.hasLeases) return;
    // The very state before its entry decides about a request of the log.
    if (this.isEver({ ...call, rules }, first, (keysOf) => rules.needs(keysOf, response))) return;
    if (rules.served === "own" && this.#isOwn(call, rules)) return;
    violate(
      "AUTH-4",
      `${nameOf(identity)} is served ${path} by ${begin.node.name}, which was permitted nowhere from ${first} to ${last}`,
    );
  }

  /**
   * Whether a member may have recognised the caller's token by what it had applied, and the user
   * was permitted later, when the entry was applied.
   */
  #isOwn(call: CallNote, rules: CallRules): boolean {
    const { begin, identity } = call;
    const { session } = identity;
    if (session === undefined) return false;
    const { users, lastIndex } = this.#safety;
    const from = (first: number) => this.turns(identity, first, Math.max(first, lastIndex));
    const wasRecognised = from(this.lowest(begin)).some(
      (index) => this.userAt(call, index, users.at(index)).user !== "",
    );
    return (
      wasRecognised &&
      from(begin.index).some((index) => {
        const state = users.at(index);
        const user = { user: session.user, authRevision: state.revision, roles: session.roles };
        return state.verdict(user, rules.needs(this.keysAt(index))) === undefined;
      })
    );
  }

  /** Whether a call was permitted after some entry from `first` on. */
  isEver(
    call: Pick<CallNote, "identity" | "begin" | "usedMs"> & { readonly rules: CallRules },
    first: number,
    needs: (keysOf: KeysOf) => readonly Need[],
  ): boolean {
    return this.#points(call.rules, call.identity, first, this.#safety.lastIndex).some((index) => {
      const state = this.#safety.users.at(index);
      if (!state.isEnabled) return true;
      const user = this.userAt(call, index, state);
      return state.verdict(user, needs(this.keysAt(index))) === undefined;
    });
  }

  /** The indexes at which verdicts may differ. */
  #points({ hasLeases }: CallRules, identity: Identity, first: number, last: number): number[] {
    if (!hasLeases) return this.turns(identity, first, last);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  }

  /**
   * The indexes from `first` to `last` at which an identity may be permitted something else than
   * before, and `first`: users or roles change, or the identity's token is made.
   */
  turns({ session }: Identity, first: number, last: number): number[] {
    const points = this.#safety.users.changedBetween(first, last);
    const made = session?.index ?? 0;
    return made > first && made <= last ? [...points, made] : points;
  }

  /** The leases' keys after an entry. */
  keysAt(index: number): KeysOf {
    const state = this.#safety.stateAt(this.#safety.revisionAt(index) ?? 1);
    return (lease) =>
      lease === ALL_LEASES
        ? [...(state?.keys ?? [])].flatMap(([key, one]) => (one.lease === undefined ? [] : [key]))
        : (state?.keysOf(lease) ?? []);
  }

  /** Who a caller is by the state after an entry. */
  userAt(
    { identity, begin, usedMs }: Pick<CallNote, "identity" | "begin" | "usedMs">,
    index: number,
    state: AuthModel,
  ): ModelIdentity {
    const { session, user } = identity;
    if (session === undefined) return { user, authRevision: user === "" ? 0 : state.revision };
    const noUser = { user: "", authRevision: 0 };
    const { roles } = session;
    if (roles !== undefined)
      return begin.ms < session.endsMs ? { user, authRevision: state.revision, roles } : noUser;
    if (session.revision !== undefined)
      return begin.ms < session.endsMs ? { user, authRevision: session.revision } : noUser;
    if (index < session.index || this.#safety.users.endOfTokens(user, session.index) <= index)
      return noUser;
    return this.#hasExpired(usedMs, begin.ms) ? noUser : { user, authRevision: state.revision };
  }

  /** Whether a token has expired on every member, however slow its clock. */
  #hasExpired(usedMs: number, nowMs: number): boolean {
    const { tokenTtlSeconds, drift } = this.#options;
    return nowMs - usedMs > (tokenTtlSeconds * 1000) / (1 - drift) + LATE_MS;
  }

  #refused(call: CallNote, rules: CallRules, name: string): void {
    const { begin, identity, path } = call;
    this.counts.refused++;
    if (identity.user === "") this.counts.anonymous++;
    if (begin.node.timesAltered > 0 && rules.hasLeases) return;
    const last = this.#safety.lastIndex;
    const lowest = this.lowest(begin);
    const first = rules.refused === "local" ? lowest : begin.index;
    const why = this.explains(call, name as ErrorName, { first, lowest, last }, (index) =>
      rules.needs(this.keysAt(index)),
    );
    if (why) return;
    violate(
      "AUTH-5",
      `${nameOf(identity)} is refused ${path} by ${begin.node.name} with ${name}, and was permitted from ${first} to ${last}`,
    );
  }

  /** Whether the log has a reason for a refusal. */
  explains(
    call: Pick<CallNote, "identity" | "begin" | "usedMs" | "rules">,
    name: ErrorName,
    { first, lowest, last }: { first: number; lowest: number; last: number },
    needs: (index: number) => readonly Need[],
  ): boolean {
    const { users } = this.#safety;
    const states = users.between(lowest, last);
    if (name === "InvalidAuthToken") return this.#mayRefuseToken(call, lowest, last);
    const { session } = call.identity;
    if (name === "AuthOldRevision") {
      if (session?.revision !== undefined)
        return states.some((one) => one.revision > defined(session.revision, "the revision"));
      return states.length > 1;
    }
    // Who was not asked for a user on a member that did not know of enforcement yet.
    if (name === "UserEmpty") {
      const off = states.findIndex((one) => !one.isEnabled);
      if (off >= 0 && states.slice(off).some((one) => one.isEnabled)) return true;
    }
    const points = this.#points(
      call.rules ?? { served: "local", refused: "local", hasLeases: true, needs: () => [] },
      call.identity,
      first,
      last,
    );
    return points.some((index) => {
      const state = users.at(index);
      return state.verdict(this.userAt(call, index, state), needs(index)) === name;
    });
  }

  /** A token is not accepted: it is none, has ended, or was forgotten in a restart. */
  #mayRefuseToken(
    { identity, begin }: Pick<CallNote, "identity" | "begin">,
    lowest: number,
    last: number,
  ): boolean {
    const { session } = identity;
    const { users } = this.#safety;
    if (!users.between(lowest, last).some(({ isEnabled }) => isEnabled)) return false;
    if (session === undefined) return identity.proof === "forged";
    const { revision, roles, user } = session;
    if (revision !== undefined || roles !== undefined) {
      // It is of a user that was there when it was made, and of no later one of that name.
      const isGone = (state: AuthModel): boolean =>
        (state.users.get(user)?.createdAt ?? Number.POSITIVE_INFINITY) > (revision ?? 0);
      const isOfStore = roles === undefined;
      return (
        this.#now() >= session.endsMs ||
        (isOfStore && users.between(lowest, last).some((state) => state.isEnabled && isGone(state)))
      );
    }
    if (users.endOfTokens(session.user, session.index) <= last) return true;
    const { node } = begin;
    // Since it started, or has taken another member's store, it knows no older token.
    if (node.starts !== begin.starts || users.openedAt(node.name) >= session.index) return true;
    const { tokenTtlSeconds, drift } = this.#options;
    const ageMs = this.#now() - session.madeMs;
    // What a start applies again from its log makes no token.
    const processMs = (node.clock?.monotonicMs() ?? 0) / (1 + drift);
    if (processMs <= ageMs + LATE_MS) return true;
    return ageMs > (tokenTtlSeconds * 1000) / (1 + drift);
  }

  /** AUTH-8. */
  #acknowledged({ path, begin, identity }: CallNote, last: number): void {
    if (this.#safety.users.hasSuccess(defined(CHANGES.get(path), path), begin.index, last)) return;
    violate(
      "AUTH-8",
      `${nameOf(identity)} has an answer to ${path} of ${begin.node.name}, and no entry from ${begin.index + 1} to ${last} is that`,
    );
  }
}
