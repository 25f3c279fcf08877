/** Routes of HTTP exchanges by path. */
import type { HttpExchangeHandler } from "@quorate/host";
import { plainError } from "./health.ts";

/**
 * Sends a request to the endpoint of its path, or to the longest one that ends in a slash and that
 * the path begins with; others get 404 as from Go's mux.
 */
export function exchangeRouter(
  endpoints: ReadonlyMap<string, HttpExchangeHandler>,
): HttpExchangeHandler {
  const prefixes = [...endpoints.keys()]
    .filter((path) => path.endsWith("/"))
    .sort((a, b) => b.length - a.length);
  return (exchange) => {
    const { path } = exchange.head;
    const endpoint =
      endpoints.get(path) ??
      endpoints.get(prefixes.find((prefix) => path.startsWith(prefix)) ?? "");
    if (endpoint !== undefined) return endpoint(exchange);
    exchange.respond(plainError(404, "404 page not found"));
    return {};
  };
}
