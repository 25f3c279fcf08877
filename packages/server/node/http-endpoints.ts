/** The HTTP endpoints of the client and metrics ports. */
import type { Logger } from "@quorate/host";
import type { HttpHandler } from "@quorate/rpc";
import { versionEndpoint } from "../src/http/endpoints.ts";
import { checkEndpoints, healthEndpoint } from "../src/http/health.ts";
import { memberHealth } from "../src/http/member-health.ts";
import { SharedAnswer } from "../src/http/shared-answer.ts";
import type { Member } from "../src/member/member.ts";
import { debugVarsEndpoint } from "./debug-vars.ts";
import { prometheusExposition } from "./prometheus.ts";

/** The handlers, by path. */
export function httpEndpoints(
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
