/** From a member's URLs to addresses that sockets listen on. */
import { createServer } from "node:net";
import type { TlsFiles } from "@quorate/host/node";
import type { ListenAddress } from "@quorate/rpc/node";
import type { MemberUrl, TlsConfig } from "../src/config/index.ts";

/** Where to listen for a URL. "localhost" is the IPv4 loopback, as in Go. */
export function listenAddress(
  url: MemberUrl,
  serves: ListenAddress["serves"] = "all",
  reusePort = false,
): ListenAddress {
  const secure = url.scheme === "https" || url.scheme === "unixs";
  if (url.path !== "") return { path: url.path, secure, serves };
  return {
    host: url.host === "localhost" ? "127.0.0.1" : url.host,
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
 * Finds out whether all addresses are free, before anything is written, and no client is to come to
 * a port for peers. Rejects with Go's words for the first that is not. Another process may still
 * take one between this and the real listening, which then fails likewise.
 */
export async function checkFree(
  peerUrls: readonly MemberUrl[],
  otherUrls: readonly MemberUrl[],
  reusePort: boolean,
): Promise<void> {
  const shared = otherUrls.find(
    (url) => url.port !== 0 && peerUrls.some((peer) => placeOf(peer) === placeOf(url)),
  );
  if (shared !== undefined)
    throw new Error(`${shared.text} is a peer URL of this member: give its clients another port`);
  for (const url of [...peerUrls, ...otherUrls]) {
    const { host, port, path } = listenAddress(url);
    if (path !== undefined || port === 0) continue;
    await new Promise<void>((resolve, reject) => {
      const server = createServer();
      server.once("error", (error: NodeJS.ErrnoException) => {
        const reason =
          error.code === "EADDRINUSE"
            ? "address already in use"
            : error.code === "EADDRNOTAVAIL"
              ? "cannot assign requested address"
              : error.code === "EACCES"
                ? "permission denied"
                : error.message;
        reject(new Error(`listen tcp ${host}:${port}: bind: ${reason} (for ${url.text})`));
      });
      server.listen({ host, port, exclusive: true, reusePort }, () =>
        server.close(() => resolve()),
      );
    });
  }
}
