/** Distributed tracing, put together. Loaded only by members that have it on. */
import type { Clock, Logger, Random } from "@quorate/host";
import type { Member } from "@quorate/member";
import { SERVER_VERSION } from "@quorate/member";
import type { ServiceTable } from "@quorate/rpc";
import type { TracingConfig } from "../../src/config/server-config.ts";
import { Batches } from "../../src/tracing/batches.ts";
import { encodeSpans } from "../../src/tracing/otlp.ts";
import { Tracer } from "../../src/tracing/span.ts";
import { OtlpClient } from "./otlp-client.ts";
import { TracedServices } from "./traced-services.ts";

/** How long a member that stops waits for its collector. */
const STOP_LIMIT_MS = 2000;

/** A member's tracing while it runs. */
export interface Tracing {
  /** The services with spans around them. */
  around(services: ServiceTable): ServiceTable;
  /** Sends what is left, and closes the connection. */
  stop(): Promise<void>;
}

/** Begins to trace the calls of a member. */
export function startTracing(
  config: TracingConfig,
  member: Member,
  deps: { clock: Clock; random: Random; logger: Logger },
): Tracing {
  const { clock, random, logger } = deps;
  const { registry } = member.metrics;
  const client = new OtlpClient(config.address);
  const origin = {
    serviceName: config.serviceName,
    instanceId: config.instanceId,
    version: SERVER_VERSION,
  };
  const batches = new Batches({
    clock,
    logger,
    exported: registry.counter(
      "quorate_tracing_spans_exported_total",
      "Spans that the collector has taken.",
    ),
    dropped: registry.counter(
      "quorate_tracing_spans_dropped_total",
      "Spans lost: too many waited, or the collector did not take them.",
    ),
    send: (spans) => client.export(encodeSpans(origin, spans)),
  });
  const tracer = new Tracer(config.samplingRate, {
    clock,
    random: random.fork("traces"),
    ended: (span) => batches.add(span),
  });
  const services = new TracedServices(tracer, () => clock.monotonicMs());
  logger.info("distributed tracing setup enabled", {
    address: config.address,
    "service-name": config.serviceName,
    "service-instance-id": config.instanceId,
    "sampling-rate": config.samplingRate,
  });
  return {
    around: (table) => services.around(table),
    stop: async () => {
      const late = Promise.withResolvers<void>();
      const timer = clock.after(STOP_LIMIT_MS, late.resolve);
      await Promise.race([batches.close(), late.promise]);
      timer.cancel();
      client.close();
    },
  };
}
