/**
 * The short part of the operator's walk: 3 members, a killed pod, a lost disk, under a load.
 * @slow
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { endsWith } from "../../../../test/support/children.ts";
import { ISOLATE, whyNoSandboxes } from "../../../../test/support/sandbox.ts";

test("the operator keeps a cluster whose history is linearizable", {
  skip: whyNoSandboxes(),
  timeout: 580_000,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-operator-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const walk = [process.execPath, join(import.meta.dirname, "walk.ts"), join(dir, "run"), "short"];
  const child = endsWith(
    spawn("unshare", [...ISOLATE, ...walk], { stdio: ["ignore", "pipe", "pipe"] }),
    t,
  );
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (bytes) => {
      text += bytes;
    });
  const code = await new Promise((resolve) => child.once("close", resolve));
  for (const line of text.trimEnd().split("\n")) t.diagnostic(line);
  const pods = join(dir, "run/pods");
  const logs = (existsSync(pods) ? readdirSync(pods) : [])
    .filter((name) => name.endsWith(".log"))
    .map((name) => {
      const lines = readFileSync(join(pods, name), "utf8").split("\n");
      return `--- ${name}\n${lines.slice(-15).join("\n")}`;
    });
  assert.equal(code, 0, code === 0 ? "" : [text, ...logs].join("\n"));
  assert.match(text, /lose a disk \| /);
});
