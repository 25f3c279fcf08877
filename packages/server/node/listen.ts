/** From a member's URLs to addresses that sockets listen on. */
import { createServer, type Server } from "node:net";
import type { TlsFiles } from "@quorate/host/node";
import type { ListenAddress } from "@quorate/rpc/node";
import { listenHost, type MemberUrl, type TlsConfig } from "../src/config/index.ts";

/** Where to listen for a URL. */
export function listenAddress(
  url: MemberUrl,
  serves: ListenAddress["serves"] = "all",
  reusePort = false,
): ListenAddress {
  const secure = url.scheme === "https" || url.scheme === "unixs";
  if (url.path !== "") return { path: url.path, secure, serves };
  return {
    host: listenHost(url),
    port: url.port,
    reusePort,
    secure,
    serves,
  };
}

/**
 * Where to listen for URLs, each place once. A place named with and without TLS takes both kinds of
 * connections, as etcd's does.
 */
export function listenAddresses(
  urls: readonly MemberUrl[],
  serves: ListenAddress["serves"],
  reusePort: boolean,
): ListenAddress[] {
  // Each URL with port 0 gets a port of its own.
  const byPlace = Map.groupBy(urls, (url) =>
    url.path === "" && url.port === 0 ? Symbol() : placeOf(url),
  );
  return [...byPlace.values()].map((same) => {
    const addresses = same.map((url) => listenAddress(url, serves, reusePort));
    return {
      ...addresses[0],
      secure: addresses.some(({ secure }) => secure),
      alsoPlain: addresses.some(({ secure }) => !secure),
    };
  });
}

/** What a URL listens on, whatever its scheme. */
function placeOf(url: MemberUrl): string {
  return JSON.stringify(listenAddress({ ...url, scheme: "http" }));
}

/** The certificates and keys that a configuration names. */
export function tlsFiles(config: TlsConfig): TlsFiles {
  return {
    certFile: config.certFile,
    keyFile: config.keyFile,
    clientCertFile: config.clientCertFile || undefined,
    clientKeyFile: config.clientKeyFile || undefined,
    trustedCaFile: config.trustedCaFile || undefined,
    crlFile: config.crlFile || undefined,
    clientCertAuth: config.requireClientCert,
    allowedCommonNames: config.allowedCommonNames,
    allowedHostnames: config.allowedHostnames,
    ciphers: config.ciphers,
    minVersion: config.minVersion,
    maxVersion: config.maxVersion,
    serverName: config.serverName || undefined,
    insecureSkipVerify: config.selfCert !== undefined,
  };
}

/**
 * Finds out whether all addresses are free, before anything is written. All are taken at once, as
 * the member does: two of its own URLs may exclude each other, such as 0.0.0.0 and 127.0.0.1 with
 * one port. Rejects with Go's words for the first that is not free. Another process may still take
 * one between this and the real listening, which then fails likewise.
 */
export async function checkFree(urls: readonly MemberUrl[], reusePort: boolean): Promise<void> {
  const taken = new Map<string, { url: MemberUrl; server: Server }>();
  try {
    for (const url of urls) {
      const { port, path } = listenAddress(url);
      if (path !== undefined || port === 0 || taken.has(placeOf(url))) continue;
      const own = [...taken.values()].find(
        (one) =>
          one.url.port === port && (ALL_ADDRESSES.has(one.url.host) || ALL_ADDRESSES.has(url.host)),
      )?.url;
      taken.set(placeOf(url), { url, server: await taking(url, reusePort, own) });
    }
  } finally {
    await Promise.all(
      [...taken.values()].map(
        ({ server }) => new Promise<void>((resolve) => server.close(() => resolve())),
      ),
    );
  }
}

/** Hosts that stand for all addresses of the machine, so that none is left for another URL. */
const ALL_ADDRESSES: ReadonlySet<string> = new Set(["", "0.0.0.0", "::"]);

/** Listens for a URL. @param own a URL of this member that excludes it; it is listened on */
function taking(url: MemberUrl, reusePort: boolean, own: MemberUrl | undefined): Promise<Server> {
  const { host, port } = listenAddress(url);
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", ({ code, message }: NodeJS.ErrnoException) => {
      const reason = (code === undefined ? undefined : GO_REASONS.get(code)) ?? message;
      const clash =
        own !== undefined && code === "EADDRINUSE"
          ? `, and this member listens on ${own.text} too`
          : "";
      reject(new Error(`listen tcp ${host}:${port}: bind: ${reason} (for ${url.text}${clash})`));
    });
    server.listen({ host, port, exclusive: true, reusePort }, () => resolve(server));
  });
}

const GO_REASONS: ReadonlyMap<string, string> = new Map([
  ["EADDRINUSE", "address already in use"],
  ["EADDRNOTAVAIL", "cannot assign requested address"],
  ["EACCES", "permission denied"],
]);
