/**
 * The queries of deploy/grafana/quorate.json, as Prometheus gets them: Grafana's variables stand
 * for something.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Panel {
  readonly targets?: readonly { readonly expr: string }[];
}

/** All queries of all panels, in order. Throws if the file is not a dashboard. */
export function dashboardQueries(): string[] {
  const path = join(import.meta.dirname, "../../deploy/grafana/quorate.json");
  const { panels } = JSON.parse(readFileSync(path, "utf8")) as {
    readonly panels: readonly Panel[];
  };
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  return queries.map((expr) =>
    expr.replaceAll("$__rate_interval", "5m").replaceAll(/\$(?:job|instance)/g, ".*"),
  );
}
