/** TokenReview and SelfSubjectReview (Kubernetes: pkg/registry/authentication). */
import type { Creater, KubeObject, UserInfo } from "@quorate/kube-storage";
import { aggregateText, badRequest, metaTime } from "@quorate/kube-storage";
import {
  INVALID_TOKEN,
  InvalidTokenError,
  type TokenAuthenticator,
  type TokenIdentity,
} from "./token-authenticator.ts";
import { withAuthenticatedGroup } from "./user-names.ts";

/** authentication.k8s.io/v1 UserInfo. */
export function userInfoObject({ name, uid, groups, extra }: UserInfo): Record<string, unknown> {
  return {
    ...(name === "" ? {} : { username: name }),
    ...(uid === "" ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

/** @param audiences of the server, where a review names none */
export function tokenReviews(
  tokens: TokenAuthenticator | undefined,
  audiences: readonly string[],
): Creater {
  return {
    async create(_ctx, object, validate) {
      const spec = (object["spec"] ?? {}) as { token?: string; audiences?: readonly string[] };
      const { token = "", audiences: wanted = [] } = spec;
      if (token === "") throw badRequest("token is required for TokenReview in authentication");
      await validate(object);
      if (tokens === undefined) return object;
      const asked = wanted.length === 0 ? audiences : wanted;
      return { ...object, status: await reviewOf(tokens, token, asked) };
    },
  };
}

async function reviewOf(
  tokens: TokenAuthenticator,
  token: string,
  audiences: readonly string[],
): Promise<Record<string, unknown>> {
  let identity: TokenIdentity | undefined;
  let error = INVALID_TOKEN;
  try {
    identity = await tokens.authenticateToken(token, audiences);
  } catch (failure) {
    if (!(failure instanceof InvalidTokenError)) throw failure;
    // kube-apiserver's own client has a token, too, with which this one is compared first.
    error = aggregateText([INVALID_TOKEN, ...failure.reasons]);
  }
  if (identity === undefined) return { user: {}, error };
  const user = withAuthenticatedGroup(identity.user);
  return { authenticated: true, user: userInfoObject(user), audiences: identity.audiences };
}

/** Who the caller is: kubectl auth whoami. */
export function selfSubjectReviews(wallMs: () => number): Creater {
  return {
    async create(ctx, object, validate) {
      await validate(object);
      const review: KubeObject = {
        kind: object.kind,
        apiVersion: object.apiVersion,
        metadata: { creationTimestamp: metaTime(wallMs()) },
        status: { userInfo: userInfoObject(ctx.user) },
      };
      return review;
    },
  };
}
