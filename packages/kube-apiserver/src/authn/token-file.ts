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
    const [token = "", name = "", uid = "", groups] = fields;
    if (token === "") {
      warn(`empty token has been found in token file '${path}', record number '${record}'`);
      continue;
    }
    const key = sha256HexOf(token);
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
      const user = users.get(sha256HexOf(token));
      return user === undefined ? undefined : { user, audiences };
    },
  };
}

/** The SHA-256 of a text's UTF-8, in hexadecimal digits. */
export function sha256HexOf(text: string): string {
  return toHex(sha256(fromUtf8(text)));
}

/**
 * CSV as Go's encoding/csv reads it (RFC 4180, with empty lines skipped).
 *
 * @returns the records, or what is wrong with the text
 */
export function parseCsv(given: string): string[][] | string {
  // A carriage return at the very end belongs to no field, as in Go.
  const text = given.endsWith("\r") ? given.slice(0, -1) : given;
  const records: string[][] = [];
  let line = 1;
  let at = 0;
  while (at < text.length) {
    if (text[at] === "\n" || text.startsWith("\r\n", at)) {
      at += text[at] === "\n" ? 1 : 2;
      line++;
      continue;
    }
    const fields: string[] = [];
    for (;;) {
      const field = text[at] === '"' ? quotedField(text, at) : plainField(text, at);
      if (typeof field === "string") return `parse error on line ${line}: ${field}`;
      fields.push(field.value);
      line += field.value.split("\n").length - 1;
      at = field.end;
      if (text[at] !== ",") break;
      at++;
    }
    records.push(fields);
    if (text[at] === "\r") at++;
    if (text[at] === "\n") at++;
    line++;
  }
  return records;
}

interface Field {
  readonly value: string;
  readonly end: number;
}

function plainField(text: string, start: number): Field | string {
  let end = start;
  while (end < text.length && text[end] !== "," && text[end] !== "\n") end++;
  const stop = text[end] !== "," && text[end - 1] === "\r" && end > start ? end - 1 : end;
  const value = text.slice(start, stop);
  return value.includes('"') ? 'bare " in non-quoted field' : { value, end: stop };
}

function quotedField(text: string, start: number): Field | string {
  const parts: string[] = [];
  let at = start + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return 'extraneous or missing " in quoted field';
    parts.push(text.slice(at, quote));
    if (text[quote + 1] !== '"') {
      const end = quote + 1;
      const next = text[end];
      if (next !== undefined && next !== "," && next !== "\n" && !text.startsWith("\r\n", end)) {
        return 'extraneous or missing " in quoted field';
      }
      return { value: parts.join('"').replaceAll("\r\n", "\n"), end };
    }
    at = quote + 2;
  }
}
