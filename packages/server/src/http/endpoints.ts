/**
 * The plain HTTP side of the client port and of --listen-metrics-urls: health, version and metrics.
 */
import type { HttpHandler } from "@quorate/rpc";
import { plainError } from "./health.ts";
import { refuseCrossSite } from "./same-site.ts";

/** What /version returns. */
export interface VersionSource {
  readonly serverVersion: string;
  /** The cluster's version, "not_decided" before the members have agreed on one. */
  clusterVersion(): string;
  readonly storageVersion: string;
}

/** etcd's answer to /version. */
export function versionEndpoint(source: VersionSource): HttpHandler {
  return (request) => {
    if (request.method !== "GET") return plainError(405, "Method Not Allowed", { allow: "GET" });
    const body = JSON.stringify({
      etcdserver: source.serverVersion,
      etcdcluster: source.clusterVersion(),
      storage: source.storageVersion,
    });
    return { status: 200, headers: { "content-type": "application/json" }, body };
  };
}

/**
 * Sends a request to the endpoint of its path, or to the longest one that ends in a slash and that
 * the path begins with; others get 404 as from Go's mux. What browsers send across sites
 * changes nothing, on any path.
 */
export function httpRouter(endpoints: ReadonlyMap<string, HttpHandler>): HttpHandler {
  const prefixes = [...endpoints.keys()]
    .filter((path) => path.endsWith("/"))
    .sort((a, b) => b.length - a.length);
  return refuseCrossSite((request) => {
    const found =
      endpoints.get(request.path) ??
      endpoints.get(prefixes.find((prefix) => request.path.startsWith(prefix)) ?? "");
    return found === undefined ? plainError(404, "404 page not found") : found(request);
  });
}
