/** Samples of the caches in Prometheus' text format (version 0.0.4). */
import type { MetricSample } from "@quorate/kube-storage";

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
export function sampleText(samples: readonly MetricSample[]): string {
  const byName = Map.groupBy(samples, ({ name }) => name);
  const parts = [...byName].map(([name, list]) => {
    const { type } = list[0];
    const head = `# HELP ${name} ${HELP[type]}\n# TYPE ${name} ${type}\n`;
    return `${head}${list.flatMap(linesOf).join("\n")}\n`;
  });
  return parts.join("\n");
}
