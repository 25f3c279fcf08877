/**
 * The keys that signatures are checked with. Each key is bound to its algorithms: the algorithm in
 * a token's header chooses among the keys that are bound to it and never says how a key is used
 * (RFC 8725, 3.1), so a public key is never taken for a shared secret.
 */
import type { KeyInput } from "jose";
import type { JwtAlgorithm } from "./algorithms.ts";

/** Keys that a set may have. Each token without a key id is tried with all that fit it. */
export const MAX_VERIFICATION_KEYS = 32;

/** A key with its uses. */
export interface VerificationKey {
  /** The id that tokens name it by; undefined for a key of a PEM file, which any token may mean. */
  readonly id: string | undefined;
  readonly algorithms: ReadonlySet<JwtAlgorithm>;
  readonly key: KeyInput;
  /**
   * True for a key of an identity provider: the rules of claims hold for its tokens, which must end
   * and need no auth revision. Tokens of other keys have etcd's claims.
   */
  readonly isForeign: boolean;
}

/** The key that own tokens are signed with. */
export interface SigningKey {
  readonly algorithm: JwtAlgorithm;
  readonly key: KeyInput;
}

/** All keys of one moment; replaced as a whole when files change. */
export interface JwtKeys {
  /** At most MAX_VERIFICATION_KEYS. */
  readonly verification: readonly VerificationKey[];
  /** Undefined where there are public keys alone: then no user can log in with a password. */
  readonly signing: SigningKey | undefined;
}

/** The keys that a token with this header may be signed with. */
export function candidates(
  { verification }: JwtKeys,
  algorithm: string | undefined,
  keyId: string | undefined,
): readonly VerificationKey[] {
  const fit = verification.filter(({ algorithms }) => algorithms.has(algorithm as JwtAlgorithm));
  if (keyId === undefined) return fit;
  const named = fit.filter(({ id }) => id === keyId);
  return named.length > 0 ? named : fit.filter(({ id }) => id === undefined);
}
