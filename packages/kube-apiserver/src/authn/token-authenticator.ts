/** Who a bearer token stands for (apiserver: pkg/authentication/authenticator, token/union). */

import type { UserInfo } from "@quorate/kube-storage";
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

/** A token that is not accepted. Its message never holds the token. */
export class InvalidTokenError extends CodedError<"InvalidToken"> {
  constructor(message = "invalid bearer token") {
    super("InvalidTokenError", "InvalidToken", message);
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
      const failures: string[] = [];
      for (const one of authenticators) {
        try {
          const identity = await one.authenticateToken(token, audiences);
          if (identity !== undefined) return identity;
        } catch (error) {
          if (!(error instanceof InvalidTokenError)) throw error;
          failures.push(error.message);
        }
      }
      if (failures.length === 0) return undefined;
      throw new InvalidTokenError(failures.length === 1 ? failures[0] : `[${failures.join(", ")}]`);
    },
  };
}
