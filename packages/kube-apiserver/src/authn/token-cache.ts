/**
 * Remembers for a short time what a token proved (apiserver: pkg/authentication/token/cache). Keys
 * are hashes, so that no token stays in memory; requests with one token share one check.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import type { Clock } from "@quorate/host";
import { fromUtf8, toHex } from "@quorate/proto";
import {
  InvalidTokenError,
  type TokenAuthenticator,
  type TokenIdentity,
} from "./token-authenticator.ts";

/** As in kube-apiserver. Refused tokens are not remembered. */
export const TOKEN_CACHE_TTL_MS = 10_000;
export const MAX_CACHED_TOKENS = 8192;
/** Checks under way. One more request with a new token is refused. */
export const MAX_RUNNING_TOKEN_CHECKS = 1024;
/** A longer token is refused unread. */
export const MAX_TOKEN_LENGTH = 16_384;

/** The SHA-256 of a text's UTF-8, in hexadecimal digits. */
export type Sha256Hex = (text: string) => string;

interface Entry {
  readonly identity: TokenIdentity;
  readonly untilMs: number;
}

export class TokenCache implements TokenAuthenticator {
  readonly #inner: TokenAuthenticator;
  readonly #clock: Clock;
  readonly #sha256Hex: Sha256Hex;
  /** In the order in which they end. */
  readonly #entries = new Map<string, Entry>();
  readonly #running = new Map<string, Promise<TokenIdentity | undefined>>();

  /** @param sha256Hex each request is hashed, so the platform's own is worth having */
  constructor(inner: TokenAuthenticator, clock: Clock, sha256Hex: Sha256Hex = sha256HexOf) {
    this.#inner = inner;
    this.#clock = clock;
    this.#sha256Hex = sha256Hex;
  }

  get size(): number {
    return this.#entries.size;
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
    if (identity !== undefined) this.#set(key, identity);
    return identity;
  }

  #get(key: string): TokenIdentity | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const { identity, untilMs } = entry;
    const hasEnded = identity.endsMs !== undefined && this.#clock.wallMs() >= identity.endsMs;
    if (!hasEnded && this.#clock.monotonicMs() < untilMs) return identity;
    this.#entries.delete(key);
    return undefined;
  }

  #set(key: string, identity: TokenIdentity): void {
    const nowMs = this.#clock.monotonicMs();
    this.#entries.delete(key);
    this.#entries.set(key, { identity, untilMs: nowMs + TOKEN_CACHE_TTL_MS });
    for (const [oldest, { untilMs }] of this.#entries) {
      if (untilMs > nowMs && this.#entries.size <= MAX_CACHED_TOKENS) break;
      this.#entries.delete(oldest);
    }
  }
}

function sha256HexOf(text: string): string {
  return toHex(sha256(fromUtf8(text)));
}
