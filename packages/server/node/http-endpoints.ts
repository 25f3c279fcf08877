/** The HTTP endpoints of the client and metrics ports. */
import { randomBytes } from "node:crypto";
import { type HttpExchangeHandler, type Logger, wholeBody } from "@quorate/host";
import type { Gateway, HttpHandler } from "@quorate/rpc";
import { versionEndpoint } from "../src/http/endpoints.ts";
import { gatewayEndpoints } from "../src/http/gateway.ts";
import { checkEndpoints, healthEndpoint } from "../src/http/health.ts";
import { memberHealth } from "../src/http/member-health.ts";
import { SharedAnswer } from "../src/http/shared-answer.ts";
import { type HttpKvParts, httpKv } from "../src/http-kv/index.ts";
import type { Member } from "../src/member/member.ts";
import { debugVarsEndpoint } from "./debug-vars.ts";
import { prometheusExposition } from "./prometheus.ts";

/** The endpoints of health and metrics take no body. */
const MAX_BODY_BYTES: number = 64 << 10;

/** The endpoints of the client port that have data, by path. */
export function dataEndpoints(
  gateway: Gateway | undefined,
  member: Member,
  parts: Omit<HttpKvParts, "hashKey">,
): ReadonlyMap<string, HttpExchangeHandler> {
  const { areKeysOn } = member.config.http;
  return new Map([
    ...(gateway === undefined ? [] : gatewayEndpoints(gateway)),
    ...(areKeysOn ? httpKv(member, { ...parts, hashKey: randomBytes(32) }) : []),
  ]);
}

/** The endpoints without data, of the client and metrics ports, by path. */
export function plainEndpoints(
  member: Member,
  version: Parameters<typeof versionEndpoint>[0],
  logger: Logger,
): ReadonlyMap<string, HttpExchangeHandler> {
  const failed: Parameters<typeof wholeBody>[2] = ({ method, path }, error) => {
    const reason = error instanceof Error ? error.message : String(error);
    logger.warn("failed to handle HTTP request", { method, path, error: reason });
  };
  const handlers = [...httpEndpoints(member, version, logger)];
  return new Map(
    handlers.map(([path, handler]) => [path, wholeBody(handler, MAX_BODY_BYTES, failed)]),
  );
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
