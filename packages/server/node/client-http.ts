/**
 * The HTTP side of the client port that needs no state: access control and the JSON gateway. It
 * runs where the connections are, on the member's thread or on a front-end's.
 */
import type { Clock, HttpExchangeHandler, Logger } from "@quorate/host";
import type { Budgets } from "@quorate/member";
import type { GatewayCounters, RpcObserver, ServiceTable } from "@quorate/rpc";
import { SocketGateway } from "@quorate/rpc/node";
import { controlAccess } from "@quorate/services";
import type { ServerConfig } from "../src/config/server-config.ts";
import { exchangeRouter } from "../src/http/endpoints.ts";
import { gatewayEndpoints, memberGateway } from "../src/http/gateway.ts";

export interface ClientHttpOptions {
  readonly config: Pick<ServerConfig, "http" | "maxConcurrentStreams">;
  readonly budgets: Pick<Budgets, "requestsTotalBytes">;
  /** Longest request in its encoded form, with what gRPC adds. */
  readonly maxRequestBytes: number;
}

export interface ClientHttpDeps {
  readonly services: ServiceTable;
  readonly observer: RpcObserver | undefined;
  /** Serves what is not the gateway's. */
  readonly rest: HttpExchangeHandler;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What a gateway has counted, and what it serves. */
export interface GatewayReport extends GatewayCounters {
  calls: number;
  waitingCalls: number;
  webSockets: number;
}

export interface ClientHttp {
  readonly handler: HttpExchangeHandler;
  /** Undefined where the gateway is off. */
  gatewayReport(): GatewayReport | undefined;
  /** Ends what runs by itself. */
  close(): void;
}

/** The handler of all HTTP requests of the client port. */
export function clientHttp(
  { config, budgets, maxRequestBytes }: ClientHttpOptions,
  { services, observer, rest, clock, logger }: ClientHttpDeps,
): ClientHttp {
  const calls = memberGateway(config, { services, observer, clock, budgets, maxRequestBytes });
  const gateway =
    calls &&
    new SocketGateway(calls, {
      clock,
      maxMessageBytes: 2 * maxRequestBytes,
      maxHeldTotalBytes: Math.max(budgets.requestsTotalBytes >>> 2, 2 * maxRequestBytes),
    });
  const paths = gateway === undefined ? [] : gatewayEndpoints(gateway.handler);
  const router = exchangeRouter(new Map([...paths, ["/", rest]]));
  return {
    handler: controlAccess(router, config.http, { clock, logger }),
    gatewayReport: () =>
      calls &&
      gateway && {
        ...calls.counters,
        calls: calls.calls.running,
        waitingCalls: calls.calls.waiting,
        webSockets: gateway.size,
      },
    close: () => {
      calls?.close();
      gateway?.close();
    },
  };
}
