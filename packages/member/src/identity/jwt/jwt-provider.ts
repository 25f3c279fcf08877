/** JSON Web Tokens behind --auth-token. Nothing of them is in the log, and no member keeps them. */
import type { TokenProvider } from "../token-provider.ts";
import type { JwtTokens } from "./jwt-tokens.ts";

/** The provider of tokens of this kind. As in etcd, a token outlives its user's password. */
export function jwtProvider(tokens: JwtTokens): TokenProvider {
  return {
    recognise: (token) => {
      const known = tokens.cached(token);
      return known !== undefined ? userOf(known) : tokens.verify(token).then(userOf);
    },
    prepare: (token) => {
      if (tokens.cached(token) === undefined) tokens.verify(token).catch(() => {});
    },
    prefix: () => "",
    issue: (user, authRevision) => tokens.assign(user, authRevision),
    assigned: () => {},
    invalidated: () => {},
    disabled: () => {},
    get size() {
      return tokens.cachedTokens;
    },
  };
}

type Known = Awaited<ReturnType<JwtTokens["verify"]>>;

function userOf(known: Known) {
  if (known === undefined) return undefined;
  const { user, revision: authRevision, roles, endsMs } = known;
  return roles === undefined ? { user, authRevision } : { user, authRevision, roles, endsMs };
}
