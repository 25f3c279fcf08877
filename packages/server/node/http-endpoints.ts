/** The HTTP endpoints of the client and metrics ports. */
import { randomBytes } from "node:crypto";
import type { Console } from "@quorate/console";
import { type HttpExchangeHandler, type HttpHandler, type Logger, plainError } from "@quorate/host";
import type { HttpKvParts } from "@quorate/http-kv";
import type { Member } from "@quorate/member";
import { prometheusExposition } from "@quorate/metrics/node";
import { idToHex } from "@quorate/proto";
import type { ProgressState, Role, Status } from "@quorate/raft";
import type { RpcObserver, ServiceTable } from "@quorate/rpc";
import { SharedAnswer } from "@quorate/services";
import { loadV2Routes } from "@quorate/v2";
import type { ServerConfig } from "../src/config/server-config.ts";
import { exchangeRouter, plainRoutes, versionEndpoint } from "../src/http/endpoints.ts";
import { checkEndpoints, healthEndpoint, memberHealth } from "../src/http/health.ts";
import { versionOf } from "../src/http/peer-endpoints.ts";
import type { ProcessDeps } from "./resources.ts";

/**
 * The endpoints of the client port that have data, by path, besides the JSON gateway's. Each is
 * loaded where it is on.
 */
export async function dataEndpoints(
  { enableV2, http }: Pick<ServerConfig, "enableV2" | "http">,
  member: Member,
  parts: Omit<HttpKvParts, "access" | "hashKey">,
  page?: Console,
): Promise<ReadonlyMap<string, HttpExchangeHandler>> {
  const hashKey = randomBytes(32);
  const v2Routes = enableV2 ? await loadV2Routes() : undefined;
  const keys = http.areKeysOn ? await import("@quorate/http-kv") : undefined;
  return new Map([
    ...(keys?.httpKv(member, { ...parts, access: http, hashKey }) ?? []),
    ...(v2Routes?.(member, { ...parts, hashKey }) ?? []),
    ...(page?.routes(parts) ?? []),
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

interface HttpSide {
  /** Of the ports for clients. */
  readonly client: HttpExchangeHandler;
  /** Of the ports for metrics, which have no data. */
  readonly metrics: HttpExchangeHandler;
}

/** The services that HTTP requests reach, and who watches. */
type HttpParts = Omit<HttpKvParts, "access" | "hashKey"> & {
  readonly services: ServiceTable;
  readonly observer: RpcObserver;
  readonly metricsPages: ReadonlyMap<string, HttpHandler> | undefined;
};

/** The handlers of both kinds of port. */
export async function httpSide(
  config: ServerConfig,
  { logger: root }: ProcessDeps,
  member: Member,
  parts: HttpParts,
  page: Console | undefined,
): Promise<HttpSide> {
  const logger = root.child("etcdhttp");
  const plain = plainEndpoints(member, versionOf(member), logger);
  const further = plainRoutes(parts.metricsPages ?? new Map(), logger);
  const data = await dataEndpoints(config, member, parts, page);
  return {
    client: exchangeRouter(new Map([...plain, ...data])),
    metrics: exchangeRouter(new Map([...plain, ...further])),
  };
}

const ROLES: Readonly<Record<Role, string>> = {
  follower: "StateFollower",
  "pre-candidate": "StatePreCandidate",
  candidate: "StateCandidate",
  leader: "StateLeader",
};
const STATES: Readonly<Record<ProgressState, string>> = {
  probe: "StateProbe",
  replicate: "StateReplicate",
  snapshot: "StateSnapshot",
};

/**
 * A JSON object: the program's name, memory in bytes (under the names of Go's runtime that have a
 * meaning here), and Raft's state in etcd's form, with ids in hexadecimal; `progress` has the
 * members, on the leader alone. The arguments of the command line are not in it: the port may be
 * open to everyone, and flags may hold secrets.
 */
function debugVarsEndpoint(raftStatus: () => Status): HttpHandler {
  return (request) => {
    if (request.method !== "GET") return plainError(405, "Method Not Allowed", { allow: "GET" });
    const memory = process.memoryUsage();
    const body = JSON.stringify({
      cmdline: ["quorate"],
      memstats: {
        Alloc: memory.heapUsed + memory.external,
        HeapAlloc: memory.heapUsed,
        HeapSys: memory.heapTotal,
        Sys: memory.rss,
      },
      "raft.status": raftVars(raftStatus()),
    });
    return { status: 200, headers: { "content-type": "application/json; charset=utf-8" }, body };
  };
}

function raftVars(status: Status): Record<string, unknown> {
  const progress = status.progress.map(({ id, match, next, state }) => [
    idToHex(id),
    { match, next, state: STATES[state] },
  ]);
  return {
    id: idToHex(status.id),
    term: status.term,
    vote: idToHex(status.vote),
    commit: status.commit,
    lead: idToHex(status.leader),
    raftState: ROLES[status.role],
    applied: status.applied,
    progress: Object.fromEntries(progress),
    leadtransferee: idToHex(status.leadTransferee),
  };
}
