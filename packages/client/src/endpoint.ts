/**
 * Endpoints as etcd's clients write them: "host:port", "http://host:port", "https://host:port",
 * "unix:/path", "unixs:/path".
 */

export interface Endpoint {
  /** The endpoint as written; messages and tables show this text. */
  readonly text: string;
  /** True for TLS. */
  readonly secure: boolean;
  /** "host:port", or the path of a socket after "unix:". */
  readonly address: string;
}

/**
 * Parses an endpoint. The scheme decides whether it is secure, as in etcd's client; without a
 * scheme `hasTls` does. Throws RangeError if the host or path is missing or the port is malformed.
 */
export function parseEndpoint(text: string, hasTls: boolean): Endpoint {
  const trimmed = text.trim();
  const unix = /^(unixs?):(?:\/\/)?(.+)$/s.exec(trimmed);
  if (unix !== null)
    return { text: trimmed, secure: unix[1] === "unixs", address: `unix:${unix[2]}` };
  const [, named, address = ""] =
    /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):\/\/)?([^/?#]*)/s.exec(trimmed) ?? [];
  const scheme = named?.toLowerCase();
  if (scheme !== undefined && scheme !== "http" && scheme !== "https")
    throw new RangeError(`endpoint ${JSON.stringify(trimmed)}: unknown scheme ${scheme}`);
  if (address === "") throw new RangeError(`endpoint ${JSON.stringify(trimmed)} names no host`);
  const port = /^(?:\[[^\]]*\]|[^:[]*):(.*)$/s.exec(address)?.[1];
  if (port !== undefined && port.includes(":")) {
    throw new RangeError(
      `endpoint ${JSON.stringify(trimmed)}: an IPv6 address needs brackets, as in [::1]:2379`,
    );
  }
  if (port !== undefined && (!/^\d+$/.test(port) || Number(port) > 65_535)) {
    throw new RangeError(
      `endpoint ${JSON.stringify(trimmed)}: the port must be a number of 65535 at most`,
    );
  }
  return { text: trimmed, secure: scheme === undefined ? hasTls : scheme === "https", address };
}
