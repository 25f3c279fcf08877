/**
 * What grpc-js says of a call that failed, in words for people: it wraps what the system said in
 * what it was doing itself, down to the time of day. Whoever shows a failure names the endpoint, so
 * these do not. A server's own text passes unchanged: tools look for it.
 */

/** The reasons of this client's own; the others are the system's, TLS's or the server's. */
const REASONS: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/^(?:connect )?ECONNREFUSED\b.*$/, "connection refused"],
  [/^connect ENOENT (.*)$/, "no socket at $1"],
  [/^connect EACCES (.*)$/, "no permission to connect to $1"],
  [/^(?:connect )?(?:EHOSTUNREACH|ENETUNREACH)\b.*$/, "no way to that address"],
  [/^(?:connect )?ETIMEDOUT\b.*$/, "nobody answers at that address"],
  [
    /^(?:(?:read|write) )?(?:ECONNRESET|EPIPE)\b.*$|^Connection dropped$|^Failed to connect$/,
    "the connection was closed",
  ],
  [
    /^Client network socket disconnected before secure TLS connection was established$/,
    "the connection was closed during the TLS handshake",
  ],
  // OpenSSL's: a number of its own, the library, the function, the reason, a file of its sources.
  [
    /^[\dA-F]+:error:[\dA-F]+:SSL routines:[^:]*:(tlsv1\w* alert certificate required):.*$/s,
    "the member wants a client certificate ($1)",
  ],
  [
    /^[\dA-F]+:error:[\dA-F]+:SSL routines:[^:]*:(\w+ alert (?:(?:bad|unsupported) certificate|unknown ca|certificate \w+)):.*$/s,
    "the member does not take this client's certificate ($1)",
  ],
  [
    /^[\dA-F]+:error:[\dA-F]+:SSL routines:[^:]*:(wrong version number|packet length too long|http request):.*$/s,
    "what answers there does not speak TLS ($1)",
  ],
  [/^[\dA-F]+:error:[\dA-F]+:SSL routines:[^:]*:([^:]+):.*$/s, "the TLS handshake failed ($1)"],
  [/^Protocol error$/, "what answers there does not speak gRPC"],
  [/^Received HTTP status code (\d+)$/, "what answers there does not speak gRPC (HTTP status $1)"],
  [/^Received RST_STREAM with code (\d+).*$/, "the stream was broken off (HTTP/2 code $1)"],
  [/^Name resolution failed for target \w+:(?:\/\/\/?)?(.*)$/, "the name $1 cannot be resolved"],
  [/^Deadline exceeded\b.*$/, "no answer in time"],
];

/**
 * Whether a call's failure says that it found no connection to leave on. @param details grpc-js's
 * own words
 */
export function neverLeft(details: string): boolean {
  return /^(?:No connection established|Name resolution failed|Failed to connect)/.test(details);
}

/**
 * Why a call failed. @param details grpc-js's words or the server's @param requestBytes the size of
 * what was sent, 0 for a stream
 */
export function reasonOf(details: string, requestBytes: number): string {
  // Go's words for a message beyond a bound, which tools look for.
  const [, sendLimit] =
    /^Attempted to send message with a size larger than (\d+)$/.exec(details) ?? [];
  if (sendLimit !== undefined)
    return `trying to send message larger than max (${requestBytes} vs. ${sendLimit})`;
  const [, received, receiveLimit] =
    /^Received message larger than max \((\d+) vs (\d+)\)$/.exec(details) ?? [];
  if (received !== undefined)
    return `grpc: received message larger than max (${received} vs. ${receiveLimit})`;
  const wrapped =
    /^No connection established(?:\. Last error: (?:Error: )?(.*?)\. Resolution note: .*)?$/s.exec(
      details,
    );
  const said = (wrapped === null ? details : (wrapped[1] ?? "")).replace(
    / \(\d{4}-\d\d-\d\dT[\d:.]+Z\)$/,
    "",
  );
  // It tries again already and has no error of this attempt yet.
  if (wrapped !== null && (said === "" || said === "null")) return "no connection";
  for (const [pattern, text] of REASONS) if (pattern.test(said)) return said.replace(pattern, text);
  return said;
}
