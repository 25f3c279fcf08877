/** What a member serves over HTTP on its ports for clients and metrics, beside the gateway. */
import type { HttpExchangeHandler } from "@quorate/host";
import type { HttpKvParts } from "@quorate/http-kv";
import type { Member } from "@quorate/member";
import type { RpcObserver, ServiceTable } from "@quorate/rpc";
import type { ServerConfig } from "../src/config/index.ts";
import { exchangeRouter } from "../src/http/endpoints.ts";
import { versionOf } from "../src/http/peer-endpoints.ts";
import { dataEndpoints, plainEndpoints } from "./http-endpoints.ts";
import type { ProcessDeps } from "./resources.ts";

export interface HttpSide {
  /** Of the ports for clients. */
  readonly client: HttpExchangeHandler;
  /** Of the ports for metrics, which have no data. */
  readonly metrics: HttpExchangeHandler;
}

/** The services that HTTP requests reach, and who watches. */
export type HttpParts = Omit<HttpKvParts, "access" | "hashKey"> & {
  readonly services: ServiceTable;
  readonly observer: RpcObserver;
};

/** The handlers of both kinds of port. */
export async function httpSide(
  config: ServerConfig,
  { logger: root }: ProcessDeps,
  member: Member,
  parts: HttpParts,
): Promise<HttpSide> {
  const plain = plainEndpoints(member, versionOf(member), root.child("etcdhttp"));
  const data = await dataEndpoints(config, member, parts);
  return {
    client: exchangeRouter(new Map([...plain, ...data])),
    metrics: exchangeRouter(plain),
  };
}
