/** A Prometheus of a test's own, which scrapes members each second. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";
import { skipWithout } from "./executables.ts";
import { freePorts } from "./ports.ts";

export const skipWithoutPrometheus = skipWithout(
  "prometheus",
  "Debian: apt-get install prometheus",
);

/** What to scrape, and with which rules. */
export interface PrometheusOptions {
  /** For its configuration and data; the caller removes it. */
  readonly dir: string;
  /** The job's name, which rules select by. */
  readonly job: string;
  /** host:port of each member. */
  readonly targets: readonly string[];
  /** Paths of rule files. */
  readonly rules: readonly string[];
}

/** One series of an instant query: labels, and the value as a number. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Alert {
  readonly name: string;
  readonly state: "pending" | "firing";
  readonly labels: Readonly<Record<string, string>>;
}

export interface Prometheus {
  /** An instant query. Throws with Prometheus' own words where it has an error. */
  query(expr: string): Promise<Sample[]>;
  /** Alerts whose expression holds at present. */
  alerts(): Promise<Alert[]>;
  close(): Promise<void>;
}

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data: {
    readonly result: readonly {
      readonly metric: Record<string, string>;
      readonly value: readonly [number, string];
    }[];
    readonly alerts: readonly {
      readonly state: Alert["state"];
      readonly labels: Record<string, string>;
    }[];
  };
}

/** Starts it; it may not answer yet. */
export async function startPrometheus(options: PrometheusOptions): Promise<Prometheus> {
  const { dir, job, targets, rules } = options;
  const config = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: rules,
    scrape_configs: [{ job_name: job, static_configs: [{ targets }] }],
  };
  writeFileSync(join(dir, "prometheus.yml"), JSON.stringify(config));
  const [port] = await freePorts(1);
  const child = spawn(
    "prometheus",
    [
      `--config.file=${join(dir, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(dir, "tsdb")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: "ignore" },
  );
  const gone = new Promise((resolve) => child.once("exit", resolve));
  const api = async (path: string): Promise<Answer["data"]> => {
    const { body } = await request(`http://127.0.0.1:${port}/api/v1/${path}`);
    const answer = (await body.json()) as Answer;
    if (answer.status !== "success") throw new Error(`${path}: ${answer.error}`);
    return answer.data;
  };
  return {
    async query(expr) {
      const { result } = await api(`query?query=${encodeURIComponent(expr)}`);
      return result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
    },
    async alerts() {
      const { alerts } = await api("alerts");
      return alerts.map(({ state, labels }) => ({ name: labels["alertname"], state, labels }));
    },
    async close() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}
