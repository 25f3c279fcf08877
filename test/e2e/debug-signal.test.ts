/**
 * SIGUSR1 opens Node's inspector, through which every local user runs code in the process. No
 * program of ours does that: each is started as an operator starts it, gets the signal, opens no
 * port and goes on; with Node's own flag for the inspector's port it opens that.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { launcherText } from "../../scripts/release/launcher.ts";
import { platforms } from "../../scripts/release/platform.ts";
import { releasePrograms } from "../../scripts/release/programs.ts";
import { startCluster } from "../support/cluster.ts";
import { isUnmoved, says, start, WAYS } from "../support/debug-signal.ts";
import { freePorts } from "../support/ports.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { scratchDirectory } from "../support/scratch.ts";

const scratch = scratchDirectory("quorate-signal-");
async function memberFlags(): Promise<string[]> {
  const [client, peer] = await freePorts(2);
  return [
    `--data-dir=${mkdtempSync(join(scratch, "member-"))}`,
    `--listen-client-urls=http://127.0.0.1:${client}`,
    `--advertise-client-urls=http://127.0.0.1:${client}`,
    `--listen-peer-urls=http://127.0.0.1:${peer}`,
    `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
    `--initial-cluster=default=http://127.0.0.1:${peer}`,
  ];
}

for (const [way, command] of WAYS) {
  test(`started ${way}, no program opens the inspector`, async (t) => {
    const cluster = await startCluster({ size: 1 });
    t.after(() => cluster.destroy());
    const endpoint = cluster.members[0].clientAddress;
    assert.equal((await runQuoratectl(cluster.endpoints, ["put", "a", "1"])).code, 0);
    const ports = await freePorts(2);
    const programs: [string[], RegExp][] = [
      [[...command("quorate.js"), ...(await memberFlags())], /ready to serve client requests/],
      [
        [
          ...command("quorate.js"),
          "gateway",
          "start",
          `--endpoints=${endpoint}`,
          `--listen-addr=127.0.0.1:${ports[0]}`,
        ],
        /ready to proxy client requests/,
      ],
      [
        [
          ...command("quorate.js"),
          "grpc-proxy",
          "start",
          `--endpoints=${endpoint}`,
          `--listen-addr=127.0.0.1:${ports[1]}`,
        ],
        /started gRPC proxy/,
      ],
      [[...command("quoratectl.js"), `--endpoints=${endpoint}`, "watch", "a", "--rev=1"], /PUT/],
    ];
    for (const [line, ready] of programs) {
      const running = start(t, scratch, line);
      await says(running, ready);
      await isUnmoved(running);
      running.child.kill("SIGKILL");
    }
  });
}

test("a release's launchers do not open it either", async (t) => {
  // As a release's directory: the launcher, its Node, and programs that only wait.
  for (const name of ["bin", "lib"]) mkdirSync(join(scratch, "release", name), { recursive: true });
  symlinkSync(process.execPath, join(scratch, "release/lib/node"));
  for (const program of releasePrograms()) {
    const path = join(scratch, "release/bin", program.name);
    writeFileSync(path, launcherText(program, platforms[0], undefined), { mode: 0o755 });
    writeFileSync(
      join(scratch, `release/lib/${program.name}.mjs`),
      'setInterval(() => {}, 1000); console.log("it runs");\n',
    );
    const running = start(t, scratch, [path]);
    await says(running, /it runs/);
    await isUnmoved(running);
    running.child.kill("SIGKILL");
    const asked = start(t, scratch, [path], { NODE_OPTIONS: "--inspect-port=127.0.0.1:0" });
    await says(asked, /it runs/);
    asked.child.kill("SIGUSR1");
    await says(asked, /Debugger listening on ws:\/\/127\.0\.0\.1:/);
    asked.child.kill("SIGKILL");
  }
});

test("who names the inspector's port gets it", async (t) => {
  for (const [, command] of WAYS) {
    const running = start(t, scratch, [...command("quorate.js"), ...(await memberFlags())], {
      NODE_OPTIONS: "--inspect-port=127.0.0.1:0",
    });
    await says(running, /ready to serve client requests/);
    running.child.kill("SIGUSR1");
    await says(running, /Debugger listening on ws:\/\/127\.0\.0\.1:/);
    running.child.kill("SIGKILL");
  }
});
