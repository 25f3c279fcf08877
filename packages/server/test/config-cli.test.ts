import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { isIPv4 } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { scratchDirectory } from "../../../test/support/scratch.ts";
import { type Invoked, invoke } from "../node/cli/invoke.ts";
import {
  defaultHost,
  defaultRouteInterface,
  readTextFile,
  resolveHost,
} from "../node/cli/surroundings.ts";

const scratch = scratchDirectory("quorate-config-");

async function call(
  ...argv: string[]
): Promise<{ invoked: Invoked; stdout: string; stderr: string }> {
  const said = { stdout: "", stderr: "" };
  const invoked = await invoke(
    argv,
    {},
    { quorate: "0.1.0", etcd: "3.7.0" },
    {
      stdout: (text) => void (said.stdout += text),
      stderr: (text) => void (said.stderr += text),
    },
  );
  return { invoked, ...said };
}

test("--help and --version are printed to standard output and end with 0", async () => {
  const help = await call("--help");
  assert.deepEqual(help.invoked, { kind: "exit", code: 0 });
  assert.match(help.stdout, /^quorate: .*\nUsage:/s);
  const version = await call("--version");
  assert.deepEqual(version.invoked, { kind: "exit", code: 0 });
  assert.equal(
    version.stdout,
    `quorate Version: 0.1.0\netcd Version: 3.7.0\nNode Version: ${process.version}\nNode OS/Arch: ${process.platform}/${process.arch}\n`,
  );
});

test("mistakes are printed to standard error and end with 2 or 1", async () => {
  const flag = await call("--nmae=x");
  assert.deepEqual(flag.invoked, { kind: "exit", code: 2 });
  assert.equal(
    flag.stderr,
    "quorate: flag provided but not defined: --nmae (did you mean --name?)\nRun quorate --help for the flags.\n",
  );
  const value = await call("--heartbeat-interval=0");
  assert.deepEqual(value.invoked, { kind: "exit", code: 1 });
  assert.equal(value.stderr, "quorate: --heartbeat-interval must be >0 (set to 0ms)\n");
  const file = await call(`--config-file=${scratch}/absent`);
  assert.equal(
    file.stderr,
    `quorate: cannot read the configuration file ${scratch}/absent: no such file or directory\n`,
  );
});

test("a member to start comes with its configuration, and nothing is written", async () => {
  const file = join(scratch, "q.yaml");
  writeFileSync(file, `name: a\ndata-dir: ${scratch}/data\n`);
  const { invoked, stdout, stderr } = await call("--config-file", file);
  assert.equal(invoked.kind === "run" && invoked.config.dataDir, `${scratch}/data`);
  assert.equal(stdout + stderr, "");
  assert.deepEqual(readdirSync(scratch), ["q.yaml"]);
});

test("the default route's interface is read from the kernel's table", () => {
  const head =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
  const local = "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
  assert.equal(
    defaultRouteInterface(
      `${head}${local}eth1\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n`,
    ),
    "eth1",
  );
  assert.equal(defaultRouteInterface(head + local), undefined);
  const host = defaultHost();
  assert.ok(host === undefined || (isIPv4(host) && !host.startsWith("127.")), `${host}`);
});

test("files and hosts give the system's reason when they fail", async () => {
  assert.throws(() => readTextFile(join(scratch, "absent")), {
    message: "no such file or directory",
  });
  assert.equal(await resolveHost("127.0.0.1"), "127.0.0.1");
});
