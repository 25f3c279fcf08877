/** Addresses to listen on and to connect to, as Go's net.SplitHostPort reads them. */

/** The parts of "host:port"; undefined if it is none. An IPv6 address needs brackets. */
export function splitHostPort(
  text: string,
): { readonly host: string; readonly port: number } | undefined {
  const shape = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  if (shape === null) return undefined;
  const port = Number(shape[3]);
  if (port > 65_535) return undefined;
  return { host: shape[1] ?? shape[2], port };
}
