/** Addresses "host:port", as Go's net.SplitHostPort and net.JoinHostPort have them. */

/** The parts of "host:port"; undefined if it is none. An IPv6 address needs brackets. */
export function splitHostPort(
  text: string,
): { readonly host: string; readonly port: number } | undefined {
  const shape = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  if (shape === null) return undefined;
  const port = Number(shape[3]);
  if (port > 65_535) return undefined;
  return { host: shape[1] ?? shape[2] ?? "", port };
}

/** "host:port" with brackets around an IPv6 address. */
export function joinHostPort(host: string, port: number | undefined): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The host of a socket's address, without brackets; a text without a colon as it is. */
export function hostOfAddress(address: string): string {
  const colon = address.lastIndexOf(":");
  const isBracketed = address[0] === "[" && address[colon - 1] === "]";
  if (isBracketed) return address.slice(1, colon - 1);
  return colon === -1 ? address : address.slice(0, colon);
}
