/**
 * Passwords as etcd stores them: bcrypt hashes, "$2a$" and the cost. A hash takes some 100 ms of a
 * processor, so hashes are made elsewhere than on the event loop, a few at once, and clients take
 * turns.
 *
 *     UserAdd, ChangePassword   -> hash    -> the entry has the hash alone
 *     Authenticate              -> verify  -> equally long for a user that does not exist
 *                                          -> at once for a password that was shown just now
 */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { type Clock, setNewest } from "@quorate/host";
import { concat, errorOf, fromUtf8, GrpcCode, toLatin1, utf8Length } from "@quorate/proto";
import { StatusError } from "@quorate/rpc";
import { FairLimiter } from "../reads/fair-limiter.ts";

/** Computes hashes off the event loop. */
export interface PasswordHasher {
  /** The bcrypt hash of a password of at most 72 bytes. @param cost from 4 to 31 */
  hash(password: string, cost: number): Promise<string>;
  /** Whether a password is that of a hash; false for a hash that is none. */
  verify(password: string, hash: string): Promise<boolean>;
  close(): void;
}

/** Longer passwords are refused, as bcrypt looks at so many bytes (golang.org/x/crypto/bcrypt). */
export const MAX_PASSWORD_BYTES = 72;
/** Hashes that are computed at once; the hasher has as many threads or fewer. */
export const MAX_RUNNING_HASHES = 4;
/** Requests that wait for a hash, of all clients and of one; one more is refused. */
export const MAX_WAITING_HASHES = 4096;
export const MAX_WAITING_HASHES_OF_ONE_CLIENT = 2048;

/** The party for which a hash is computed. */
export interface HashCaller {
  readonly client: string;
  readonly cancelled: boolean;
}

export interface PasswordDeps extends ShownPasswordDeps {
  readonly hasher: PasswordHasher;
  /** Hashes that the hasher computes at once. */
  readonly threads: number;
}

export class Passwords {
  readonly #hasher: PasswordHasher;
  readonly #cost: number;
  readonly #limiter: FairLimiter;
  readonly #shown: ShownPasswords;

  /** @param cost of the hashes that are made */
  constructor(deps: PasswordDeps, cost: number) {
    this.#hasher = deps.hasher;
    this.#cost = cost;
    this.#shown = new ShownPasswords(deps);
    const maxRunning = Math.min(deps.threads, MAX_RUNNING_HASHES);
    this.#limiter = new FairLimiter({
      maxRunning,
      maxRunningPerClient: maxRunning,
      maxWaiting: MAX_WAITING_HASHES,
      maxWaitingPerClient: MAX_WAITING_HASHES_OF_ONE_CLIENT,
    });
  }

  /** Requests that wait for their turn. */
  get waiting(): number {
    return this.#limiter.waiting;
  }

  /**
   * The hash of a password.
   * @throws EtcdError TooManyRequests, Canceled; StatusError for a password that is too long
   */
  hash(password: string, caller: HashCaller): Promise<string> {
    const length = utf8Length(password);
    if (length > MAX_PASSWORD_BYTES) {
      // Go's text; etcd passes it on as it is.
      const text = `bcrypt: password length exceeds ${MAX_PASSWORD_BYTES} bytes`;
      return Promise.reject(new StatusError(GrpcCode.Unknown, text));
    }
    return this.#turn(caller, () => this.#hasher.hash(password, this.#cost));
  }

  /**
   * Whether a password is right. One that was right a short time ago costs no hash.
   * @param hash of the user; undefined: there is none, which takes as long and is false
   * @param like a hash of another user, whose cost counts where there is none
   * @throws EtcdError TooManyRequests, Canceled
   */
  verify(
    password: string,
    hash: Uint8Array | undefined,
    caller: HashCaller,
    like?: Uint8Array,
  ): Promise<boolean> {
    if (hash !== undefined && this.#shown.has(password, hash)) return Promise.resolve(true);
    return this.#turn(caller, async () => {
      const wanted = hash === undefined ? this.#decoy(like) : textOf(hash);
      const isRight = await this.#hasher.verify(password, wanted);
      if (!isRight || hash === undefined) return false;
      this.#shown.note(password, hash);
      return true;
    });
  }

  /** A hash that is none of a password, of the cost that users' hashes have. */
  #decoy(like: Uint8Array | undefined): string {
    const found = like === undefined ? undefined : /^\$2.?\$(\d\d)\$/.exec(textOf(like))?.[1];
    const cost = found ?? String(this.#cost).padStart(2, "0");
    return `$2a$${cost}$${DECOY}`;
  }

  /** Runs `work` when it is the client's turn. */
  #turn<T>(caller: HashCaller, work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let leave: (() => void) | undefined;
      let isDone = false;
      const run = async () => {
        try {
          if (caller.cancelled) throw errorOf("Canceled");
          resolve(await work());
        } catch (error) {
          reject(error as Error);
        } finally {
          isDone = true;
          leave?.();
        }
      };
      leave = this.#limiter.join(caller.client, () => void run());
      if (leave === undefined) reject(errorOf("TooManyRequests"));
      else if (isDone) leave();
    });
  }

  close(): void {
    this.#hasher.close();
  }
}

/** Salt and hash of no password: bcrypt computes the hash of a salt before it compares. */
const DECOY = ".".repeat(22) + ".".repeat(31);

function textOf(hash: Uint8Array): string {
  return String.fromCharCode(...hash);
}

/** Passwords that are kept; beyond, the one that was checked longest ago is forgotten. */
export const MAX_SHOWN_PASSWORDS = 1024;
/** A password is checked by its hash again so long after it was checked so last. */
export const SHOWN_PASSWORD_MS = 60_000;
const KEY_BYTES = 32;

interface ShownPasswordDeps {
  readonly clock: Clock;
  /** Bytes from a source that is fit for secrets. */
  readonly randomBytes: (length: number) => Uint8Array;
}

/**
 * Passwords that were shown a short time ago, so that a program that logs in again and again, or a
 * thousand of one user that come back together, cost one hash a minute and not one each. What is
 * kept is no password: a keyed hash of it and of the user's stored hash. Another password of the
 * user has another stored hash, and does not meet what was kept.
 */
export class ShownPasswords {
  readonly #deps: ShownPasswordDeps;
  /** When each was checked, oldest first. */
  readonly #checkedMs = new Map<string, number>();
  /** Drawn with the first password: a member without users needs none. */
  #key: Uint8Array | undefined;

  constructor(deps: ShownPasswordDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#checkedMs.size;
  }

  /** Whether `password` was found to be that of the stored `hash` a short time ago. */
  has(password: string, hash: Uint8Array): boolean {
    if (this.#checkedMs.size === 0) return false;
    const id = this.#idOf(password, hash);
    const checkedMs = this.#checkedMs.get(id);
    if (checkedMs === undefined) return false;
    if (this.#deps.clock.monotonicMs() - checkedMs < SHOWN_PASSWORD_MS) return true;
    this.#checkedMs.delete(id);
    return false;
  }

  /** `password` was found to be that of the stored `hash`. */
  note(password: string, hash: Uint8Array): void {
    const nowMs = this.#deps.clock.monotonicMs();
    setNewest(this.#checkedMs, this.#idOf(password, hash), nowMs, MAX_SHOWN_PASSWORDS);
  }

  #idOf(password: string, hash: Uint8Array): string {
    this.#key ??= this.#deps.randomBytes(KEY_BYTES);
    // The inner one has a fixed length, so that no two pairs give the same bytes.
    const text = concat([sha256(hash), fromUtf8(password)]);
    return toLatin1(hmac(sha256, this.#key, text));
  }
}
