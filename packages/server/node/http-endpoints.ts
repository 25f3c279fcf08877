/** The HTTP endpoints of the client and metrics ports. */
import { randomBytes } from "node:crypto";
import type { HttpExchangeHandler, HttpHandler, Logger } from "@quorate/host";
import { type HttpKvParts, httpKv } from "@quorate/http-kv";
import type { Member } from "@quorate/member";
import { prometheusExposition } from "@quorate/metrics/node";
import { SharedAnswer } from "@quorate/services";
import type { ServerConfig } from "../src/config/index.ts";
import { plainRoutes, versionEndpoint } from "../src/http/endpoints.ts";
import { checkEndpoints, healthEndpoint } from "../src/http/health.ts";
import { memberHealth } from "../src/http/member-health.ts";
import { debugVarsEndpoint } from "./debug-vars.ts";

/**
 * The endpoints of the client port that have data, by path, besides the JSON gateway's. The v2 API
 * is loaded where it is on.
 */
export async function dataEndpoints(
  { enableV2, http }: Pick<ServerConfig, "enableV2" | "http">,
  member: Member,
  parts: Omit<HttpKvParts, "access" | "hashKey">,
): Promise<ReadonlyMap<string, HttpExchangeHandler>> {
  const hashKey = randomBytes(32);
  const v2 = enableV2 ? await import("@quorate/v2") : undefined;
  return new Map([
    ...(http.areKeysOn ? httpKv(member, { ...parts, access: http, hashKey }) : []),
    ...(v2?.v2Routes(member, { ...parts, hashKey }) ?? []),
  ]);
}

/** The endpoints without data, of the client and metrics ports, by path. */
export function plainEndpoints(
  member: Member,
  version: Parameters<typeof versionEndpoint>[0],
  logger: Logger,
): ReadonlyMap<string, HttpExchangeHandler> {
  return new Map(plainRoutes(httpEndpoints(member, version, logger), logger));
}

function httpEndpoints(
  member: Member,
  version: Parameters<typeof versionEndpoint>[0],
  logger: Logger,
): ReadonlyMap<string, HttpHandler> {
  const health = memberHealth(member);
  const exposition = prometheusExposition(member.metrics.registry);
  // Any client that reaches the port may request it, and it takes some milliseconds.
  const metrics = new SharedAnswer(member.clock, async () => exposition.text());
  return new Map<string, HttpHandler>([
    ["/health", healthEndpoint(health, member.metrics, logger)],
    ...checkEndpoints(health, member.metrics, logger),
    ["/version", versionEndpoint(version)],
    ["/debug/vars", debugVarsEndpoint(() => member.leadership.status())],
    [
      "/metrics",
      async () => ({
        status: 200,
        headers: { "content-type": exposition.contentType },
        body: await metrics.ask(),
      }),
    ],
  ]);
}
