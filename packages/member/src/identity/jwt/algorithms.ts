/**
 * The signature algorithms of JSON Web Tokens (RFC 7518, RFC 8037) that --auth-token's sign-method
 * names, as in etcd. "none" is not among them.
 */

export const JWT_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "HS256",
  "HS384",
  "HS512",
  "EdDSA",
] as const;

export type JwtAlgorithm = (typeof JWT_ALGORITHMS)[number];

/** The kind of key that an algorithm takes. */
export type KeyFamily = "rsa" | "P-256" | "P-384" | "P-521" | "Ed25519" | "secret";

const families: Readonly<Record<JwtAlgorithm, KeyFamily>> = {
  RS256: "rsa",
  RS384: "rsa",
  RS512: "rsa",
  PS256: "rsa",
  PS384: "rsa",
  PS512: "rsa",
  ES256: "P-256",
  ES384: "P-384",
  ES512: "P-521",
  HS256: "secret",
  HS384: "secret",
  HS512: "secret",
  EdDSA: "Ed25519",
};

/** The algorithm of a name; undefined for a name that is none of them. */
export function jwtAlgorithm(name: string): JwtAlgorithm | undefined {
  return JWT_ALGORITHMS.find((one) => one === name);
}

/** The kind of key that an algorithm takes. */
export function keyFamily(algorithm: JwtAlgorithm): KeyFamily {
  return families[algorithm];
}

/** The algorithms that a kind of key is good for. */
export function algorithmsOf(family: KeyFamily): JwtAlgorithm[] {
  return JWT_ALGORITHMS.filter((one) => families[one] === family);
}
