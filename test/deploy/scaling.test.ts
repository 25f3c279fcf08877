/**
 * The Helm chart's pods as processes: `helm upgrade` from 1 to 3 and 5 members and back, by what
 * helm rendered (rendered/, made by render-chart.ts), in network namespaces instead of Kubernetes,
 * which is not there. What Kubernetes does is in pods.ts.
 * @slow
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { endsWith } from "../support/children.ts";
import { findProgram } from "../support/executables.ts";
import { ISOLATE, whyNoSandboxes } from "../support/sandbox.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { chartHash, RENDERINGS, render, renderedFile } from "./render-chart.ts";

test("what the tests run is what helm makes of the chart", () => {
  for (const what of RENDERINGS) {
    const text = readFileSync(renderedFile(what), "utf8");
    const hint = `the chart has changed: node test/deploy/render-chart.ts (needs helm) renders ${what} again`;
    assert.equal(/^# quorate ([0-9a-f]{64})$/m.exec(text)?.[1], chartHash(), hint);
    const helm = findProgram("helm");
    if (helm !== undefined) assert.equal(text, render(helm, what), hint);
  }
});

test("helm upgrade to 1, 3 and 5 members, up and down, with a client that writes", {
  skip: whyNoSandboxes(),
  timeout: 580_000,
}, async (t) => {
  const dir = scratchDirectory("quorate-scaling-", t);
  mkdirSync(join(dir, "run"));
  const scenario = [
    process.execPath,
    join(import.meta.dirname, "scaling-scenario.ts"),
    join(dir, "run"),
  ];
  const child = endsWith(
    spawn("unshare", [...ISOLATE, ...scenario], { stdio: ["ignore", "pipe", "pipe"] }),
    t,
  );
  let text = "";
  child.stdout.on("data", (bytes) => {
    text += bytes;
  });
  child.stderr.on("data", (bytes) => {
    text += bytes;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  for (const line of text.trimEnd().split("\n")) t.diagnostic(line);
  const logs = () =>
    readdirSync(join(dir, "run"))
      .filter((name) => name.endsWith(".log"))
      .map(
        (name) =>
          `--- ${name}\n${readFileSync(join(dir, "run", name), "utf8")
            .split("\n")
            .slice(-15)
            .join("\n")}`,
      );
  assert.equal(code, 0, code === 0 ? "" : [text, ...logs()].join("\n"));
});
