/**
 * Users' tokens as JSON Web Tokens, interoperable with etcd's (server/auth/jwt.go): the claims
 * username, revision (of the auth store) and exp.
 *
 *     Authenticate  -> assign("ann", 7)   -> a token that every member with the keys accepts
 *     a call        -> cached(token)      -> the identity: the signature was checked before
 *                   -> verify(token)      -> the identity, off the event loop, the first time
 *
 * A token of an identity provider (a key of the JWKS file) needs no revision: what its user may do
 * is decided by the users and roles of the moment.
 */
import { type Clock, type Logger, WarningInterval } from "@quorate/host";
import { CodedError, errorOf } from "@quorate/proto";
import { compareNames, MAX_TOKEN_ROLE_LENGTH, MAX_TOKEN_ROLES } from "@quorate/store";
import type { JWTPayload, JWTVerifyOptions } from "jose";
import { candidates, type JwtKeys, type VerificationKey } from "./key-set.ts";
import { ETCD_CLAIMS, type JwtSettings } from "./settings.ts";

/** The least that is known of a cached token. */
interface ExpiringToken {
  /** Wall-clock time from which it is not accepted; undefined for never. */
  readonly endsMs: number | undefined;
}

/** Bounded by entries and by the bytes of tokens; the token that was verified first goes first. */
export class TokenCache<T extends ExpiringToken> {
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #entries = new Map<string, T>();
  #bytes = 0;

