/**
 * Bearer tokens of service accounts: signs and verifies them (Kubernetes:
 * pkg/serviceaccount/jwt.go). jose is loaded with the first token.
 */
import type { Clock } from "@quorate/host";
import { defined, fromUtf8, toUtf8, writeFromBase64 } from "@quorate/proto";
import type { JWTPayload } from "jose";
import {
  type BoundObjects,
  type KubernetesClaims,
  LEEWAY_MS,
  parseKubernetesClaims,
  userOfClaims,
  validateBinding,
} from "./service-account-claims.ts";
import type { ServiceAccountKeys, ServiceAccountVerificationKey } from "./service-account-keys.ts";
import {
  InvalidTokenError,
  type TokenAuthenticator,
  type TokenIdentity,
} from "./token-authenticator.ts";
import { serviceAccountUsername } from "./user-names.ts";

export interface ServiceAccountTokenSettings {
  /** The first one signs; tokens of the others are accepted. */
  readonly issuers: readonly string[];
  /** The server's own audiences: what a token without audiences is for. */
  readonly audiences: readonly string[];
}

export interface ServiceAccountTokenDependencies {
  readonly clock: Clock;
  readonly objects: BoundObjects;
  /** A random UUID. */
  readonly newUuid: () => string;
}

/** A token's contents besides what the issuer adds. */
export interface TokenContents {
  readonly claims: KubernetesClaims;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
}

export class ServiceAccountTokens implements TokenAuthenticator {
  readonly #settings: ServiceAccountTokenSettings;
  readonly #keys: ServiceAccountKeys;
  readonly #dependencies: ServiceAccountTokenDependencies;

  constructor(
    settings: ServiceAccountTokenSettings,
    keys: ServiceAccountKeys,
    dependencies: ServiceAccountTokenDependencies,
  ) {
    this.#settings = settings;
    this.#keys = keys;
    this.#dependencies = dependencies;
  }

  /** Signs a token that is good from now on. */
  async issue({ claims, audiences, expirationSeconds }: TokenContents): Promise<string> {
    const { SignJWT } = await import("jose");
    const { clock, newUuid } = this.#dependencies;
    const { keyId, algorithm, key } = this.#keys.signing;
    const nowSeconds = Math.floor(clock.wallMs() / 1000);
    const payload: JWTPayload = {
      aud: [...audiences],
      exp: nowSeconds + expirationSeconds,
      iat: nowSeconds,
      iss: defined(this.#settings.issuers[0], "the issuer"),
      jti: newUuid(),
      "kubernetes.io": claims,
      nbf: nowSeconds,
      sub: serviceAccountUsername(claims.namespace, claims.serviceaccount.name),
    };
    return new SignJWT(payload).setProtectedHeader({ alg: algorithm, kid: keyId }).sign(key);
  }

  async authenticateToken(
    token: string,
    audiences: readonly string[],
  ): Promise<TokenIdentity | undefined> {
    const issuer = issuerOf(token);
    if (issuer === undefined || !this.#settings.issuers.includes(issuer)) return undefined;
    const payload = await this.#verify(token);
    const allowed = this.#audiencesOf(payload, audiences);
    return this.#identity(payload, allowed);
  }

  async #identity(payload: JWTPayload, audiences: readonly string[]): Promise<TokenIdentity> {
    this.#checkTimes(payload);
    const claims = parseKubernetesClaims(payload["kubernetes.io"]);
    if (claims === undefined) throw new InvalidTokenError("the claims name no service account");
    const { objects, clock } = this.#dependencies;
    await validateBinding(claims, objects, clock.wallMs());
    const endsMs = payload.exp === undefined ? undefined : payload.exp * 1000 + LEEWAY_MS;
    return { user: userOfClaims(claims, payload.jti), audiences, endsMs };
  }

  /** Checks the signature with the keys that the token's header may mean. */
  async #verify(token: string): Promise<JWTPayload> {
    const jose = await import("jose");
    let header: { kid?: unknown; alg?: unknown };
    try {
      header = jose.decodeProtectedHeader(token);
    } catch {
      throw new InvalidTokenError("invalid token");
    }
    const keys = this.#candidates(header.kid);
    if (keys.length === 0) throw new InvalidTokenError("invalid signature, no keys found");
    let failure = "invalid signature";
    for (const { algorithm, key } of keys) {
      if (header.alg !== algorithm) continue;
      try {
        const { payload } = await jose.compactVerify(token, key, { algorithms: [algorithm] });
        return payloadOf(payload);
      } catch (error) {
        failure = error instanceof Error ? error.message : failure;
      }
    }
    throw new InvalidTokenError(failure);
  }

  #candidates(keyId: unknown): readonly ServiceAccountVerificationKey[] {
    const { verification } = this.#keys;
    if (typeof keyId !== "string" || keyId === "") return verification;
    return verification.filter((one) => one.keyId === keyId);
  }

  #checkTimes({ exp, nbf, iat }: JWTPayload): void {
    const nowMs = this.#dependencies.clock.wallMs();
    if (nbf !== undefined && nowMs + LEEWAY_MS < nbf * 1000) {
      throw new InvalidTokenError("service account token is not valid yet");
    }
    if (exp !== undefined && nowMs - LEEWAY_MS > exp * 1000) {
      throw new InvalidTokenError("service account token has expired");
    }
    if (iat !== undefined && nowMs + LEEWAY_MS < iat * 1000) {
      throw new InvalidTokenError("service account token is issued in the future");
    }
    if (exp === undefined) throw new InvalidTokenError("service account token never expires");
  }

  #audiencesOf({ aud }: JWTPayload, wanted: readonly string[]): readonly string[] {
    const own = this.#settings.audiences;
    const named = aud === undefined ? [] : Array.isArray(aud) ? aud : [aud];
    const of = named.length === 0 ? own : named;
    const requested = wanted.length === 0 ? own : wanted;
    const common = of.filter((one) => requested.includes(one));
    if (common.length === 0) {
      throw new InvalidTokenError(
        `token audiences ${goList(of)} is invalid for the target audiences ${goList(requested)}`,
      );
    }
    return common;
  }
}

function goList(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(" ")}]`;
}

/** The claims of a token whose signature is right. */
function payloadOf(bytes: Uint8Array): JWTPayload {
  const payload = JSON.parse(toUtf8(bytes)) as JWTPayload;
  const { exp, nbf, iat, jti } = payload;
  const isTime = (value: unknown): boolean => value === undefined || typeof value === "number";
  if (!isTime(exp) || !isTime(nbf) || !isTime(iat)) throw new InvalidTokenError("invalid token");
  if (jti !== undefined && typeof jti !== "string") throw new InvalidTokenError("invalid token");
  return payload;
}

/** The claim "iss" of a compact JWS, unverified; undefined for what is none. */
export function issuerOf(token: string): string | undefined {
  const [, claims, signature, more] = token.split(".");
  if (claims === undefined || signature === undefined || more !== undefined) return undefined;
  if (!/^[A-Za-z0-9_-]+$/.test(claims)) return undefined;
  try {
    const text = textOfBase64(claims.replaceAll("-", "+").replaceAll("_", "/"));
    const { iss } = JSON.parse(text) as { iss?: unknown };
    return typeof iss === "string" ? iss : undefined;
  } catch {
    return undefined;
  }
}

function textOfBase64(base64: string): string {
  const bytes = fromUtf8(base64);
  const length = writeFromBase64(bytes, base64, 0);
  return toUtf8(bytes, 0, length);
}
