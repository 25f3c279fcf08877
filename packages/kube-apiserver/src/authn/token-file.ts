/**
 * Static tokens of --token-auth-file (apiserver: pkg/authentication/token/tokenfile). CSV (RFC
 * 4180), a line for each token:
 *
 *     token,user,uid,"group1,group2"
 *
 * Tokens are found by their SHA-256, so the time of a look-up says nothing about them.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import type { UserInfo } from "@quorate/kube-storage";
import { CodedError, fromUtf8, toHex } from "@quorate/proto";
import { parseCsv } from "./csv.ts";
import type { TokenAuthenticator } from "./token-authenticator.ts";

/** A file with more tokens is refused. */
export const MAX_STATIC_TOKENS = 100_000;

/** A token file that cannot be used. */
export class TokenFileError extends CodedError<"TokenFile"> {
  constructor(message: string) {
    super("TokenFileError", "TokenFile", message);
  }
}

/**
 * Reads a token file.
 * @param path for messages
 * @param warn called for lines that are skipped or replaced
 * @throws TokenFileError
 */
export function parseTokenFile(
  text: string,
  path: string,
  warn: (message: string) => void,
): ReadonlyMap<string, UserInfo> {
  const users = new Map<string, UserInfo>();
  let record = 0;
  for (const fields of csvOf(text, path)) {
    if (fields.length < 3) {
      throw new TokenFileError(
        `token file '${path}' must have at least 3 columns (token, user name, user uid), ` +
          `found ${fields.length}`,
      );
    }
    record++;
    const [token, name, uid, groups] = fields;
    if (token === "") {
      warn(`empty token has been found in token file '${path}', record number '${record}'`);
      continue;
    }
    const key = hashOf(token);
    if (users.has(key)) {
      warn(`duplicate token has been found in token file '${path}', record number '${record}'`);
    }
    users.set(key, { name, uid, groups: groups === undefined ? [] : groups.split(","), extra: {} });
    if (users.size > MAX_STATIC_TOKENS) {
      throw new TokenFileError(`token file '${path}' has more than ${MAX_STATIC_TOKENS} tokens`);
    }
  }
  return users;
}

function csvOf(text: string, path: string): readonly (readonly string[])[] {
  const parsed = parseCsv(text);
  if (typeof parsed === "string") throw new TokenFileError(`token file '${path}': ${parsed}`);
  return parsed;
}

/** Accepts the tokens of a file. They are good for every audience of the server. */
export function staticTokens(users: ReadonlyMap<string, UserInfo>): TokenAuthenticator {
  return {
    async authenticateToken(token, audiences) {
      const user = users.get(hashOf(token));
      return user === undefined ? undefined : { user, audiences };
    },
  };
}

function hashOf(token: string): string {
  return toHex(sha256(fromUtf8(token)));
}
