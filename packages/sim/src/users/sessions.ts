/**
 * Logins of users, and the tokens that they are given:
 *
 *   AUTH-9 logins        who is given a token has the user's password at that point of the log; who
 *                        is refused had not, at some point
 */
import {
  AuthenticateRequest,
  AuthenticateResponse,
  AuthService,
  errorNameOf,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "../base/actor.ts";
import { violate } from "../base/violation.ts";
import type { Safety } from "../check/safety.ts";
import type { Reply } from "../exchanges.ts";
import type { Node } from "../node.ts";
import { ROLES, USERS } from "./administrator.ts";
import type { AuthModel } from "./auth-model.ts";
import { byForgery, bySession, type Identity, NO_IDENTITY, type Session } from "./identity.ts";
import type { Moment, PermissionCheck } from "./permission-check.ts";
import { isPasswordOf, readSigned, signedToken } from "./secrets.ts";

const { path: AUTHENTICATE } = AuthService.methods.Authenticate;
const TIMEOUT_MS = 3000;
/** Sessions of earlier logins that are tried again. */
const MAX_OLD_SESSIONS = 12;

export interface SessionsDeps extends Pick<ActorDeps, "nodes" | "scheduler" | "story" | "random"> {
  readonly safety: Safety;
  readonly check: PermissionCheck;
  readonly passwords: ReadonlyMap<string, string>;
  ask(
    identity: Identity,
    node: Node,
    path: string,
    bytes: Uint8Array,
    timeoutMs: number,
  ): Promise<Reply>;
}

export class Sessions extends Actor<SessionsDeps, { readonly signedTokens: boolean }> {
  readonly #current = new Map<string, Session>();
  readonly #old: Session[] = [];
  readonly counts = { logins: 0, refused: 0 };

  /** A user's present session. */
  of(user: string): Session | undefined {
    return this.#current.get(user);
  }

  /** One that a later login took the place of; undefined where there is none. */
  get anyOld(): Session | undefined {
    return this.#old.length === 0 ? undefined : this.#old[this.random.below(this.#old.length)];
  }

  /** A token that no login made, and that looks as if. */
  forged(): Identity {
    const random = this.random;
    const { lastIndex, users } = this.deps.safety;
    if (this.options.signedTokens) {
      const user = random.below(2) === 0 ? "root" : USERS[random.below(USERS.length)];
      const real = signedToken(user, users.last.revision + 5, Number.MAX_SAFE_INTEGER);
      return byForgery(`${real.slice(0, -1)}${real.endsWith("0") ? "1" : "0"}`);
    }
    const letters = Array.from({ length: 16 }, () => String.fromCharCode(97 + random.below(26)));
    return byForgery(`${letters.join("")}.${Math.max(1, lastIndex - 5 + random.below(10))}`);
  }

  /**
   * A caller of which an identity provider says which roles it has; mostly no user, now and
   * then by a user's name.
   */
  get ofProvider(): Identity | undefined {
    if (!this.options.signedTokens) return undefined;
    const random = this.random;
    const user = random.below(3) === 0 ? USERS[random.below(USERS.length)] : "dan";
    const list = [...ROLES, "root"].filter((role) => random.below(role === "root" ? 8 : 3) === 0);
    const roles = list.sort();
    const madeMs = this.deps.scheduler.nowMs;
    const endsMs = Math.floor(madeMs + random.unit() * 4000);
    const token = signedToken(user, 0, endsMs, roles);
    return bySession({
      token,
      user,
      index: 0,
      revision: undefined,
      roles,
      endsMs,
      madeMs,
      lastUsedMs: madeMs,
    });
  }

  /** The user's session is not accepted any more, as far as one member is concerned. */
  drop(session: Session): void {
    if (this.#current.get(session.user) !== session) return;
    this.#current.delete(session.user);
    this.#keepOld(session);
  }

  #keepOld(session: Session): void {
    this.#old.push(session);
    if (this.#old.length > MAX_OLD_SESSIONS) this.#old.shift();
  }

  async work(): Promise<void> {
    while (!this.isStopped) {
      await this.deps.scheduler.delay(this.random.unit() * 150);
      if (this.isStopped) return;
      const names = [...USERS, "root"];
      const missing = names.filter((name) => !this.#current.has(name));
      const isDue = missing.length > 0 || this.random.below(8) === 0;
      if (!isDue) continue;
      const list = missing.length > 0 ? missing : names;
      await this.login(list[this.random.below(list.length)]);
    }
  }

  /**
   * Logs a user in, mostly with the right password. Returns whether that went well.
   * @param sure the password; undefined for that which the user was given last, mostly
   */
  async login(user: string, sure?: string): Promise<boolean> {
    const { nodes, story, check } = this.deps;
    const random = this.random;
    const node = nodes[random.below(nodes.length)];
    const known = this.deps.passwords.get(user) ?? "none";
    const password = sure ?? (random.below(8) === 0 ? "wrong" : known);
    const bytes = AuthenticateRequest.encode({ name: user, password });
    const begin = check.moment(node);
    // Whatever token comes with it does not count.
    const identity = random.below(4) === 0 ? this.forged() : NO_IDENTITY;
    const reply = await this.deps.ask(identity, node, AUTHENTICATE, bytes, TIMEOUT_MS);
    story.record(user, () => `logs in at ${node.name}: ${reply.error ?? "has a token"}`);
    if (reply.bytes === undefined) {
      this.#refused(user, password, begin, reply.error ?? "");
      return false;
    }
    this.#made(user, password, begin, AuthenticateResponse.decode(reply.bytes).token);
    return true;
  }

  #made(user: string, password: string, begin: Moment, token: string): void {
    const { safety, scheduler } = this.deps;
    const { lastIndex, users } = safety;
    this.counts.logins++;
    const signed = readSigned(token);
    const index = this.options.signedTokens ? begin.index : Number(token.split(".")[1]);
    const states = this.options.signedTokens
      ? users.between(begin.index, lastIndex)
      : [users.at(index)];
    const isRight = states.some((state) => state.isEnabled && matches(state, user, password));
    const isLate = index < begin.index || index > lastIndex;
    if (!isRight || isLate || (this.options.signedTokens && signed?.user !== user)) {
      violate(
        "AUTH-9",
        `${user} has the token ${token} for "${password}", called at ${begin.index}, returned at ${lastIndex}`,
      );
    }
    const before = this.#current.get(user);
    if (before !== undefined) this.#keepOld(before);
    const nowMs = scheduler.nowMs;
    this.#current.set(user, {
      token,
      user,
      index,
      madeMs: nowMs,
      lastUsedMs: nowMs,
      revision: signed?.revision,
      roles: undefined,
      endsMs: signed?.endsMs ?? Number.POSITIVE_INFINITY,
    });
  }

  #refused(user: string, password: string, begin: Moment, error: string): void {
    this.counts.refused++;
    const { safety, check } = this.deps;
    const states = safety.users.between(check.lowest(begin), safety.lastIndex);
    const name = errorNameOf(error);
    const isExplained =
      name === "AuthNotEnabled"
        ? states.some(({ isEnabled }) => !isEnabled)
        : name !== "AuthFailed" || states.some((state) => !matches(state, user, password));
    if (!isExplained)
      violate("AUTH-9", `${user} is refused with "${error}" for the right password "${password}"`);
  }
}

function matches({ users }: AuthModel, user: string, password: string): boolean {
  const known = users.get(user);
  if (known === undefined || known.noPassword) return false;
  return isPasswordOf(password, Buffer.from(known.hash, "base64").toString("latin1"));
}
