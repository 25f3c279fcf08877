/** The JSON gateway of a member: etcd's paths under /v3/, over the services of the member. */
import { type Clock, type HttpExchangeHandler, plainError } from "@quorate/host";
import type { Budgets } from "@quorate/member";
import { fromUtf8, httpRoutes, openApiDocument } from "@quorate/proto";
import { Gateway, type RpcObserver, type ServiceTable } from "@quorate/rpc";
import type { ServerConfig } from "../config/server-config.ts";

/**
 * JSON text of a message in bytes of the message: base64 takes 4/3, numbers as decimal text and
 * names of fields more, which are few.
 */
const TEXT_FACTOR = 2;
const SEND_BUDGET_BYTES: number = 1024 * 1024;
const MAX_RESPONSE_BYTES: number = 2 ** 31 - 1;

export interface GatewayParts {
  readonly services: ServiceTable;
  readonly clock: Clock;
  readonly observer: RpcObserver | undefined;
  readonly budgets: Pick<Budgets, "requestsTotalBytes">;
  /** Longest request in its encoded form, with what gRPC adds. */
  readonly maxRequestBytes: number;
}

/** The gateway; undefined where --enable-grpc-gateway is off. */
export function memberGateway(
  config: Pick<ServerConfig, "http" | "maxConcurrentStreams">,
  { services, clock, observer, budgets, maxRequestBytes }: GatewayParts,
): Gateway | undefined {
  if (!config.http.isGatewayOn) return undefined;
  return new Gateway({
    services,
    clock,
    observer,
    routes: httpRoutes(),
    limits: {
      maxRequestBytes,
      maxBodyBytes: TEXT_FACTOR * maxRequestBytes,
      maxResponseBytes: MAX_RESPONSE_BYTES,
      sendBudgetBytes: SEND_BUDGET_BYTES,
      maxLingeringBytes: budgets.requestsTotalBytes >>> 2,
      maxCalls: Math.max(1, config.maxConcurrentStreams),
    },
  });
}

/** The document of the paths under /v3/, made for the first request. */
const openApi: HttpExchangeHandler = (exchange) => {
  const { method } = exchange.head;
  openApiBytes ??= fromUtf8(openApiDocument()).slice();
  exchange.respond(
    method === "GET" || method === "HEAD"
      ? { status: 200, headers: { "content-type": "application/json" }, body: openApiBytes }
      : plainError(405, "Method Not Allowed", { allow: "GET" }),
  );
  return {};
};
let openApiBytes: Uint8Array | undefined;

/** The paths of the gateway. @param handler serves them */
export function gatewayEndpoints(
  handler: HttpExchangeHandler,
): ReadonlyMap<string, HttpExchangeHandler> {
  return new Map([
    ["/v3", handler],
    ["/v3/", handler],
    ["/v3beta/", handler],
    ["/openapi.json", openApi],
  ]);
}
