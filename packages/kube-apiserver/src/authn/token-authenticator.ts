/** Who a bearer token stands for (apiserver: pkg/authentication/authenticator, token/union). */

import { aggregateText, type UserInfo } from "@quorate/kube-storage";
import { CodedError } from "@quorate/proto";

/** What a token proves. */
export interface TokenIdentity {
  readonly user: UserInfo;
  /** The audiences of the token among those asked for; undefined: it does not say. */
  readonly audiences: readonly string[] | undefined;
  /** Wall-clock time at which it ends; undefined for never. */
  readonly endsMs?: number | undefined;
}

export interface TokenAuthenticator {
  /**
   * Resolves with undefined for a token that is not of this kind. Rejects with InvalidTokenError
   * for one that is, but is not valid.
   * @param audiences any of which the token must be made for
   */
  authenticateToken(
    token: string,
    audiences: readonly string[],
  ): Promise<TokenIdentity | undefined>;
}

/** What is said of a token about which nothing is known. */
export const INVALID_TOKEN = "invalid bearer token";

/** A token that is not accepted. Its message never holds the token. */
export class InvalidTokenError extends CodedError<"InvalidToken"> {
  /** Of all that were asked. */
  readonly reasons: readonly string[];

  /** @param reasons one or more */
  constructor(...reasons: readonly string[]) {
    super("InvalidTokenError", "InvalidToken", aggregateText(reasons));
    this.reasons = reasons;
  }
}

/**
 * The first of several that accepts a token. The errors of the others count only if none does.
 */
export function anyTokenAuthenticator(
  authenticators: readonly TokenAuthenticator[],
): TokenAuthenticator {
  return {
    async authenticateToken(token, audiences) {
      const reasons: string[] = [];
      for (const one of authenticators) {
        try {
          const identity = await one.authenticateToken(token, audiences);
          if (identity !== undefined) return identity;
        } catch (error) {
          if (!(error instanceof InvalidTokenError)) throw error;
          reasons.push(...error.reasons);
        }
      }
      if (reasons.length === 0) return undefined;
      throw new InvalidTokenError(...reasons);
    },
  };
}
