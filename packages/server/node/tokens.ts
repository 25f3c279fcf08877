/** Tokens that are signed: their keys, and what shows how they do. */
import type { FileSource, FileSourceDependencies } from "@quorate/host/node";
import type { JwtKeys, JwtSettings, TokenProvider } from "@quorate/member";
import { JwtTokens, jwtProvider } from "@quorate/member";
import type { MetricRegistry } from "@quorate/metrics";
import { openJwtKeys } from "./jwt-key-files.ts";

export interface SignedTokens {
  readonly provider: TokenProvider;
  readonly keys: FileSource<JwtKeys>;
  declareMetrics(registry: MetricRegistry): void;
}

/** Reads the keys, and follows their files. Rejects with what is wrong with them. */
export async function openSignedTokens(
  settings: JwtSettings,
  dependencies: FileSourceDependencies,
): Promise<SignedTokens> {
  const keys = await openJwtKeys(settings, dependencies).catch((error: Error) => {
    throw new Error(`--auth-token: ${error.message}`);
  });
  const tokens = new JwtTokens(settings, keys.current, dependencies);
  keys.onChange((changed) => tokens.useKeys(changed));
  return {
    provider: jwtProvider(tokens),
    keys,
    declareMetrics(registry) {
      const refused = registry.counter(
        "quorate_auth_jwt_refused_total",
        "Signed tokens that were refused: ended, or of no key or claim that is accepted.",
      );
      const checked = registry.counter(
        "quorate_auth_jwt_verifications_total",
        "Signatures of tokens that were checked; tokens that were checked before are remembered.",
      );
      registry.onScrape(() => {
        refused.value = tokens.refusals;
        checked.value = tokens.verifications;
      });
    },
  };
}
