/**
 * The URLs of members: http, https, unix and unixs, each with a host and a port and without a path,
 * and the name=url lists of --initial-cluster. Messages are those of etcd's client/pkg/types,
 * because operators search for them.
 */
import { fromUtf8, quoteText } from "@quorate/proto";
import { ValueError } from "./values.ts";

export type UrlScheme = "http" | "https" | "unix" | "unixs";

/** A URL that a member listens on or advertises. */
export interface MemberUrl {
  readonly scheme: UrlScheme;
  /** Host name or address, IPv6 without brackets. Empty for unix sockets. */
  readonly host: string;
  /** 0 to 65535; 0 lets the system choose (for tests). 0 for unix sockets. */
  readonly port: number;
  /** The socket's path for unix and unixs, else empty. */
  readonly path: string;
  /**
   * The URL as it was written, with its scheme in lower case: what goes into member ids and the
   * member list.
   */
  readonly text: string;
}

/** The host that a URL's socket listens on: "localhost" is the IPv4 loopback, as in Go. */
export function listenHost({ host }: Pick<MemberUrl, "host">): string {
  return host === "localhost" ? "127.0.0.1" : host;
}

const SHAPE = /^([a-zA-Z][a-zA-Z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)([?#].*)?$/s;
const HOST_PORT = /^(?:\[([^\]]*)\]|([^:]*)):([0-9]*)$/s;

/** What the kernels take: 107 bytes in Linux, 103 in macOS. */
const MAX_SOCKET_PATH_BYTES = 103;

/** Reads one URL. Throws ValueError. */
export function parseUrl(input: string): MemberUrl {
  const text = input.trim();
  const shape = SHAPE.exec(text);
  if (shape === null)
    throw new ValueError(
      `URL scheme must be http, https, unix, or unixs: ${text || "the URL is empty (a comma too many?)"}`,
    );
  const [, written = "", authority = "", path = "", rest = ""] = shape;
  const scheme = written.toLowerCase();
  const normalised = scheme + text.slice(written.length);
  if (scheme === "unix" || scheme === "unixs") {
    // "unix://host:port" names a socket file in the working directory, "unix:///a/b" one by its
    // path.
    const socket = authority + path;
    if (socket === "") throw new ValueError(`URL of a unix socket must name its file: ${text}`);
    const sizeBytes = fromUtf8(socket).length;
    if (sizeBytes > MAX_SOCKET_PATH_BYTES)
      throw new ValueError(
        `path of a unix socket must have at most ${MAX_SOCKET_PATH_BYTES} bytes, got ${sizeBytes}: ${text}`,
      );
    return { scheme, host: "", port: 0, path: socket, text: normalised };
  }
  if (scheme !== "http" && scheme !== "https")
    throw new ValueError(`URL scheme must be http, https, unix, or unixs: ${text}`);
  const colonAt = authority.lastIndexOf(":");
  const given = colonAt === -1 ? "" : authority.slice(colonAt + 1);
  if (/[^0-9]/.test(given) && !given.includes("]") && !authority.includes("@")) {
    throw new ValueError(
      `parse ${quoteText(text)}: invalid port ${quoteText(`:${given}`)} after host`,
    );
  }
  const pair = HOST_PORT.exec(authority);
  if (pair === null || pair[3] === "" || authority.includes("@")) {
    throw new ValueError(`URL address does not have the form "host:port": ${text}`);
  }
  if (path !== "") throw new ValueError(`URL must not contain a path: ${text}`);
  if (rest !== "") throw new ValueError(`URL must not contain a query or fragment: ${text}`);
  const port = Number(pair[3]);
  if (port > 65535) throw new ValueError(`URL port must be at most 65535: ${text}`);
  return { scheme, host: pair[1] ?? pair[2] ?? "", port, path: "", text: normalised };
}

/**
 * Reads comma-separated URLs; the result is sorted by text, each once, as etcd keeps them. An empty
 * text is an empty list.
 */
export function parseUrls(text: string): readonly MemberUrl[] {
  if (text === "") return [];
  const byText = new Map<string, MemberUrl>();
  for (const part of text.split(",")) {
    const url = parseUrl(part);
    byText.set(url.text, url);
  }
  return sortUrls([...byText.values()]);
}

function sortUrls(urls: MemberUrl[]): MemberUrl[] {
  return urls.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
}

/** The texts of URLs, joined by commas. */
export function urlsText(urls: readonly MemberUrl[]): string {
  return urls.map((url) => url.text).join(",");
}

/** Member names and their peer URLs, as in --initial-cluster. */
export type InitialCluster = ReadonlyMap<string, readonly MemberUrl[]>;

/**
 * Reads "name=url,name=url,..."; a name that comes more than once has several URLs, kept even where
 * equal for a later check.
 */
export function parseInitialCluster(text: string): InitialCluster {
  const cluster = new Map<string, MemberUrl[]>();
  for (const pair of text.split(",")) {
    if (pair === "") continue;
    const at = pair.indexOf("=");
    if (at < 0) throw new ValueError(`${quoteText(pair)} is not of the form NAME=PEER-URL`);
    const name = pair.slice(0, at);
    const url = parseUrl(pair.slice(at + 1));
    const urls = cluster.get(name);
    if (urls === undefined) cluster.set(name, [url]);
    else urls.push(url);
  }
  for (const urls of cluster.values()) sortUrls(urls);
  return cluster;
}

/** The inverse of parseInitialCluster, pairs sorted. */
export function initialClusterText(cluster: InitialCluster): string {
  const pairs: string[] = [];
  for (const [name, urls] of cluster) for (const url of urls) pairs.push(`${name}=${url.text}`);
  return pairs.sort().join(",");
}

const IPV4 = /^(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(?:\.(?!$)|$)){4}$/;

/**
 * Whether a host is an address and not a name. A zone ("fe80::1%eth0") counts as part of the
 * address.
 */
export function isIpAddress(host: string): boolean {
  return IPV4.test(host) || canonicalIpv6(host) !== undefined;
}

/** An IPv6 address in the one form that URL parsers print, or undefined if `host` is none. */
function canonicalIpv6(host: string): string | undefined {
  const [address, zone] = host.split("%", 2) as [string, string?];
  if (!address.includes(":")) return undefined;
  const halves = address.split("::");
  if (halves.length > 2) return undefined;
  const groups = halves.map((half) => (half === "" ? [] : half.split(":")));
  const [head = [], end = []] = groups;
  // A dotted quad may stand for the last two groups.
  const tail = groups.length === 1 ? head : end;
  const last = tail.at(-1);
  if (last !== undefined && last.includes(".")) {
    if (!IPV4.test(last)) return undefined;
    const [a, b, c, d] = last.split(".").map(Number) as [number, number, number, number];
    tail.splice(-1, 1, ((a << 8) | b).toString(16), ((c << 8) | d).toString(16));
  }
  const count = groups.reduce((sum, half) => sum + half.length, 0);
  if (halves.length === 1 ? count !== 8 : count > 7) return undefined;
  const filled =
    halves.length === 1 ? head : [...head, ...Array<string>(8 - count).fill("0"), ...end];
  if (!filled.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
  return (
    filled.map((group) => Number.parseInt(group, 16).toString(16)).join(":") +
    (zone === undefined ? "" : `%${zone}`)
  );
}

/**
 * Whether two URLs name the same place: equal scheme, host (addresses compared as addresses) and
 * port.
 */
export function sameUrl(a: MemberUrl, b: MemberUrl): boolean {
  if (a.scheme !== b.scheme || a.port !== b.port || a.path !== b.path) return false;
  return (canonicalIpv6(a.host) ?? a.host) === (canonicalIpv6(b.host) ?? b.host);
}

/**
 * Throws a ValueError for a URL that cannot be bound: a member listens on addresses (or
 * "localhost"), not on names.
 */
export function checkBindUrls(urls: readonly MemberUrl[]): void {
  for (const url of urls) {
    if (url.scheme === "unix" || url.scheme === "unixs" || url.host === "localhost") continue;
    if (!isIpAddress(url.host))
      throw new ValueError(`expected IP in URL for binding (${url.text})`);
  }
}

/** Throws a ValueError for a URL that no other member could use: its host is empty. */
export function checkHostUrls(urls: readonly MemberUrl[]): void {
  for (const url of urls) {
    if (url.scheme === "unix" || url.scheme === "unixs") continue;
    if (url.host === "") throw new ValueError(`unexpected empty host (${url.text})`);
  }
}

const UNSPECIFIED = /^(?:0\.0\.0\.0|[0:]+)$/;
const LOOPBACK = /^(?:127\.|0*(?::0*)*:0*1$)/;

/**
 * The first address among the advertised peer URLs that other members can reach: not a name, a
 * loopback address or an unspecified one. Undefined if there is none. Source: etcd,
 * server/embed/config.go (InferLocalAddr).
 */
export function inferLocalAddress(advertised: readonly MemberUrl[]): string | undefined {
  return advertised.find(
    ({ host }) => isIpAddress(host) && !UNSPECIFIED.test(host) && !LOOPBACK.test(host),
  )?.host;
}
