/**
 * etcd's simple tokens (etcd: server/auth/simple_token.go): sixteen random letters, a dot and the
 * index before that of the entry that authenticated the user. Every member applies that entry, so
 * every member knows the token. It ends when it is not used for a while, when its user is deleted
 * or gets another password, when auth is disabled, and when the member restarts.
 */
import type { Clock, Timer } from "@quorate/host";
import type { Raft } from "@quorate/raft";
import type { Reads } from "../loop/reads.ts";
import type { TokenProvider, TokenUser } from "./token-provider.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const TOKEN_LETTERS = 16;
/** The largest multiple of the letters in a byte: bytes from here on would favour some letters. */
const FAIR_BELOW: number = 256 - (256 % LETTERS.length);

/**
 * Tokens of all users, and of one. For one more, the oldest of the user ends where that has more
 * than an equal share, so that who logs in all the time ends no others' tokens; else the oldest.
 */
export const MAX_TOKENS = 100_000;
export const MAX_TOKENS_OF_ONE_USER = 50_000;
/** Tokens that one look for ended ones goes through, at most; the next look goes on there. */
const MAX_SWEPT = 10_000;
const SWEEP_PERIOD_MS = 1000;

interface Token {
  readonly text: string;
  readonly user: string;
  endsMs: number;
}

/** The random part of a token. @param randomBytes from a source that is fit for secrets */
export function simpleTokenPrefix(randomBytes: (length: number) => Uint8Array): string {
  let letters = "";
  while (letters.length < TOKEN_LETTERS) {
    for (const byte of randomBytes(TOKEN_LETTERS)) {
      if (byte < FAIR_BELOW && letters.length < TOKEN_LETTERS) {
        letters += LETTERS[byte % LETTERS.length];
      }
    }
  }
  return letters;
}

/** The index in a token; undefined for a text that is no simple token. */
export function indexOfToken(token: string): number | undefined {
  const found = /^[^.]*\.([0-9]{1,16})$/.exec(token);
  const index = found === null ? Number.NaN : Number(found[1]);
  return Number.isSafeInteger(index) ? index : undefined;
}

export class SimpleTokens {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  /** In the order of their making. */
  readonly #tokens = new Map<string, Token>();
  readonly #byUser = new Map<string, Set<Token>>();
  /** Where the look for ended tokens goes on. */
  #cursor: IterableIterator<Token> | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock, ttlSeconds: number) {
    this.#clock = clock;
    this.#ttlMs = ttlSeconds * 1000;
  }

  get size(): number {
    return this.#tokens.size;
  }

  /** Accepts a token from now on. */
  assign(user: string, text: string): void {
    if (this.#tokens.has(text)) return;
    const own = this.#byUser.get(user) ?? new Set();
    if (own.size >= MAX_TOKENS_OF_ONE_USER) this.#drop(first(own));
    if (this.#tokens.size >= MAX_TOKENS) {
      const hasMost = own.size > MAX_TOKENS / this.#byUser.size;
      this.#drop(first(hasMost ? own : this.#tokens.values()));
    }
    const token = { text, user, endsMs: this.#clock.monotonicMs() + this.#ttlMs };
    this.#tokens.set(text, token);
    own.add(token);
    this.#byUser.set(user, own);
    this.#timer ??= this.#clock.every(SWEEP_PERIOD_MS, () => this.#sweep());
  }

  /** The user of a token, whose time begins once more; undefined: it is not accepted. */
  userOf(text: string): string | undefined {
    const token = this.#tokens.get(text);
    if (token === undefined) return undefined;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs > token.endsMs) {
      this.#drop(token);
      return undefined;
    }
    token.endsMs = nowMs + this.#ttlMs;
    return token.user;
  }

  /** Ends all tokens of a user. */
  invalidate(user: string): void {
    for (const { text } of this.#byUser.get(user) ?? []) this.#tokens.delete(text);
    this.#byUser.delete(user);
  }

  /** Ends all tokens. */
  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#tokens.clear();
    this.#byUser.clear();
    this.#cursor = undefined;
  }

  #drop(token: Token | undefined): void {
    if (token === undefined) return;
    this.#tokens.delete(token.text);
    const own = this.#byUser.get(token.user);
    own?.delete(token);
    if (own?.size === 0) this.#byUser.delete(token.user);
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#cursor ??= this.#tokens.values();
    for (let swept = 0; swept < MAX_SWEPT; swept++) {
      const { value: token, done } = this.#cursor.next();
      if (done === true) {
        this.#cursor = undefined;
        break;
      }
      if (nowMs > token.endsMs) this.#drop(token);
    }
    if (this.#tokens.size === 0) this.clear();
  }
}

function first<T>(items: Iterable<T>): T | undefined {
  for (const item of items) return item;
  return undefined;
}

export interface SimpleProviderDeps {
  readonly clock: Clock;
  /** Bytes from a source that is fit for secrets. */
  readonly randomBytes: (length: number) => Uint8Array;
  readonly raft: Pick<Raft, "appliedIndex">;
  readonly reads: Pick<Reads, "wait">;
}

/** etcd's simple tokens. @param ttlSeconds how long a token lives without being used */
export function simpleProvider(deps: SimpleProviderDeps, ttlSeconds: number): TokenProvider {
  const tokens = new SimpleTokens(deps.clock, ttlSeconds);
  const userOf = (token: string): TokenUser | undefined => {
    const user = tokens.userOf(token);
    return user === undefined ? undefined : { user };
  };
  return {
    recognise: (token) => {
      const known = userOf(token);
      const index = known === undefined ? indexOfToken(token) : undefined;
      // The entry that made it may not be applied here yet. What is committed now is waited for
      // and no more, so a made-up index costs no more than a read.
      if (index === undefined || index < deps.raft.appliedIndex) return known;
      return deps.reads.wait().then(() => userOf(token));
    },
    prefix: () => simpleTokenPrefix(deps.randomBytes),
    issue: (_user, _authRevision, applied) => applied,
    assigned: (user, prefix, index) => tokens.assign(user, `${prefix}.${index}`),
    invalidated: (user) => tokens.invalidate(user),
    disabled: () => tokens.clear(),
    get size() {
      return tokens.size;
    },
  };
}
