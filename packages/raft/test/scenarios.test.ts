/**
 * Protocol scenarios as text: scenarios/*.txt, in the language of scenario/lab.ts.
 * UPDATE_SCENARIOS=1 rewrites the results; review that change like any other.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { parseScenario, rewriteScenario } from "./scenario/file.ts";
import { Lab } from "./scenario/lab.ts";

const dir = new URL("scenarios/", import.meta.url);

for (const name of readdirSync(dir).sort()) {
  test(name, () => {
    const file = new URL(name, dir);
    const text = readFileSync(file, "utf8");
    const lab = new Lab();
    const now = rewriteScenario(parseScenario(text), (command) => lab.run(command));
    if (process.env["UPDATE_SCENARIOS"] === "1") writeFileSync(file, now);
    else assert.equal(now, text);
  });
}
