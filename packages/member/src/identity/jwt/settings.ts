/**
 * The value of --auth-token as etcd reads it (server/auth/store.go, options.go):
 *
 *     simple
 *     jwt,pub-key=FILE,priv-key=FILE,sign-method=RS256,ttl=10m
 *     jwt,jwks=FILE,sign-method=RS256                    keys of an identity provider, ours
 */
import { parseDurationMs, ValueError } from "../../config/values.ts";
import { type JwtAlgorithm, jwtAlgorithm, keyFamily } from "./algorithms.ts";

/** etcd's DefaultTTL. */
export const DEFAULT_JWT_TTL_MS = 300_000;
/** The clock of an identity provider may differ by as much at most. */
export const MAX_CLOCK_SKEW_MS = 300_000;

/** Files and algorithm of tokens. */
export interface JwtFiles {
  readonly algorithm: JwtAlgorithm;
  /** Empty for none. A file of public keys may hold several PEM blocks. */
  readonly publicKeyFile: string;
  readonly privateKeyFile: string;
  /** A JSON Web Key Set (RFC 7517). */
  readonly jwksFile: string;
  readonly ttlMs: number;
}

/** What the claims of a token have to be. */
export interface JwtClaimRules {
  /** The claim that names the user; etcd's is "username". */
  readonly userClaim: string;
  /** The claim that lists roles; empty: roles are those that the user has in the store. */
  readonly rolesClaim: string;
  /** Values of the claims "aud" and "iss"; empty: any. */
  readonly audience: string;
  readonly issuer: string;
  /** From 0 to MAX_CLOCK_SKEW_MS. */
  readonly clockSkewMs: number;
}

/** etcd's claims. */
export const ETCD_CLAIMS: JwtClaimRules = {
  userClaim: "username",
  rolesClaim: "",
  audience: "",
  issuer: "",
  clockSkewMs: 0,
};

/** Whether public keys of a file are an identity provider's, by the settings of claims. */
export function expectsProvider(rules: JwtClaimRules): boolean {
  const { userClaim, rolesClaim, audience, issuer } = rules;
  return (
    userClaim !== ETCD_CLAIMS.userClaim || rolesClaim !== "" || audience !== "" || issuer !== ""
  );
}

export interface JwtSettings extends JwtFiles, JwtClaimRules {}

/** What users' tokens are. */
export type AuthTokenKind =
  | { readonly kind: "simple" }
  | { readonly kind: "jwt"; readonly files: JwtFiles; readonly unknown: readonly string[] };

const KNOWN = new Set(["pub-key", "priv-key", "sign-method", "ttl", "jwks"]);

/** Reads --auth-token. Throws ValueError. @returns unknown sub-options by name, to be warned of */
export function parseAuthToken(text: string): AuthTokenKind {
  const [kind, ...parts] = text.split(",");
  const options = subOptions(parts);
  if (kind === "simple" || kind === "") return { kind: "simple" };
  if (kind !== "jwt")
    throw new ValueError(`unknown type of token ${JSON.stringify(kind)} (simple or jwt)`);
  const algorithm = jwtAlgorithm(options.get("sign-method") ?? "");
  if (algorithm === undefined)
    throw new ValueError("jwt needs sign-method=NAME (RS256, PS256, ES256, HS256, EdDSA, ...)");
  const files = {
    algorithm,
    publicKeyFile: options.get("pub-key") ?? "",
    privateKeyFile: options.get("priv-key") ?? "",
    jwksFile: options.get("jwks") ?? "",
    ttlMs: ttlOf(options.get("ttl") ?? ""),
  };
  checkKeys(files);
  return { kind: "jwt", files, unknown: [...options.keys()].filter((one) => !KNOWN.has(one)) };
}

function subOptions(parts: readonly string[]): Map<string, string> {
  const options = new Map<string, string>();
  for (const part of parts) {
    const [name, value, more] = part.split("=");
    if (name === undefined || value === undefined || more !== undefined)
      throw new ValueError(`cannot read ${JSON.stringify(part)} (expected name=value)`);
    if (options.has(name)) throw new ValueError(`${name} is given twice`);
    options.set(name, value);
  }
  return options;
}

function ttlOf(text: string): number {
  if (text === "") return DEFAULT_JWT_TTL_MS;
  const ttlMs = parseDurationMs(text);
  if (ttlMs <= 0) throw new ValueError("ttl must be more than 0");
  return ttlMs;
}

function checkKeys({ algorithm, publicKeyFile, privateKeyFile, jwksFile }: JwtFiles): void {
  if (keyFamily(algorithm) !== "secret") {
    if (publicKeyFile === "" && privateKeyFile === "" && jwksFile === "")
      throw new ValueError("jwt needs pub-key=FILE, priv-key=FILE or jwks=FILE");
    return;
  }
  if (privateKeyFile === "")
    throw new ValueError(`jwt with ${algorithm} needs priv-key=FILE, the shared secret`);
  // A set of public keys beside a secret invites the confusion of one for the other.
  if (jwksFile !== "") throw new ValueError(`jwks does not go with ${algorithm}`);
}
