/**
 * Tokens that a webhook knows (apiserver: plugin/pkg/authenticator/token/webhook):
 *
 *     token -> TokenReview -> user, or nobody; the audiences that it is for
 *
 * The cache before it is TokenCache, which keeps refusals here, too.
 */
import { type RemoteReviews, ReviewError } from "./remote-reviews.ts";
import {
  InvalidTokenError,
  type TokenAuthenticator,
  type TokenIdentity,
} from "./token-authenticator.ts";

/** authentication.k8s.io TokenReviewStatus. */
interface TokenReviewStatus {
  readonly authenticated?: boolean;
  readonly user?: {
    readonly username?: string;
    readonly uid?: string;
    readonly groups?: readonly string[] | null;
    readonly extra?: Readonly<Record<string, readonly string[]>> | null;
  };
  readonly audiences?: readonly string[] | null;
  readonly error?: string;
}

export class WebhookTokens implements TokenAuthenticator {
  readonly #reviews: RemoteReviews;
  readonly #serverAudiences: readonly string[];
  readonly #failed: (message: string) => void;

  /**
   * @param serverAudiences of tokens about whose audiences the webhook says nothing
   * @param failed called where the webhook did not say whose a token is
   */
  constructor(
    reviews: RemoteReviews,
    serverAudiences: readonly string[],
    failed: (message: string) => void,
  ) {
    this.#reviews = reviews;
    this.#serverAudiences = serverAudiences;
    this.#failed = failed;
  }

  async authenticateToken(
    token: string,
    audiences: readonly string[],
  ): Promise<TokenIdentity | undefined> {
    const status = await this.#reviewed(token, audiences);
    const known = status.audiences?.length ? status.audiences : this.#serverAudiences;
    const common = known.filter((one) => audiences.includes(one));
    if (common.length === 0) return undefined;
    if (status.authenticated !== true) {
      if (!status.error) return undefined;
      throw new InvalidTokenError(status.error);
    }
    const { username = "", uid = "", groups, extra } = status.user ?? {};
    const user = { name: username, uid, groups: groups ?? [], extra: extra ?? {} };
    return { user, audiences: common };
  }

  async #reviewed(token: string, audiences: readonly string[]): Promise<TokenReviewStatus> {
    try {
      return await this.#reviews.review({ token, audiences }, { user: {} });
    } catch (error) {
      if (!(error instanceof ReviewError)) throw error;
      this.#failed(error.message);
      throw new InvalidTokenError(error.message);
    }
  }
}
