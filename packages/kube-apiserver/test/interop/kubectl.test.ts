/**
 * kubectl with the API server. `./dev compare kubectl` runs all scenarios; some of them run here.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { knownDifferences, readScenarios, transcriptPath } from "./kubectl/files.ts";
import { runScenario } from "./kubectl/run.ts";
import { parseTranscript } from "./kubectl/scenario.ts";
import { kubectl, minorOf, type Served, serveOurs } from "./kubectl/tools.ts";

const SCENARIOS = ["apply on the server's side", "watch and wait", "custom resources"];

const minor = kubectl === undefined ? undefined : minorOf(kubectl);

function skipReason(): string | false {
  if (kubectl === undefined) return "kubectl is not installed (KUBECTL names one)";
  if (minor === undefined || !existsSync(transcriptPath(minor))) {
    return `there is no transcript of kubectl 1.${minor} (KUBECTL names another one)`;
  }
  return false;
}

const skip = skipReason();
let served: Served | undefined;

before(async () => {
  if (skip === false) served = await serveOurs();
});

after(() => served?.[Symbol.asyncDispose]());

for (const name of SCENARIOS) {
  test(`kubectl prints what it prints with Kubernetes: ${name}`, { skip }, async () => {
    const scenario = readScenarios().find((each) => each.name === name)!;
    const stage = { kubectl: kubectl!, kubeconfig: served!.kubeconfig };
    const expected = parseTranscript(readFileSync(transcriptPath(minor!), "utf8")).get(name);
    assert.equal(await runScenario(stage, scenario), expected);
  });
}

test("each known difference names a scenario", () => {
  const names = readScenarios().map(({ name }) => name);
  for (const [name, reason] of knownDifferences()) {
    assert.ok(names.includes(name) && reason.length > 0, name);
  }
});