  constructor(maxEntries: number, maxBytes: number) {
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The bytes of the tokens that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** What is known of a token; undefined for one that is not there or has ended. */
  get(token: string, wallMs: number): T | undefined {
    const found = this.#entries.get(token);
    if (found === undefined) return undefined;
    if (found.endsMs === undefined || wallMs < found.endsMs) return found;
    this.#delete(token);
    return undefined;
  }

  set(token: string, value: T): void {
    if (token.length > this.#maxBytes) return;
    this.#delete(token);
    this.#entries.set(token, value);
    this.#bytes += token.length;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#bytes <= this.#maxBytes) break;
      this.#delete(oldest);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  #delete(token: string): void {
    if (this.#entries.delete(token)) this.#bytes -= token.length;
  }
}

/** Longer tokens are refused unread. */
export const MAX_TOKEN_BYTES = 16_384;
/** Verified tokens that are kept, and the bytes of them. */
export const MAX_CACHED_TOKENS = 20_000;
export const MAX_CACHED_TOKEN_BYTES: number = 32 * 1024 * 1024;
/** Signatures that are being checked; a call that would add one more is refused. */
export const MAX_RUNNING_VERIFICATIONS = 1024;
/** The length of a user's name in characters. */
export const MAX_NAME_LENGTH = 256;
/** Header, payload and signature in base64url (RFC 7515, 7.1). */
const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;
/** Warnings of bad tokens: one in so long, with a count of the others. */
const WARN_PERIOD_MS = 5000;

/** The identity that a token proves. */
export interface JwtIdentity {
  readonly user: string;
  /** The auth revision that the token was made at; undefined for one of an identity provider. */
  readonly revision: number | undefined;
  /** Roles that the token lists, where --auth-jwt-roles-claim says so. */
  readonly roles: readonly string[] | undefined;
  /** Wall-clock time at which it ends, clock skew included; undefined for never. */
  readonly endsMs: number | undefined;
}

/** Thrown by `assign` where there are public keys alone (etcd: ErrVerifyOnly). */
export class VerifyOnlyError extends CodedError<"VerifyOnly"> {
  constructor() {
    const text = "auth: token signing attempted with verify-only key";
    super("VerifyOnlyError", "VerifyOnly", text);
  }
}

export interface JwtDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The library, which a member without such tokens does not load. */
  readonly jose: typeof import("jose");
}

export class JwtTokens {
  readonly #settings: JwtSettings;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #jose: JwtDependencies["jose"];
  readonly #cache: TokenCache<JwtIdentity> = new TokenCache(
    MAX_CACHED_TOKENS,
    MAX_CACHED_TOKEN_BYTES,
  );
  readonly #running = new Map<string, Promise<JwtIdentity | undefined>>();
  #keys: JwtKeys;
  readonly #warnings = new WarningInterval(WARN_PERIOD_MS);
  /** Tokens that were refused, and signatures that were checked. */
  refusals = 0;
  verifications = 0;

  constructor(settings: JwtSettings, keys: JwtKeys, { clock, logger, jose }: JwtDependencies) {
    this.#settings = settings;
    this.#keys = keys;
    this.#clock = clock;
    this.#logger = logger;
    this.#jose = jose;
  }

  /** Tokens whose signatures need not be checked again. */
  get cachedTokens(): number {
    return this.#cache.size;
  }

  /** Takes other keys. A token of a key that is gone is refused from the next call on. */
  useKeys(keys: JwtKeys): void {
    this.#keys = keys;
    this.#cache.clear();
    // What runs with the keys from before must not be kept, nor be shared with a call to come.
    this.#running.clear();
  }

  /**
   * A token for a user who has shown a password.
   * @param revision of the auth store
   * @throws VerifyOnlyError where there is no private key
   */
  async assign(user: string, revision: number): Promise<string> {
    const { signing } = this.#keys;
    if (signing === undefined) throw new VerifyOnlyError();
    const { SignJWT } = this.#jose;
    return new SignJWT({ username: user, revision })
      .setProtectedHeader({ alg: signing.algorithm, typ: "JWT" })
      .setExpirationTime(Math.floor((this.#clock.wallMs() + this.#settings.ttlMs) / 1000))
      .sign(signing.key);
  }

  /** The identity of a token whose signature was checked before; undefined: use `verify`. */
  cached(token: string): JwtIdentity | undefined {
    return this.#cache.get(token, this.#clock.wallMs());
  }

  /**
   * The identity that a token proves; undefined for a token that is not accepted. Calls with one
   * token share a check.
   * @throws EtcdError TooManyRequests at MAX_RUNNING_VERIFICATIONS
   */
  verify(token: string): Promise<JwtIdentity | undefined> {
    const known = this.cached(token);
    if (known !== undefined) return Promise.resolve(known);
    const running = this.#running.get(token);
    if (running !== undefined) return running;
    if (token.length > MAX_TOKEN_BYTES) return Promise.resolve(this.#refuse("it is too long"));
    // One token has one text: decoders overlook what else may be in it.
    if (!COMPACT.test(token)) return Promise.resolve(this.#refuse("it is no signed token"));
    if (this.#running.size >= MAX_RUNNING_VERIFICATIONS)
      return Promise.reject(errorOf("TooManyRequests"));
    const check = this.#verify(token).finally(() => {
      if (this.#running.get(token) === check) this.#running.delete(token);
    });
    this.#running.set(token, check);
    return check;
  }

  async #verify(token: string): Promise<JwtIdentity | undefined> {
    const keys = this.#keys;
    this.verifications++;
    try {
      const { alg, kid } = this.#jose.decodeProtectedHeader(token);
      const [payload, key] = await this.#checkSignature(token, candidates(keys, alg, kid));
      const identity = identityOf(payload, key, this.#settings);
      if (typeof identity === "string") return this.#refuse(identity);
      if (keys === this.#keys) this.#cache.set(token, identity);
      return identity;
    } catch (error) {
      return this.#refuse((error as Error).message);
    }
  }

  /** Throws for a token that no key accepts. */
  async #checkSignature(
    token: string,
    fit: readonly VerificationKey[],
  ): Promise<readonly [JWTPayload, VerificationKey]> {
    const { errors, jwtVerify } = this.#jose;
    const { audience, issuer, clockSkewMs } = this.#settings;
    const own: JWTVerifyOptions = {
      currentDate: new Date(this.#clock.wallMs()),
      clockTolerance: clockSkewMs / 1000,
    };
    const foreign: JWTVerifyOptions = {
      ...own,
      requiredClaims: ["exp"],
      ...(audience === "" ? {} : { audience }),
      ...(issuer === "" ? {} : { issuer }),
    };
    for (const key of fit) {
      try {
        const options = { ...(key.isForeign ? foreign : own), algorithms: [...key.algorithms] };
        const { payload } = await jwtVerify(token, key.key, options);
        return [payload, key];
      } catch (error) {
        // Another key may be the right one; of a claim that is wrong the signature was right.
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
      }
    }
    throw new Error("no key fits its signature");
  }

  /** Says why, at most once in a while; never the token. */
  #refuse(reason: string): undefined {
    this.refusals++;
    const omitted = this.#warnings.pass(this.#clock.monotonicMs());
    if (omitted === undefined) return;
    const others = omitted === 0 ? {} : { "refused-since-last-warning": omitted };
    this.#logger.warn("a token was refused", { reason, ...others });
  }
}

/** The identity in the claims of a token, or what is wrong with them. */
function identityOf(
  payload: JWTPayload,
  { isForeign }: VerificationKey,
  { userClaim, rolesClaim, clockSkewMs }: JwtSettings,
): JwtIdentity | string {
  const claim = isForeign ? userClaim : ETCD_CLAIMS.userClaim;
  const user = payload[claim];
  if (typeof user !== "string" || user === "" || user.length > MAX_NAME_LENGTH)
    return `its claim ${claim} names no user`;
  const endsMs = payload.exp === undefined ? undefined : payload.exp * 1000 + clockSkewMs;
  if (!isForeign) {
    const { revision } = payload;
    if (typeof revision !== "number" || !Number.isSafeInteger(revision))
      return "its claim revision is no number";
    return { user, revision, roles: undefined, endsMs };
  }
  const roles = rolesClaim === "" ? undefined : rolesOf(payload[rolesClaim]);
  if (typeof roles === "string") return roles;
  return { user, revision: undefined, roles, endsMs };
}

/** Roles in a list, or in a text with blanks between them; no claim is no role. */
function rolesOf(claim: unknown): readonly string[] | string {
  const list = typeof claim === "string" ? claim.split(" ") : (claim ?? []);
  if (!Array.isArray(list)) return "its roles are neither a list nor a text";
  const names = new Set<unknown>(list);
  names.delete("");
  if (names.size > MAX_TOKEN_ROLES) return "it lists too many roles";
  for (const name of names) {
    if (typeof name !== "string" || name.length > MAX_TOKEN_ROLE_LENGTH)
      return "it lists what is no role";
  }
  return ([...names] as string[]).sort(compareNames);
}
