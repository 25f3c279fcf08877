/** The HTTP side of a member's ports for clients and metrics. */
import type { HttpExchangeHandler } from "@quorate/host";
import type { HttpKvParts } from "@quorate/http-kv";
import type { Member } from "@quorate/member";
import type { RpcObserver, ServiceTable } from "@quorate/rpc";
import { SocketGateway } from "@quorate/rpc/node";
import { controlAccess } from "@quorate/services";
import type { ServerConfig } from "../src/config/index.ts";
import { exchangeRouter } from "../src/http/endpoints.ts";
import { memberGateway } from "../src/http/gateway.ts";
import { versionOf } from "../src/http/peer-endpoints.ts";
import { maxMessageBytes } from "./client-port.ts";
import { gatewayMetrics } from "./gateway-metrics.ts";
import { dataEndpoints, plainEndpoints } from "./http-endpoints.ts";
import type { ProcessDeps, Resources } from "./resources.ts";

/** What the ports serve besides gRPC. */
export interface HttpSide {
  /** Of the ports for clients: everything. */
  readonly client: HttpExchangeHandler;
  /** Of the ports for metrics, which have no data. */
  readonly metrics: HttpExchangeHandler;
  /** Ends what runs by itself. */
  close(): void;
}

/** The services that HTTP requests reach, and who watches. */
export type HttpParts = Omit<HttpKvParts, "access" | "hashKey"> & {
  readonly services: ServiceTable;
  readonly observer: RpcObserver;
};

/** The handlers of both kinds of port. */
export async function httpSide(
  config: ServerConfig,
  { clock, logger: root }: ProcessDeps,
  { budgets }: Resources,
  member: Member,
  parts: HttpParts,
): Promise<HttpSide> {
  const logger = root.child("etcdhttp");
  const { services, observer } = parts;
  const maxRequestBytes = maxMessageBytes(config);
  const calls = memberGateway(config, { services, observer, clock, budgets, maxRequestBytes });
  const gateway =
    calls &&
    new SocketGateway(calls, {
      clock,
      maxMessageBytes: 2 * maxRequestBytes,
      maxHeldTotalBytes: Math.max(budgets.requestsTotalBytes >>> 2, 2 * maxRequestBytes),
    });
  if (calls !== undefined && gateway !== undefined)
    gatewayMetrics(member.metrics.registry, calls, gateway);
  const plain = plainEndpoints(member, versionOf(member), logger);
  const data = await dataEndpoints(gateway, config, member, parts);
  const router = exchangeRouter(new Map([...plain, ...data]));
  return {
    client: controlAccess(router, config.http, { clock, logger }),
    metrics: exchangeRouter(plain),
    close: () => {
      calls?.close();
      gateway?.close();
    },
  };
}
