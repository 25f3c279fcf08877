/**
 * The plain HTTP side of the client port and of --listen-metrics-urls: health, version and metrics.
 */

import type { HttpHandler } from "@quorate/host";
import {
  type HttpExchangeHandler,
  type HttpHead,
  type Logger,
  plainError,
  wholeBody,
} from "@quorate/host";
import { refuseCrossSite } from "@quorate/services";

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
 * Finds the value of a request's path: its own, or that of the longest prefix that ends in a slash
 * (as Go's mux does).
 */
function byPath<T>(routes: ReadonlyMap<string, T>): (path: string) => T | undefined {
  const prefixes = [...routes.keys()]
    .filter((path) => path.endsWith("/"))
    .sort((a, b) => b.length - a.length);
  return (path) =>
    routes.get(path) ?? routes.get(prefixes.find((prefix) => path.startsWith(prefix)) ?? "");
}

const NOT_FOUND = plainError(404, "404 page not found");

/**
 * Sends a request to the endpoint of its path; others get 404 as from Go's mux. What browsers send
 * across sites changes nothing, on any path.
 */
export function httpRouter(endpoints: ReadonlyMap<string, HttpHandler>): HttpHandler {
  const find = byPath(endpoints);
  return refuseCrossSite((request) => find(request.path)?.(request) ?? NOT_FOUND);
}

/**
 * Sends a request to the handler of its path, as `httpRouter` does. Each handler has its own policy
 * for requests across sites.
 */
export function exchangeRouter(
  routes: ReadonlyMap<string, HttpExchangeHandler>,
): HttpExchangeHandler {
  const find = byPath(routes);
  return (exchange) => {
    const found = find(exchange.head.path);
    if (found !== undefined) return found(exchange);
    exchange.respond(NOT_FOUND);
    return {};
  };
}

/** Longest body of a request to a plain endpoint. */
const MAX_PLAIN_BODY_BYTES = 2 * 1024 * 1024;

/** Endpoints as routes; what browsers send to them across sites changes nothing. */
export function plainRoutes(
  endpoints: ReadonlyMap<string, HttpHandler>,
  logger: Logger,
): [string, HttpExchangeHandler][] {
  const failed = ({ method, path }: HttpHead, error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    logger.warn("failed to handle HTTP request", { method, path, error: reason });
  };
  return [...endpoints].map(([path, handler]) => [
    path,
    wholeBody(refuseCrossSite(handler), MAX_PLAIN_BODY_BYTES, failed),
  ]);
}
