/**
 * Passwords that were shown a short time ago, so that a program that logs in again and again, or a
 * thousand of one user that come back together, cost one hash a minute and not one each. What is
 * kept is no password: a keyed hash of it and of the user's stored hash. Another password of the
 * user has another stored hash, and does not meet what was kept.
 */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import type { Clock } from "@quorate/host";
import { concat, fromUtf8, toLatin1 } from "@quorate/proto";

/** Passwords that are kept; beyond, the one that was checked longest ago is forgotten. */
export const MAX_SHOWN_PASSWORDS = 1024;
/** A password is checked by its hash again so long after it was checked so last. */
export const SHOWN_PASSWORD_MS = 60_000;
const KEY_BYTES = 32;

export interface ShownPasswordDeps {
  readonly clock: Clock;
  /** Bytes from a source that is fit for secrets. */
  readonly randomBytes: (length: number) => Uint8Array;
}

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
    const id = this.#idOf(password, hash);
    this.#checkedMs.delete(id);
    this.#checkedMs.set(id, this.#deps.clock.monotonicMs());
    if (this.#checkedMs.size <= MAX_SHOWN_PASSWORDS) return;
    for (const oldest of this.#checkedMs.keys()) {
      this.#checkedMs.delete(oldest);
      break;
    }
  }

  #idOf(password: string, hash: Uint8Array): string {
    this.#key ??= this.#deps.randomBytes(KEY_BYTES);
    // The inner one has a fixed length, so that no two pairs give the same bytes.
    const text = concat([sha256(hash), fromUtf8(password)]);
    return toLatin1(hmac(sha256, this.#key, text));
  }
}
