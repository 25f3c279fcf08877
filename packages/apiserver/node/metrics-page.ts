/** /metrics: the server's own, its storages', its engine's and its process's. */
import type { EngineServer } from "@quorate/rpc/node";
import { MetricRegistry } from "@quorate/server";
import type { ControlPlane } from "../src/server/control-plane.ts";
import type { Page } from "../src/server/routes.ts";

type Counters = ReturnType<EngineServer["counters"]>;

/** The page; what writes it is loaded at the first scrape. */
export function metricsPages(
  plane: ControlPlane,
  counters: () => Counters,
): ReadonlyMap<string, Page> {
  let exposition: Promise<{ contentType: string; text: () => Promise<string> }> | undefined;
  const counts = new MetricRegistry();
  const objects = counts.gauges("apiserver_storage_objects", "Stored objects.", ["resource"]);
  const page: Page = async (call) => {
    exposition ??= load(plane, counts, counters);
    for (const { spec, count } of await plane.storages.counts()) {
      const { group } = spec.kind;
      objects.with(group === "" ? spec.resource : `${spec.resource}.${group}`).value = count;
    }
    const { contentType, text } = await exposition;
    call.respond(200, { "content-type": contentType }, await text());
  };
  return new Map([["/metrics", page]]);
}

async function load(plane: ControlPlane, counts: MetricRegistry, counters: () => Counters) {
  const { engineMetrics, processMetrics, prometheusExposition } = await import(
    "@quorate/server/node"
  );
  const process = new MetricRegistry();
  engineMetrics(process, counters);
  processMetrics(process);
  const parts = [plane.server.metrics.registry, counts, process].map(prometheusExposition);
  return {
    contentType: parts[0].contentType,
    text: async () => (await Promise.all(parts.map((part) => part.text()))).join("\n"),
  };
}
