/**
 * SIGUSR1 opens Node's inspector, through which every local user runs code in the process. No
 * program of ours does that: each is started as an operator starts it, gets the signal, opens no
 * port and goes on; with Node's own flag for the inspector's port it opens that.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { launcherText } from "../../scripts/release/launcher.ts";
import { platforms } from "../../scripts/release/platform.ts";
import { releasePrograms } from "../../scripts/release/programs.ts";
import { endsWith } from "../support/children.ts";
import { startCluster } from "../support/cluster.ts";
import { freePorts } from "../support/ports.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";

const root = join(import.meta.dirname, "../..");
const scratch = mkdtempSync(join(tmpdir(), "quorate-signal-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
/** What Node writes when it opens its inspector, or cannot. */
const INSPECTOR = /Debugger listening|Starting inspector/;

interface Running {
  readonly child: ChildProcess;
  output(): string;
}

function start(
  t: TestContext,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Running {
  const child = endsWith(
    spawn(command[0], command.slice(1), {
      stdio: ["ignore", "pipe", "pipe"],
      cwd: scratch,
      env: { PATH: process.env["PATH"], HOME: scratch, ...env },
    }),
    t,
  );
  let output = "";
  for (const stream of [child.stdout!, child.stderr!])
    stream.on("data", (piece: Buffer) => (output += piece.toString()));
  return { child, output: () => output };
}

/** The ports on which a process listens, where the system shows them. */
function listening(pid: number): string[] {
  if (!existsSync(`/proc/${pid}/net/tcp`)) return [];
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return [];
      }
    }),
  );
  return ["tcp", "tcp6"]
    .flatMap((name) => readFileSync(`/proc/${pid}/net/${name}`, "utf8").trim().split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === "0A" && own.has(fields[9]!))
    .map((fields) => fields[1]!)
    .sort();
}

/** Sends the signal several times, and sees that nothing comes of it. */
async function isUnmoved({ child, output }: Running): Promise<void> {
  const before = listening(child.pid!);
  for (let i = 0; i < 5; i++) {
    child.kill("SIGUSR1");
    await delay(100);
  }
  assert.deepEqual([child.exitCode, child.signalCode], [null, null], output());
  assert.doesNotMatch(output(), INSPECTOR);
  assert.deepEqual(listening(child.pid!), before);
}

const says = (running: Running, text: RegExp): Promise<void> =>
  until(`${text} in the output`, () => {
    const { exitCode, signalCode } = running.child;
    if (exitCode !== null || signalCode !== null)
      throw new Error(`it ended (${exitCode ?? signalCode}): ${running.output()}`);
    return text.test(running.output());
  });

const node = (program: string): string[] => [process.execPath, join(root, "bin", program)];
const sh = (program: string): string[] => [join(root, "bin", program)];

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

for (const [way, command] of [
  ["by Node", node],
  ["by name", sh],
] as const) {
  test(`started ${way}, no program opens the inspector`, async (t) => {
    const cluster = await startCluster({ size: 1 });
    t.after(() => cluster.destroy());
    const endpoint = cluster.members[0]!.clientAddress;
    assert.equal((await runQuoratectl(cluster.endpoints, ["put", "a", "1"])).code, 0);
    const ports = await freePorts(3);
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
      [
        [
          ...command("quorate.js"),
          "apiserver",
          `--data-dir=${join(scratch, `api ${way}`)}`,
          `--etcd-servers=http://${endpoint}`,
          `--secure-port=${ports[2]}`,
        ],
        /export KUBECONFIG/,
      ],
      [[...command("quoratectl.js"), `--endpoints=${endpoint}`, "watch", "a", "--rev=1"], /PUT/],
    ];
    for (const [line, ready] of programs) {
      const running = start(t, line);
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
    writeFileSync(path, launcherText(program, platforms[0]!, undefined), { mode: 0o755 });
    writeFileSync(
      join(scratch, `release/lib/${program.name}.mjs`),
      'setInterval(() => {}, 1000); console.log("it runs");\n',
    );
    const running = start(t, [path]);
    await says(running, /it runs/);
    await isUnmoved(running);
    running.child.kill("SIGKILL");
    const asked = start(t, [path], { NODE_OPTIONS: "--inspect-port=127.0.0.1:0" });
    await says(asked, /it runs/);
    asked.child.kill("SIGUSR1");
    await says(asked, /Debugger listening on ws:\/\/127\.0\.0\.1:/);
    asked.child.kill("SIGKILL");
  }
});

test("who names the inspector's port gets it", async (t) => {
  for (const command of [node("quorate.js"), sh("quorate.js")]) {
    const running = start(t, [...command, ...(await memberFlags())], {
      NODE_OPTIONS: "--inspect-port=127.0.0.1:0",
    });
    await says(running, /ready to serve client requests/);
    running.child.kill("SIGUSR1");
    await says(running, /Debugger listening on ws:\/\/127\.0\.0\.1:/);
    running.child.kill("SIGKILL");
  }
});
