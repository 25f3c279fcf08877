/**
 * The user of a request (apiserver: pkg/authentication/request/{x509,bearertoken,anonymous}):
 *
 *     proxy's headers -> client certificate -> bearer token -> token of a WebSocket -> anonymous
 *
 * A credential that is not valid ends in 401 "Unauthorized", unless another one is; why is only in
 * the log. A request without any is anonymous where that is allowed.
 */

import { type Clock, type HttpHead, type Logger, WarningInterval } from "@quorate/host";
import { ANONYMOUS, type Authenticator, type UserInfo, unauthorized } from "@quorate/kube-storage";
import { ExpiringMap } from "./expiring-map.ts";
import { type ProxySettings, proxiedUser } from "./proxied-users.ts";
import { isWebSocketRequest, socketProtocols } from "./socket-protocols.ts";
import {
  InvalidTokenError,
  type TokenAuthenticator,
  type TokenIdentity,
} from "./token-authenticator.ts";
import { sha256HexOf } from "./token-file.ts";
import { CREDENTIAL_ID_KEY, withAuthenticatedGroup } from "./user-names.ts";

/** One line in so long about refused credentials, with a count of the others. */
const WARN_PERIOD_MS = 5000;

interface RequestAuthenticatorOptions {
  /** Whether the client port verifies client certificates against a CA. */
  readonly clientCertificates: boolean;
  /** Of proxies that say who asks; undefined: none is believed. */
  readonly proxies?: ProxySettings | undefined;
  readonly tokens: TokenAuthenticator | undefined;
  /** The server's own audiences, which tokens must be made for. */
  readonly audiences: readonly string[];
  readonly allowAnonymous: boolean;
}

interface RequestAuthenticatorDependencies {
  readonly logger: Logger;
  readonly monotonicMs: () => number;
}

export class RequestAuthenticator implements Authenticator {
  readonly #options: RequestAuthenticatorOptions;
  readonly #dependencies: RequestAuthenticatorDependencies;
  readonly #warnings = new WarningInterval(WARN_PERIOD_MS);

  constructor(
    options: RequestAuthenticatorOptions,
    dependencies: RequestAuthenticatorDependencies,
  ) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  async authenticate(head: HttpHead): Promise<UserInfo | undefined> {
    const { clientCertificates, tokens, audiences, allowAnonymous } = this.#options;
    const fromProxy = this.#fromProxy(head);
    if (typeof fromProxy === "object") return withAuthenticatedGroup(fromProxy);
    const fromCertificate = clientCertificates ? certificateUser(head) : undefined;
    if (fromCertificate !== undefined) return withAuthenticatedGroup(fromCertificate);
    const token = bearerToken(head.headers.get("authorization")) ?? this.#socketToken(head);
    if (token !== undefined && tokens !== undefined) {
      const user = await this.#tokenUser(tokens, token, audiences);
      if (user === undefined) throw unauthorized();
      return withAuthenticatedGroup(user);
    }
    const { peerCertificateError } = head;
    if (clientCertificates && peerCertificateError !== undefined) {
      this.#refused(`the client certificate does not verify: ${peerCertificateError}`);
    } else if (typeof fromProxy === "string") {
      this.#refused(fromProxy);
    } else if (allowAnonymous) return ANONYMOUS;
    throw unauthorized();
  }

  /** A text: the client has a certificate, but is no proxy. */
  #fromProxy(head: HttpHead): UserInfo | string | undefined {
    const { proxies } = this.#options;
    const { peerCommonName, peerCertificateError, peerProxyName } = head;
    if (proxies === undefined) return undefined;
    const shown = peerCommonName ?? peerCertificateError ?? peerProxyName;
    if (shown === undefined) return undefined;
    return proxiedUser(head, proxies);
  }

  /** Throws ApiError 401 for one that is malformed. */
  #socketToken(head: HttpHead): string | undefined {
    if (!isWebSocketRequest(head)) return undefined;
    try {
      return socketProtocols(head).token;
    } catch (error) {
      this.#refused((error as Error).message);
      throw unauthorized();
    }
  }

  async #tokenUser(
    tokens: TokenAuthenticator,
    token: string,
    audiences: readonly string[],
  ): Promise<UserInfo | undefined> {
    try {
      const identity = await tokens.authenticateToken(token, audiences);
      if (identity === undefined) this.#refused("invalid bearer token");
      return identity?.user;
    } catch (error) {
      if (!(error instanceof InvalidTokenError)) throw error;
      this.#refused(error.message);
      return undefined;
    }
  }

  #refused(reason: string): void {
    const { logger, monotonicMs } = this.#dependencies;
    const omitted = this.#warnings.pass(monotonicMs());
    if (omitted === undefined) return;
    const others = omitted === 0 ? {} : { "refused-since-last-warning": omitted };
    logger.warn("a request could not be authenticated", { reason, ...others });
  }
}

