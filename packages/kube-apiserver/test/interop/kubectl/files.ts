/** The scenarios and transcripts of this directory. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runScenario, type Stage } from "./run.ts";
import { parseScenarios, type Scenario } from "./scenario.ts";
import { kubectl, type Served } from "./tools.ts";

/** What Kubernetes' API server made kubectl print, by kubectl's minor release. */
export function transcriptPath(minor: number): string {
  return join(import.meta.dirname, `kubernetes-1.${minor}.txt`);
}

/** The scenarios whose name contains `only`. */
export function readScenarios(only = ""): Scenario[] {
  const text = readFileSync(join(import.meta.dirname, "scenarios.txt"), "utf8");
  return parseScenarios(text).filter(({ name }) => name.includes(only));
}

/** The normalised output of scenarios whose name contains `only`. */
export async function runAll(served: Served, only: string): Promise<Map<string, string>> {
  const stage: Stage = { kubectl: kubectl!, kubeconfig: served.kubeconfig };
  const texts = new Map<string, string>();
  for (const scenario of readScenarios(only)) {
    texts.set(scenario.name, await runScenario(stage, scenario));
  }
  return texts;
}

/** Why the output of scenarios differs, by their names. */
export function knownDifferences(): Map<string, string> {
  const text = readFileSync(join(import.meta.dirname, "differences.txt"), "utf8");
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(lines.map((line) => line.split(": ", 2) as [string, string]));
}
