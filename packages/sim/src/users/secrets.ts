/**
 * What users' secrets need, cheaply: hashes that take simulated time and no processor, and in some
 * runs tokens that are signed, as JSON Web Tokens are: every member accepts them, after restarts
 * too, and they name the auth revision of their making.
 */
import type { Random } from "@quorate/host";
import type { MemberDeps } from "@quorate/member";
import { crc32c, fromUtf8 } from "@quorate/proto";
import type { Process, Scheduler } from "../base/scheduler.ts";

/** A hash takes up to so long. */
const MAX_HASH_MS = 20;
const HASH_THREADS = 2;
const KEY = "the key of all members";

function digest(text: string): string {
  return crc32c(0, fromUtf8(text)).toString(16);
}

/** The hash of a password. @param salt of letters and figures */
export function simHash(password: string, salt: string): string {
  return `$sim$${salt}$${digest(`${salt}/${password}`)}`;
}

/** Whether a password is that of a hash. */
export function isPasswordOf(password: string, hash: string): boolean {
  return simHash(password, hash.split("$")[2] ?? "") === hash;
}

/**
 * A signed token. @param endsMs in the world's milliseconds. @param roles those that stand in place
 * of a user's, of an identity provider's token
 */
export function signedToken(
  user: string,
  revision: number,
  endsMs: number,
  roles?: readonly string[],
): string {
  const claims = `${user}/${revision}/${Math.floor(endsMs)}/${roles?.join("+") ?? "-"}`;
  return `${claims}/${digest(`${claims}/${KEY}`)}`;
}

/** What a signed token says, whatever its time; undefined for one that was not signed so. */
export function readSigned(token: string): SignedClaims | undefined {
  const [user, revision, endsMs, list] = token.split("/");
  const roles = list === undefined || list === "-" ? undefined : list.split("+").filter(Boolean);
  if (signedToken(user, Number(revision), Number(endsMs), roles) !== token) return undefined;
  return { user, revision: Number(revision), endsMs: Number(endsMs), roles };
}

/** What a signed token says. */
export interface SignedClaims {
  readonly user: string;
  readonly revision: number;
  readonly endsMs: number;
  readonly roles: readonly string[] | undefined;
}

type Secrets = NonNullable<MemberDeps["secrets"]>;

export interface SimSecretsOptions {
  readonly signedTokens: boolean;
  readonly tokenTtlSeconds: number;
}

/** Those of one process of a member. */
export function simSecrets(
  options: SimSecretsOptions,
  deps: { readonly random: Random; readonly scheduler: Scheduler; readonly process: Process },
): Secrets {
  const { random, scheduler, process } = deps;
  const work = <T>(result: () => T): Promise<T> =>
    scheduler.delay(random.unit() * MAX_HASH_MS, process).then(result);
  /** Tokens whose signature was checked. */
  const known = new Set<string>();
  const signed: Secrets["tokens"] = {
    // Found out later the first time, as where a signature has to be checked.
    prepare: (token) => void work(() => known.add(token)),
    recognise(token) {
      const claims = readSigned(token);
      const found =
        claims === undefined || scheduler.nowMs >= claims.endsMs
          ? undefined
          : claims.roles === undefined
            ? { user: claims.user, authRevision: claims.revision }
            : { user: claims.user, roles: claims.roles };
      if (known.has(token)) return found;
      return work(() => {
        if (found !== undefined) known.add(token);
        return found;
      });
    },
    prefix: () => "",
    issue: (user, revision) =>
      signedToken(user, revision, scheduler.nowMs + options.tokenTtlSeconds * 1000),
    assigned: () => {},
    invalidated: () => {},
    disabled: () => {},
    size: 0,
  };
  return {
    randomBytes: (length) => Uint8Array.from({ length }, () => random.below(256)),
    threads: HASH_THREADS,
    hasher: {
      hash: (password) => work(() => simHash(password, random.uint32().toString(36))),
      verify: (password, hash) => work(() => isPasswordOf(password, hash)),
      close: () => {},
    },
    tokens: options.signedTokens ? signed : undefined,
  };
}
