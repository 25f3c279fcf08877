/**
 * Endpoints as etcd's clients write them: "host:port", "http://host:port", "https://host:port",
 * "unix:/path", "unixs:/path".
 */

export interface Endpoint {
  /** As it was written; what messages and the printed tables show. */
  readonly text: string;
  /** True for TLS. */
  readonly secure: boolean;
  /** "host:port", or the path of a socket after "unix:". */
  readonly address: string;
}

/**
 * Reads an endpoint. Without a scheme it is secure if `hasTls`; the schemes say it themselves, as
 * in etcd's client. Throws RangeError for a text that names no host or path, or a port that is
 * none.
 */
export function parseEndpoint(text: string, hasTls: boolean): Endpoint {
  const trimmed = text.trim();
  const unix = /^(unixs?):(?:\/\/)?(.+)$/s.exec(trimmed);
  if (unix !== null)
    return { text: trimmed, secure: unix[1] === "unixs", address: `unix:${unix[2]}` };
  const shape = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):\/\/)?([^/?#]*)/s.exec(trimmed)!;
  const scheme = shape[1]?.toLowerCase();
  const address = shape[2];
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
