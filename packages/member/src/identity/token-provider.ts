/** What a token is, behind --auth-token: how it is made, and how a caller is recognised by it. */

import type { Clock } from "@quorate/host";
import type { Raft } from "@quorate/raft";
import type { Reads } from "../loop/reads.ts";
import { indexOfToken, SimpleTokens, simpleTokenPrefix } from "./simple-tokens.ts";

/** The user that a token proves. */
export interface TokenUser {
  readonly user: string;
  /** The auth revision when the token was made, where the token says so; else that of now holds. */
  readonly authRevision?: number | undefined;
  /** Roles that the token lists, which take the place of the user's; with the token's end. */
  readonly roles?: readonly string[] | undefined;
  readonly endsMs?: number | undefined;
}

export interface TokenProvider {
  /**
   * The user of a token, as it was sent without "Bearer "; undefined: it is not accepted. May
   * wait.
   */
  recognise(token: string): TokenUser | undefined | Promise<TokenUser | undefined>;
  /**
   * Looks at a token ahead of its need, so that `recognise` need not wait. Undefined where it does
   * not.
   */
  prepare?(token: string): void;
  /** The random part of a token, which a login's entry carries to every member; "" for none. */
  prefix(): string;
  /**
   * The token of a user that was authenticated.
   * @param applied the token as the entry has made it; "" where `prefix` is
   */
  issue(user: string, authRevision: number, applied: string): string | Promise<string>;
  /** The entry after `index` has authenticated a user. Called on every member. */
  assigned(user: string, prefix: string, index: number): void;
  /** A user was deleted or has another password. */
  invalidated(user: string): void;
  /** Auth was disabled: no token is accepted any more. */
  disabled(): void;
  /** Tokens that are kept. */
  readonly size: number;
}

export interface SimpleProviderDeps {
  readonly clock: Clock;
  /** Bytes from a source that is fit for secrets. */
  readonly randomBytes: (length: number) => Uint8Array;
  readonly raft: Pick<Raft, "appliedIndex">;
  readonly reads: Pick<Reads, "wait">;
}

/** etcd's simple tokens. @param ttlSeconds how long a token lives without being used */
export function simpleProvider(deps: SimpleProviderDeps, ttlSeconds: number): TokenProvider {
  const tokens = new SimpleTokens(deps.clock, ttlSeconds);
  const userOf = (token: string): TokenUser | undefined => {
    const user = tokens.userOf(token);
    return user === undefined ? undefined : { user };
  };
  return {
    recognise: (token) => {
      const known = userOf(token);
      const index = known === undefined ? indexOfToken(token) : undefined;
      // The entry that made it may not be applied here yet. What is committed now is waited for
      // and no more, so a made-up index costs no more than a read.
      if (index === undefined || index < deps.raft.appliedIndex) return known;
      return deps.reads.wait().then(() => userOf(token));
    },
    prefix: () => simpleTokenPrefix(deps.randomBytes),
    issue: (_user, _authRevision, applied) => applied,
    assigned: (user, prefix, index) => tokens.assign(user, `${prefix}.${index}`),
    invalidated: (user) => tokens.invalidate(user),
    disabled: () => tokens.clear(),
    get size() {
      return tokens.size;
    },
  };
}
