/**
 * The client port of a member: an engine on the member's thread, or front-end threads with an
 * engine each (--frontend-threads). Unix sockets cannot go to another thread: they stay here.
 */

import { availableParallelism } from "node:os";
import { FrontThreads } from "@quorate/front/node";
import type { HttpExchangeHandler } from "@quorate/host";
import { machineLimits } from "@quorate/host/node";
import type { MetricRegistry } from "@quorate/metrics";
import { defined } from "@quorate/proto";
import { type EngineServer, engineMetrics } from "@quorate/rpc/node";
import type { ServerConfig } from "../src/config/server-config.ts";
import { type ClientHttpOptions, clientHttp, type GatewayReport } from "./client-http.ts";
import {
  clientAddresses,
  clientServer,
  engineOptions,
  maxMessageBytes,
  type Served,
} from "./client-port.ts";
import type { FrontProgram } from "./front-worker.ts";
import { type PortReport, pastOf, sumOf } from "./port-report.ts";
import type { ProcessDeps, Resources } from "./resources.ts";

/**
 * The metadata fields that services of a member read: token and authorization (identity),
 * hasleader, client-api-version, traceparent, x-forwarded-for (limits of logins), and
 * grpcgateway-accept (which calls come from a gateway).
 */
const METADATA_FIELDS = [
  "token",
  "authorization",
  "hasleader",
  "client-api-version",
  "traceparent",
  "x-forwarded-for",
  "grpcgateway-accept",
];
/**
 * Bytes of a stream that an engine on a front-end holds: in steps of half of it the member sees
 * what a slow client has taken.
 */
const FRONT_SEND_BUDGET_BYTES: number = 128 * 1024;
/** A thread's heap: an eighth of the memory for all of them, within these bounds. */
const HEAP_PART = 8;
const MIN_HEAP_MIB = 128;
const MAX_HEAP_MIB = 1024;
const MIB: number = 1024 * 1024;

/** What serves clients. */
export interface ClientPort {
  /** Serves all addresses, those who wait there first. */
  listen(): Promise<unknown>;
  /** Takes no more connections and calls, and cuts off what is open after the grace. */
  close(graceMs: number): Promise<void>;
}

/** The threads of a configuration: 0 for none. */
function frontThreadsOf({ frontendThreads }: Pick<ServerConfig, "frontendThreads">): number {
  return frontendThreads === "auto" ? autoThreads(availableParallelism()) : frontendThreads;
}

/** From four processors on, threads for all but the member's own and one for what it waits for. */
function autoThreads(processors: number): number {
  return processors < 4 ? 0 : Math.min(8, processors - 2);
}

/** The port, ready to listen, with its metrics. */
export async function clientPort(
  config: ServerConfig,
  deps: ProcessDeps,
  resources: Resources,
  served: Served,
  registry: MetricRegistry,
): Promise<ClientPort> {
  const addresses = clientAddresses(resources);
  const count = frontThreadsOf(config);
  const onThreads = addresses.filter(({ path }) => count > 0 && path === undefined);
  const local = localServer(config, deps, resources, served, {
    addresses: addresses.filter((address) => !onThreads.includes(address)),
  });
  if (onThreads.length === 0) {
    portMetrics(registry, () => local.report());
    return local;
  }
  // Loaded where there are front-ends.
  const { frontWorkerUrl } = await import("./front-worker.ts");
  const { clientTls, budgets } = resources;
  const listen = onThreads.map(({ door: _door, maxConnections = 1, ...address }) => ({
    ...address,
    maxConnections: Math.max(1, Math.ceil(maxConnections / count)),
  }));
  const program = (): FrontProgram => ({
    engine: {
      ...engineOptions(config, budgets, listen, count),
      sendBudgetBytes: FRONT_SEND_BUDGET_BYTES,
    },
    http: httpOptions(config, resources, count),
    tls: clientTls?.current,
  });
  let past: PortReport | undefined;
  const threads = new FrontThreads(
    {
      count,
      url: frontWorkerUrl,
      program,
      fields: METADATA_FIELDS,
      maxRequestBytes: maxMessageBytes(config),
      maxQueuedBytes: Math.floor(budgets.answersTotalBytes / count),
      maxHeldBytes: Math.floor(budgets.requestsTotalBytes / count),
      resourceLimits: { maxOldGenerationSizeMb: heapMib(count) },
    },
    {
      ...served,
      doors: onThreads.map(({ door }) => door),
      clock: deps.clock,
      logger: deps.logger,
      ended: (report) => {
        const left = pastOf(report as PortReport);
        past = past === undefined ? left : sumOf([past, left]);
      },
    },
  );
  if (clientTls !== undefined)
    resources.onRelease(clientTls.onChange(() => threads.set(clientTls.current)));
  let report = local.report();
  portMetrics(registry, () => report);
  registry.onScrape(async () => {
    const reports = (await threads.reports()) as readonly PortReport[];
    report = sumOf([...reports, local.report(), ...(past === undefined ? [] : [past])]);
  });
  frontMetrics(registry, threads);
  await threads.start();
  return {
    listen: async () => {
      threads.listen();
      await local.listen();
    },
    close: async (graceMs) => {
      await Promise.all([threads.close(graceMs), local.close(graceMs)]);
    },
  };
}

