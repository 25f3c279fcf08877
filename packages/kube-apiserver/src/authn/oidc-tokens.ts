/**
 * ID tokens of an OpenID Connect provider (apiserver: plugin/pkg/authenticator/token/oidc). The
 * provider's keys are fetched behind requests:
 *
 *     start -> discovery document -> its jwks_uri -> keys        again after a pause that grows
 *     a token of a key that is not known -> the keys once more   at most once in MIN_REFRESH_MS
 *
 * A request waits for keys for MAX_WAIT_MS at most, and few at a time; all others go on.
 */
import { Backoff, type Clock, type Logger, type Random, sleep, type Timer } from "@quorate/host";
import { textOf, type UserInfo } from "@quorate/kube-storage";
import { CodedError } from "@quorate/proto";
import type { JWK, JWTPayload, JWTVerifyGetKey } from "jose";
import { issuerOf } from "./service-account-tokens.ts";
import {
  InvalidTokenError,
  type TokenAuthenticator,
  type TokenIdentity,
} from "./token-authenticator.ts";
import { CREDENTIAL_ID_KEY } from "./user-names.ts";

export const OIDC_ALGORITHMS: readonly string[] = [
  ..."RS256 RS384 RS512 ES256 ES384 ES512 PS256 PS384 PS512".split(" "),
];

export interface OidcSettings {
  /** An https URL, as it is in the claim "iss". */
  readonly issuer: string;
  /** Must be in the claim "aud". */
  readonly clientId: string;
  readonly usernameClaim: string;
  /** Before the name; "" for the default, "-" for none. */
  readonly usernamePrefix: string;
  /** "" for none. */
  readonly groupsClaim: string;
  readonly groupsPrefix: string;
  /** Claims that must be there with these values. */
  readonly requiredClaims: ReadonlyMap<string, string>;
  /** Of OIDC_ALGORITHMS. */
  readonly algorithms: readonly string[];
}

/** Reads a page; rejects where there is none, and after FETCH_TIMEOUT_MS. */
export type FetchPage = (url: string) => Promise<string>;

export interface OidcDependencies {
  readonly fetchPage: FetchPage;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** A longer page is refused. */
export const MAX_OIDC_PAGE_BYTES: number = 1024 * 1024;
export const OIDC_FETCH_TIMEOUT_MS = 10_000;
/** More keys of a provider are not used. */
export const MAX_OIDC_KEYS = 64;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** Keys are fetched again after this time. */
const KEY_PERIOD_MS = 3_600_000;
export const MIN_OIDC_REFRESH_MS = 10_000;
const MAX_WAIT_MS = 3000;
export const MAX_WAITING_FOR_OIDC_KEYS = 64;
/** Clocks may differ by as much at a token's beginning (go-oidc). */
const LEEWAY_SECONDS = 60;

/** A provider that does not serve what it must. */
class ProviderError extends CodedError<"Provider"> {
  constructor(message: string) {
    super("ProviderError", "Provider", message);
  }
}

export class OidcTokens implements TokenAuthenticator {
  readonly #settings: OidcSettings;
  readonly #deps: OidcDependencies;
  readonly #backoff: Backoff;
  #keys: JWTVerifyGetKey | undefined;
  #fetchedMs = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | undefined;
  #timer: Timer | undefined;
  #waiting = 0;
  #isStopped = false;

  constructor(settings: OidcSettings, deps: OidcDependencies) {
    this.#settings = settings;
    this.#deps = deps;
    const pauses = { firstMs: FIRST_PAUSE_MS, mostMs: LONGEST_PAUSE_MS };
    this.#backoff = new Backoff(pauses, deps.random);
  }

