/** What the service manager is told, in which order: by a systemd-notify that is slow at times. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { until } from "../../../test/support/until.ts";
import { supervisorOf } from "../node/supervisor.ts";

test("messages arrive in the order of the states, however long each takes", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-notify-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const log = join(dir, "log");
  writeFileSync(log, "");
  const slow = `#!/bin/sh
case "$*" in *waiting*|*RELOADING*) sleep 0.3;; esac
echo "$*" >> ${log}
`;
  writeFileSync(join(dir, "systemd-notify"), slow, { mode: 0o700 });
  const env = { NOTIFY_SOCKET: "/run/none", PATH: `${dir}:${process.env["PATH"]}` };
  const supervisor = supervisorOf(env, { clock: new ManualClock(), logger: silentLogger });
  supervisor.waiting();
  supervisor.ready();
  supervisor.reloading();
  supervisor.ready();
  supervisor.stopping();
  const states = (): string[] =>
    [...readFileSync(log, "utf8").matchAll(/STATUS=waiting|READY=1|RELOADING=1|STOPPING=1/g)].map(
      ([state]) => state,
    );
  await until("all were sent", () => states().length === 5);
  assert.deepEqual(states(), ["STATUS=waiting", "READY=1", "RELOADING=1", "READY=1", "STOPPING=1"]);
});
