/**
 * The plain HTTP side of the client port and of --listen-metrics-urls: health, version and metrics.
 */
import type { HttpHandler } from "@quorate/rpc";
import { plainError } from "./health.ts";

/** What /version tells. */
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

/** Sends a request to the endpoint of its path; others get 404 as Go's mux gives it. */
export function httpRouter(endpoints: ReadonlyMap<string, HttpHandler>): HttpHandler {
  return (request) => endpoints.get(request.path)?.(request) ?? plainError(404, "404 page not found");
}