/** CN is the user, each O a group. The port has verified the certificate. */
function certificateUser(head: HttpHead): UserInfo | undefined {
  const { peerCommonName, peerOrganizations, peerCertificateSha256 } = head;
  if (peerCommonName === undefined || peerCommonName === "") return undefined;
  const extra: Record<string, readonly string[]> = {};
  if (peerCertificateSha256 !== undefined) {
    extra[CREDENTIAL_ID_KEY] = [`X509SHA256=${peerCertificateSha256}`];
  }
  return { name: peerCommonName, uid: "", groups: peerOrganizations ?? [], extra };
}

/** The token of an Authorization header (RFC 6750); undefined where it has none. */
function bearerToken(header: string | undefined): string | undefined {
  const [scheme = "", token] = (header ?? "").trim().split(" ", 3);
  if (token === undefined || token === "" || scheme.toLowerCase() !== "bearer") return undefined;
  return token;
}

/** As in kube-apiserver. Refused tokens are not remembered. */
const TOKEN_CACHE_TTL_MS = 10_000;
export const MAX_CACHED_TOKENS = 8192;
/** Checks under way. One more request with a new token is refused. */
const MAX_RUNNING_TOKEN_CHECKS = 1024;
/** A longer token is refused unread. */
export const MAX_TOKEN_LENGTH = 16_384;

/** The SHA-256 of a text's UTF-8, in hexadecimal digits. */
export type Sha256Hex = (text: string) => string;

export interface TokenCacheOptions {
  /** Default: as in kube-apiserver for all kinds of tokens. */
  readonly ttlMs?: number;
  /** Of tokens that nobody knows; default 0: they are not remembered. */
  readonly unknownTtlMs?: number;
  /** Each request is hashed, so the platform's own is worth having. */
  readonly sha256Hex?: Sha256Hex | undefined;
}

/**
 * Remembers for a short time what a token proved (apiserver: pkg/authentication/token/cache). Keys
 * are hashes, so that no token stays in memory; requests with one token share one check. Unknown
 * tokens have a place of their own: many of them take none from others.
 */
export class TokenCache implements TokenAuthenticator {
  readonly #inner: TokenAuthenticator;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #unknownTtlMs: number;
  readonly #sha256Hex: Sha256Hex;
  readonly #known: ExpiringMap<TokenIdentity>;
  readonly #unknown: ExpiringMap<true>;
  readonly #running = new Map<string, Promise<TokenIdentity | undefined>>();

  constructor(inner: TokenAuthenticator, clock: Clock, options: TokenCacheOptions = {}) {
    this.#inner = inner;
    this.#clock = clock;
    this.#ttlMs = options.ttlMs ?? TOKEN_CACHE_TTL_MS;
    this.#unknownTtlMs = options.unknownTtlMs ?? 0;
    this.#sha256Hex = options.sha256Hex ?? sha256HexOf;
    const nowMs = (): number => clock.monotonicMs();
    this.#known = new ExpiringMap(MAX_CACHED_TOKENS, nowMs);
    this.#unknown = new ExpiringMap(MAX_CACHED_TOKENS, nowMs);
  }

  get size(): number {
    return this.#known.size;
  }

  authenticateToken(
    token: string,
    audiences: readonly string[],
  ): Promise<TokenIdentity | undefined> {
    if (token.length > MAX_TOKEN_LENGTH) {
      return Promise.reject(new InvalidTokenError("the token is too long"));
    }
    const key = this.#sha256Hex(JSON.stringify([token, ...audiences]));
    const known = this.#get(key);
    if (known !== undefined) return Promise.resolve(known);
    if (this.#unknown.get(key) !== undefined) return Promise.resolve(undefined);
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    if (this.#running.size >= MAX_RUNNING_TOKEN_CHECKS) {
      return Promise.reject(new InvalidTokenError("too many tokens are being checked"));
    }
    const check = this.#check(key, token, audiences).finally(() => this.#running.delete(key));
    this.#running.set(key, check);
    return check;
  }

  async #check(
    key: string,
    token: string,
    audiences: readonly string[],
  ): Promise<TokenIdentity | undefined> {
    const identity = await this.#inner.authenticateToken(token, audiences);
    if (identity === undefined) this.#unknown.set(key, true, this.#unknownTtlMs);
    else this.#known.set(key, identity, this.#ttlMs);
    return identity;
  }

  #get(key: string): TokenIdentity | undefined {
    const identity = this.#known.get(key);
    const { endsMs } = identity ?? {};
    if (endsMs === undefined || this.#clock.wallMs() < endsMs) return identity;
    this.#known.delete(key);
    return undefined;
  }
}