  /** Begins to fetch keys. */
  start(): void {
    void this.#refresh();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async authenticateToken(
    token: string,
    audiences: readonly string[],
  ): Promise<TokenIdentity | undefined> {
    if (issuerOf(token) !== this.#settings.issuer) return undefined;
    const payload = await this.#verified(token);
    const endsMs = payload.exp === undefined ? undefined : payload.exp * 1000;
    // As in Kubernetes, a token for the client is one for the server.
    return { user: this.#userOf(payload), audiences, endsMs };
  }

  async #verified(token: string): Promise<JWTPayload> {
    if (this.#keys === undefined) await this.#wait();
    try {
      return await this.#verify(token);
    } catch (error) {
      const isUnknown = (error as { code?: string }).code === "ERR_JWKS_NO_MATCHING_KEY";
      if (!isUnknown || !(await this.#wait())) throw refusal(error);
    }
    try {
      return await this.#verify(token);
    } catch (error) {
      throw refusal(error);
    }
  }

  async #verify(token: string): Promise<JWTPayload> {
    const keys = this.#keys;
    if (keys === undefined) throw new InvalidTokenError("oidc: authenticator not initialized");
    const { jwtVerify, errors } = await import("jose");
    const { issuer, clientId, algorithms } = this.#settings;
    const options = {
      issuer,
      audience: clientId,
      algorithms: [...algorithms],
      currentDate: new Date(this.#deps.clock.wallMs()),
      requiredClaims: ["exp"],
    };
    // The leeway is for the beginning alone: an end is an end.
    const check = ({ payload }: { readonly payload: JWTPayload }): JWTPayload => {
      const nowSeconds = this.#deps.clock.wallMs() / 1000;
      if ((payload.exp ?? 0) > nowSeconds) return payload;
      throw new InvalidTokenError("oidc: verify token: oidc: token is expired");
    };
    const lenient = { ...options, clockTolerance: LEEWAY_SECONDS };
    try {
      return check(await jwtVerify(token, keys, lenient));
    } catch (error) {
      // A token without a key id: each key that fits is tried.
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      let last: unknown = error;
      for await (const key of error) {
        try {
          return check(await jwtVerify(token, key, lenient));
        } catch (failure) {
          last = failure;
        }
      }
      throw last;
    }
  }

  /** Fetches keys unless that was just done. @returns whether it was */
  async #wait(): Promise<boolean> {
    const { clock } = this.#deps;
    const isRecent = clock.monotonicMs() - this.#fetchedMs < MIN_OIDC_REFRESH_MS;
    if (this.#isStopped || (this.#fetching === undefined && isRecent)) return false;
    const fetched = this.#refresh();
    if (this.#waiting >= MAX_WAITING_FOR_OIDC_KEYS) return false;
    this.#waiting++;
    try {
      await Promise.race([fetched, sleep(clock, MAX_WAIT_MS)]);
      return true;
    } finally {
      this.#waiting--;
    }
  }

  #refresh(): Promise<void> {
    this.#fetching ??= this.#refreshNow().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #refreshNow(): Promise<void> {
    const { clock, logger } = this.#deps;
    this.#timer?.cancel();
    this.#fetchedMs = clock.monotonicMs();
    let pauseMs = KEY_PERIOD_MS;
    try {
      this.#keys = await this.#providersKeys();
      this.#backoff.reset();
    } catch (error) {
      pauseMs = this.#backoff.nextMs();
      const { issuer } = this.#settings;
      logger.warn("oidc: the provider's keys cannot be read", {
        issuer,
        error: textOf(error),
      });
    }
    if (!this.#isStopped) this.#timer = clock.after(pauseMs, () => void this.#refresh());
  }

  async #providersKeys(): Promise<JWTVerifyGetKey> {
    const { issuer } = this.#settings;
    const page = async (url: string): Promise<Readonly<Record<string, unknown>>> => {
      const value: unknown = JSON.parse(await this.#deps.fetchPage(url));
      if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
      throw new ProviderError(`${url} is no JSON object`);
    };
    const root = issuer.endsWith("/") ? issuer.slice(0, -1) : issuer;
    const about = await page(`${root}/.well-known/openid-configuration`);
    if (about["issuer"] !== issuer) {
      const given = JSON.stringify(about["issuer"] ?? "").slice(0, 200);
      throw new ProviderError(
        `issuer did not match the issuer returned by provider, expected "${issuer}" got ${given}`,
      );
    }
    const url = about["jwks_uri"];
    if (typeof url !== "string" || !url.startsWith("https://")) {
      throw new ProviderError("the provider names no https jwks_uri");
    }
    const { keys } = await page(url);
    const { createLocalJWKSet } = await import("jose");
    const usable = (Array.isArray(keys) ? keys : []).slice(0, MAX_OIDC_KEYS).filter(isPublicKey);
    return createLocalJWKSet({ keys: usable });
  }

  #userOf(payload: JWTPayload): UserInfo {
    const { groupsClaim, groupsPrefix, requiredClaims } = this.#settings;
    for (const [name, wanted] of requiredClaims) {
      const value = payload[name];
      if (value === undefined) {
        throw new InvalidTokenError(`oidc: required claim ${name} not present in ID token`);
      }
      if (value !== wanted) {
        throw new InvalidTokenError(
          `oidc: required claim ${name} value does not match. Want = ${wanted}`,
        );
      }
    }
    const groups = groupsClaim === "" ? [] : groupsOf(payload[groupsClaim], groupsClaim);
    const extra: Record<string, readonly string[]> = {};
    const { jti } = payload;
    if (typeof jti === "string" && jti !== "") extra[CREDENTIAL_ID_KEY] = [`JTI=${jti}`];
    return {
      name: this.#nameOf(payload),
      uid: "",
      groups: groups.map((group) => groupsPrefix + group),
      extra,
    };
  }

  #nameOf(payload: JWTPayload): string {
    const { issuer, usernameClaim, usernamePrefix } = this.#settings;
    const name = payload[usernameClaim];
    if (typeof name !== "string") {
      throw new InvalidTokenError(
        `oidc: parse username claims "${usernameClaim}": claim not present`,
      );
    }
    const isEmail = usernameClaim === "email";
    const isVerified = payload["email_verified"] ?? true;
    if (isEmail && isVerified !== true) throw new InvalidTokenError("oidc: email not verified");
    if (usernamePrefix === "-" || (usernamePrefix === "" && isEmail)) return name;
    return (usernamePrefix === "" ? `${issuer}#` : usernamePrefix) + name;
  }
}

function refusal(error: unknown): InvalidTokenError {
  if (error instanceof InvalidTokenError) return error;
  return new InvalidTokenError(`oidc: verify token: ${textOf(error)}`);
}

function isPublicKey(key: unknown): key is JWK {
  if (typeof key !== "object" || key === null) return false;
  const { kty, use } = key as JWK;
  return (kty === "RSA" || kty === "EC") && (use === undefined || use === "sig");
}

function groupsOf(claim: unknown, name: string): readonly string[] {
  if (claim === undefined || claim === null) return [];
  const groups: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  if (groups.every((group): group is string => typeof group === "string")) return groups;
  throw new InvalidTokenError(`oidc: parse groups claim "${name}": it is no list of texts`);
}