/** An engine on the member's thread. */
function localServer(
  config: ServerConfig,
  deps: ProcessDeps,
  resources: Resources,
  served: Served,
  { addresses }: { readonly addresses: ReturnType<typeof clientAddresses> },
): ClientPort & { report(): PortReport } {
  const { services, observer, http: rest } = served;
  const side = clientHttp(httpOptions(config, resources), {
    services,
    observer,
    rest,
    clock: deps.clock,
    logger: deps.logger.child("etcdhttp"),
  });
  const http: HttpExchangeHandler = side.handler;
  const server: EngineServer = clientServer(
    config,
    deps,
    resources,
    { services, observer, http },
    addresses,
  );
  return {
    listen: () => server.listen(),
    close: async (graceMs) => {
      await server.close(graceMs);
      side.close();
    },
    report: () => ({ engine: server.counters(), gateway: side.gatewayReport() }),
  };
}

function httpOptions(
  config: ServerConfig,
  { budgets }: Pick<Resources, "budgets">,
  parts = 1,
): ClientHttpOptions {
  return {
    config: { http: config.http, maxConcurrentStreams: config.maxConcurrentStreams },
    budgets: { requestsTotalBytes: Math.floor(budgets.requestsTotalBytes / parts) },
    maxRequestBytes: maxMessageBytes(config),
  };
}

function heapMib(count: number): number {
  const share = Math.floor(machineLimits().memoryBytes / MIB / HEAP_PART / count);
  return Math.max(MIN_HEAP_MIB, Math.min(MAX_HEAP_MIB, share));
}

function portMetrics(registry: MetricRegistry, report: () => PortReport): void {
  engineMetrics(registry, () => report().engine);
  if (report().gateway !== undefined)
    gatewayMetrics(registry, () => defined(report().gateway, "the gateway"));
}

function frontMetrics(registry: MetricRegistry, threads: FrontThreads): void {
  registry.gauge(
    "quorate_server_frontend_threads",
    "Front-end threads that serve.",
    () => threads.serving,
  );
  registry.readCounter(
    "quorate_server_frontend_ends_total",
    "Front-end threads that have ended by themselves or were ended, each with its connections.",
    () => threads.ended,
  );
  registry.readCounter(
    "quorate_server_frontend_refused_sockets_total",
    "Connections that were closed because no front-end thread took them.",
    () => threads.refusedSockets,
  );
}

type Row = readonly [name: string, help: string, key: keyof GatewayReport];

const PREFIX = "quorate_gateway_";
const COUNTERS: readonly Row[] = [
  ["malformed_total", "Bodies that were not the JSON of their message.", "malformed"],
  ["too_large_total", "Requests that were refused for their size.", "tooLarge"],
  ["held_bytes_refusals_total", "Requests refused for want of memory.", "heldBytesRefusals"],
  ["unrouted_total", "Requests for paths or methods that do not exist.", "unrouted"],
];
const GAUGES: readonly Row[] = [
  ["calls", "Calls of the JSON gateway that run.", "calls"],
  ["waiting_calls", "Calls that wait for others to end.", "waitingCalls"],
  ["websockets", "WebSockets of the JSON gateway that are open.", "webSockets"],
];

/** Registers the metrics of a gateway and its WebSockets, read at each scrape. */
function gatewayMetrics(registry: MetricRegistry, report: () => GatewayReport): void {
  for (const [name, help, key] of COUNTERS)
    registry.readCounter(PREFIX + name, help, () => report()[key]);
  for (const [name, help, key] of GAUGES) registry.gauge(PREFIX + name, help, () => report()[key]);
}
