/**
 * Rewrites the error texts of grpc-js, which wrap the system's reason in internal state and
 * timestamps, for operators. The texts do not name the endpoint: the printed error already does. A
 * server's own text passes unchanged, because tools match it.
 */

/** Patterns of grpc-js, Node and OpenSSL, with the text that replaces each. */
const REASONS: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/^(?:connect )?ECONNREFUSED\b.*$/, "connection refused"],
  [/^connect ENOENT (.*)$/, "no socket at $1"],
  [/^connect EACCES (.*)$/, "no permission to connect to $1"],
  [/^(?:connect )?(?:EHOSTUNREACH|ENETUNREACH)\b.*$/, "no route to that address"],
  [/^(?:connect )?ETIMEDOUT\b.*$/, "connection timed out at that address"],
  [
    /^(?:(?:read|write) )?(?:ECONNRESET|EPIPE)\b.*$|^Connection dropped$|^Failed to connect$/,
    "the connection was closed",
  ],
  [
    /^Client network socket disconnected before secure TLS connection was established$/,
    "the connection was closed during the TLS handshake",
  ],
  // OpenSSL: thread, error number, library, function, reason, source file.
  [
    /^[\dA-F]+:error:[\dA-F]+:SSL routines:[^:]*:(tlsv1\w* alert certificate required):.*$/s,
    "the member requires a client certificate ($1)",
  ],
  [
    /^[\dA-F]+:error:[\dA-F]+:SSL routines:[^:]*:(\w+ alert (?:(?:bad|unsupported) certificate|unknown ca|certificate \w+)):.*$/s,
    "the member refused this client's certificate ($1)",
  ],
  [
    /^[\dA-F]+:error:[\dA-F]+:SSL routines:[^:]*:(wrong version number|packet length too long|http request):.*$/s,
    "the server there does not speak TLS ($1)",
  ],
  [/^[\dA-F]+:error:[\dA-F]+:SSL routines:[^:]*:([^:]+):.*$/s, "the TLS handshake failed ($1)"],
  [/^Protocol error$/, "the server there does not speak gRPC"],
  [/^Received HTTP status code (\d+)$/, "the server there does not speak gRPC (HTTP status $1)"],
  [/^Received RST_STREAM with code (\d+).*$/, "the server reset the stream (HTTP/2 code $1)"],
  [/^Name resolution failed for target \w+:(?:\/\/\/?)?(.*)$/, "the name $1 cannot be resolved"],
  [/^Deadline exceeded\b.*$/, "no response in time"],
];

/**
 * Whether a call failed before it was sent: no connection was available.
 * @param details error text of grpc-js
 */
export function wasNeverSent(details: string): boolean {
  return /^(?:No connection established|Name resolution failed|Failed to connect)/.test(details);
}

/**
 * Why a call failed.
 * @param details error text of grpc-js or of the server
 * @param requestBytes size of the request, 0 for a stream
 */
export function reasonOf(details: string, requestBytes: number): string {
  // Go's texts for a message over the limit, which tools match.
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
  // grpc-js is reconnecting and has no error of this attempt yet.
  if (wrapped !== null && (said === "" || said === "null")) return "no connection";
  for (const [pattern, text] of REASONS) if (pattern.test(said)) return said.replace(pattern, text);
  return said;
}
