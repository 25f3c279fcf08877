/**
 * Rewrites the texts of failed connections, which are Node's, OpenSSL's and the engine's, for
 * operators. The texts do not name the endpoint: the printed error already does. A server's own
 * text passes unchanged, because tools match it.
 */
import { defined } from "@quorate/proto";

/** Patterns with the text that replaces each. */
const REASONS: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/^(?:connect )?ECONNREFUSED\b.*$/, "connection refused"],
  [/^connect ENOENT (.*)$/, "no socket at $1"],
  [/^connect EACCES (.*)$/, "no permission to connect to $1"],
  [/^(?:connect )?(?:EHOSTUNREACH|ENETUNREACH)\b.*$/, "no route to that address"],
  [/^(?:connect )?ETIMEDOUT\b.*$/, "connection timed out at that address"],
  [/^getaddrinfo (?:ENOTFOUND|EAI_AGAIN) (.*)$/, "the name $1 cannot be resolved"],
  [/^(?:(?:read|write) )?(?:ECONNRESET|EPIPE)\b.*$/, "the connection was closed"],
  [/^error reading from server\b.*$/, "the connection was closed"],
  [
    /^Client network socket disconnected before secure TLS connection was established$/,
    "the connection was closed during the TLS handshake",
  ],
  [
    /^(?:protocol error|received a response of unexpected content-type .*)$/,
    "the server there does not speak gRPC",
  ],
  [
    /^unexpected HTTP status code received from server: (.*)$/,
    "the server there does not speak gRPC (HTTP status $1)",
  ],
  [
    /^stream terminated by RST_STREAM with error code: (\w+)$/,
    "the server reset the stream (HTTP/2 code $1)",
  ],
];

/** OpenSSL's reasons, with the text that comes before each. */
const TLS_REASONS: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/^tlsv1\w* alert certificate required$/, "the member requires a client certificate"],
  [
    /^\w+ alert (?:(?:bad|unsupported) certificate|unknown ca|certificate \w+)$/,
    "the member refused this client's certificate",
  ],
  [
    /^(?:wrong version number|packet length too long|http request)$/,
    "the server there does not speak TLS",
  ],
  [/^/, "the TLS handshake failed"],
];

/** Node's codes for a certificate that it does not accept. */
const UNTRUSTED_CODE =
  /^(?:CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|HOSTNAME_MISMATCH|ERR_TLS_CERT_ALTNAME_)/;
/** What reasonOf makes of a server's refusal. */
const REFUSED_BY_MEMBER =
  /^the member (?:requires a client certificate|refused this client's cert)/;

/**
 * Whether a connection failed because one end does not accept the other's certificate.
 * @param code of Node's error
 * @param reason what reasonOf returns
 */
export function isUntrusted(code: string | undefined, reason: string): boolean {
  return (code !== undefined && UNTRUSTED_CODE.test(code)) || REFUSED_BY_MEMBER.test(reason);
}

/** Why a call failed. @param text of the error, or the server's own */
export function reasonOf(text: string): string {
  // OpenSSL: thread, "error", number, library, function, reason, source file.
  const [thread = "", error, , library, , reason = "", file] = text.split(":", 7);
  if (/^[\dA-F]+$/.test(thread) && error === "error" && library === "SSL routines" && file) {
    const [, words] = defined(
      TLS_REASONS.find(([pattern]) => pattern.test(reason)),
      "the reason",
    );
    return `${words} (${reason})`;
  }
  for (const [pattern, words] of REASONS)
    if (pattern.test(text)) return text.replace(pattern, words);
  return text;
}
