/** /metrics: the server's own, its storages', its engine's and its process's. */

import type { MetricSample } from "@quorate/kube-storage";
import { MetricRegistry } from "@quorate/metrics";
import { defined } from "@quorate/proto";
import type { EngineServer } from "@quorate/rpc/node";
import type { ControlPlane } from "../src/server/control-plane.ts";
import type { Page } from "../src/server/routes.ts";

type Counters = ReturnType<EngineServer["counters"]>;

/**
 * The page; what writes it is loaded at the first scrape.
 * @param own what the calls to the cluster, and the audit log, are counted in
 * @param onClose is called with what ends the measuring of the process
 */
export function metricsPages(
  plane: ControlPlane,
  own: readonly MetricRegistry[],
  counters: () => Counters,
  onClose: (task: () => void) => void,
): ReadonlyMap<string, Page> {
  let exposition: Promise<{ contentType: string; text: () => Promise<string> }> | undefined;
  const counts = new MetricRegistry();
  const objects = counts.gauges("apiserver_storage_objects", "Stored objects.", ["resource"]);
  const page: Page = async (call) => {
    exposition ??= load(plane, [counts, ...own], counters, onClose);
    for (const { spec, count } of await plane.storages.counts()) {
      const { group } = spec.kind;
      objects.with(group === "" ? spec.resource : `${spec.resource}.${group}`).value = count;
    }
    const { contentType, text } = await exposition;
    call.respond(200, { "content-type": contentType }, await text());
  };
  return new Map([["/metrics", page]]);
}

async function load(
  plane: ControlPlane,
  others: readonly MetricRegistry[],
  counters: () => Counters,
  onClose: (task: () => void) => void,
) {
  const [{ processMetrics, prometheusExposition }, { engineMetrics }] = await Promise.all([
    import("@quorate/metrics/node"),
    import("@quorate/rpc/node"),
  ]);
  const process = new MetricRegistry();
  engineMetrics(process, counters);
  onClose(processMetrics(process));
  const first = prometheusExposition(plane.server.metrics.registry);
  const more = [...others, process].map((registry) => prometheusExposition(registry));
  return {
    contentType: first.contentType,
    text: async () => {
      const texts = await Promise.all([first, ...more].map((part) => part.text()));
      return [...texts, sampleText(plane.storages.samples())].join("\n");
    },
  };
}

const HELP: Readonly<Record<string, string>> = {
  counter: "Counts events of a watch cache.",
  gauge: "A figure of a watch cache.",
  histogram: "Times of a watch cache.",
};

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) =>
      `${name}="${value.replace(/[\\"\n]/g, (c) => (c === "\n" ? "\\n" : `\\${c}`))}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function linesOf({ name, type, labels, value, sum, buckets = [] }: MetricSample): string[] {
  if (type !== "histogram") return [`${name}${labelText(labels)} ${value}`];
  const bucket = (le: string, count: number): string =>
    `${name}_bucket${labelText({ ...labels, le })} ${count}`;
  return [
    ...buckets.map(({ upTo, count }) => bucket(String(upTo), count)),
    bucket("+Inf", value),
    `${name}_sum${labelText(labels)} ${sum ?? 0}`,
    `${name}_count${labelText(labels)} ${value}`,
  ];
}

/** The samples of all caches, those of one name together. */
function sampleText(samples: readonly MetricSample[]): string {
  const byName = Map.groupBy(samples, ({ name }) => name);
  const parts = [...byName].map(([name, list]) => {
    const { type } = defined(list[0], "a sample");
    const head = `# HELP ${name} ${HELP[type]}\n# TYPE ${name} ${type}\n`;
    return `${head}${list.flatMap(linesOf).join("\n")}\n`;
  });
  return parts.join("\n");
}
