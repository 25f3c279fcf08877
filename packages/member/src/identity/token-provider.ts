/** What a token is, behind --auth-token: how it is made, and how a caller is recognised by it. */

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
