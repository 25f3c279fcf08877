/**
 * Metrics as text, in the format that Prometheus and its like read (version 0.0.4):
 *
 *     # HELP etcd_server_has_leader Whether or not a leader exists. 1 is existence, 0 is not.
 *     # TYPE etcd_server_has_leader gauge
 *     etcd_server_has_leader 1
 *
 * A member that is scraped answers nobody else meanwhile, so what does not change of a line, its name and labels, is made once.
 */
import { type Counter, Family, Gauge, Histogram, type Labels, type MetricRegistry } from "./registry.ts";

export const EXPOSITION_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Single = Counter | Gauge | Histogram;

/** The text of a registry, made afresh at each call. */
export class Exposition {
  readonly #registry: MetricRegistry;
  /** Of each metric, what stands before its values: one text, or one for each bucket, the sum and the count. */
  readonly #heads = new WeakMap<Single, readonly string[]>();

  constructor(registry: MetricRegistry) {
    this.#registry = registry;
  }

  text(): string {
    this.#registry.refresh();
    const parts: string[] = [];
    for (const { name, help, kind, metric } of this.#registry.entries) {
      parts.push(`# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${kind}\n`);
      if (!(metric instanceof Family)) this.#add(parts, name, {}, metric);
      else for (const { labels, metric: one } of metric.series.values()) this.#add(parts, name, labels, one);
    }
    return parts.join("");
  }

  #add(parts: string[], name: string, labels: Labels, metric: Single): void {
    let heads = this.#heads.get(metric);
    if (heads === undefined) {
      heads = metric instanceof Histogram ? histogramHeads(name, labels, metric) : [`${name}${labelText(labels)} `];
      this.#heads.set(metric, heads);
    }
    if (!(metric instanceof Histogram)) {
      const value = metric instanceof Gauge && metric.read !== undefined ? metric.read() : metric.value;
      parts.push(`${heads[0]}${valueText(value)}\n`);
      return;
    }
    let cumulative = 0;
    for (let i = 0; i < metric.counts.length; i++) {
      cumulative += metric.counts[i]!;
      parts.push(`${heads[i]}${cumulative}\n`);
    }
    const after = metric.counts.length;
    parts.push(`${heads[after]}${valueText(metric.sum)}\n${heads[after + 1]}${metric.count}\n`);
  }
}

function histogramHeads(name: string, labels: Labels, { bounds }: Histogram): string[] {
  const buckets = [...bounds.map(String), "+Inf"].map((le) => `${name}_bucket${labelText({ ...labels, le })} `);
  return [...buckets, `${name}_sum${labelText(labels)} `, `${name}_count${labelText(labels)} `];
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (char) => (char === "\n" ? "\\n" : `\\${char}`));
}

function escapeHelp(help: string): string {
  return help.replace(/[\\\n]/g, (char) => (char === "\n" ? "\\n" : "\\\\"));
}

function valueText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}
