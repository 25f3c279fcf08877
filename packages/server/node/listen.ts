/** From a member's URLs to addresses that sockets listen on. */

import type { Logger } from "@quorate/host";
import { type Door, openDoor, type TlsFiles } from "@quorate/host/node";
import { listenHost, type MemberUrl } from "@quorate/member";
import { defined } from "@quorate/proto";
import type { ListenAddress } from "@quorate/rpc/node";
import type { ServerConfig, TlsConfig } from "../src/config/server-config.ts";

/** Where to listen for a URL. */
function listenAddress(
  url: MemberUrl,
  serves: ListenAddress["serves"],
  reusePort: boolean,
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
function places(
  urls: readonly MemberUrl[],
  serves: ListenAddress["serves"],
  reusePort: boolean,
): { readonly url: MemberUrl; readonly address: ListenAddress }[] {
  // Each URL with port 0 gets a port of its own.
  const byPlace = Map.groupBy(urls, (url) =>
    url.path === "" && url.port === 0 ? Symbol() : placeOf(url),
  );
  return [...byPlace.values()].map((same) => {
    const url = defined(same[0], "a URL");
    const addresses = same.map((one) => listenAddress(one, serves, reusePort));
    const address = {
      ...listenAddress(url, serves, reusePort),
      secure: addresses.some(({ secure }) => secure),
      alsoPlain: addresses.some(({ secure }) => !secure),
    };
    return { url, address };
  });
}

/** What a URL listens on, whatever its scheme. */
function placeOf(url: MemberUrl): string {
  return JSON.stringify(listenAddress({ ...url, scheme: "http" }, "all", false));
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

/** The addresses of a member, each with its open door. */
export interface Ports {
  readonly peer: readonly OpenAddress[];
  readonly client: readonly OpenAddress[];
  readonly clientHttp: readonly OpenAddress[];
  readonly metrics: readonly OpenAddress[];
  /** Closes all doors; connections that wait are cut. */
  close(): void;
}

export type OpenAddress = ListenAddress & { readonly door: Door };

/**
 * Binds all addresses of a member, or none, before anything is written. Rejects with Go's words,
 * and Node's code, for the first that cannot be bound. Clients that connect wait until the member
 * serves. Members are turned away until it takes part: members that start together look around for
 * a cluster first, and would wait for one another.
 */
export async function openPorts(config: ListenConfig, logger: Logger): Promise<Ports> {
  const { socketReusePort: reusePort } = config;
  const open = new Map<MemberUrl, Door>();
  const close = () => {
    for (const door of open.values()) void door.close();
  };
  const opened = async (
    urls: readonly MemberUrl[],
    serves: ListenAddress["serves"],
    early: "hold" | "refuse" = "hold",
  ) => {
    const addresses: OpenAddress[] = [];
    for (const { url, address } of places(urls, serves, reusePort)) {
      const door = await taken(url, address, early, [...open.keys()]);
      open.set(url, door);
      addresses.push({ ...address, door });
    }
    return addresses;
  };
  const { listenPeerUrls, listenClientUrls, listenClientHttpUrls } = config;
  const clientServes = listenClientHttpUrls.length > 0 ? "grpc" : "all";
  const texts = (urls: readonly MemberUrl[]) => urls.map(({ text }) => text);
  try {
    logger.info("configuring peer listeners", { "listen-peer-urls": texts(listenPeerUrls) });
    const peer = await opened(listenPeerUrls, "all", "refuse");
    logger.info("configuring client listeners", { "listen-client-urls": texts(listenClientUrls) });
    const client = await opened(listenClientUrls, clientServes);
    const clientHttp = await opened(listenClientHttpUrls, "http");
    const metrics = await opened(config.listenMetricsUrls, "http");
    return { peer, client, clientHttp, metrics, close };
  } catch (error) {
    close();
    throw error;
  }
}

/** What openPorts needs of a member's configuration. */
export type ListenConfig = Pick<
  ServerConfig,
  | "listenPeerUrls"
  | "listenClientUrls"
  | "listenClientHttpUrls"
  | "listenMetricsUrls"
  | "socketReusePort"
>;

/** Hosts that stand for all addresses of the machine, so that none is left for another URL. */
const ALL_ADDRESSES: ReadonlySet<string> = new Set(["", "0.0.0.0", "::"]);

/** @param mine URLs of this member that are listened on: one of them may exclude this one */
async function taken(
  url: MemberUrl,
  address: ListenAddress,
  early: "hold" | "refuse",
  mine: readonly MemberUrl[],
): Promise<Door> {
  try {
    return await openDoor(address, early);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = (code === undefined ? undefined : GO_REASONS.get(code)) ?? message;
    const own = mine.find(
      (one) =>
        url.path === "" &&
        one.port === url.port &&
        (ALL_ADDRESSES.has(one.host) || ALL_ADDRESSES.has(url.host)),
    );
    const clash =
      own !== undefined && code === "EADDRINUSE"
        ? `, and this member listens on ${own.text} too`
        : "";
    const { host, port, path } = address;
    const place = path === undefined ? `tcp ${host}:${port}` : `unix ${path}`;
    const text = `listen ${place}: bind: ${reason} (for ${url.text}${clash})`;
    throw Object.assign(new Error(text, { cause: error }), { code });
  }
}

const GO_REASONS: ReadonlyMap<string, string> = new Map([
  ["EADDRINUSE", "address already in use"],
  ["EADDRNOTAVAIL", "cannot assign requested address"],
  ["EACCES", "permission denied"],
]);
