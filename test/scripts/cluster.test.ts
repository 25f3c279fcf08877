/**
 * The start, stop and clean scripts, with a stand-in for the member.
 * @slow
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { after, afterEach, test } from "node:test";
import {
  cleanCluster,
  runningPid,
  startCluster,
  stopCluster,
} from "../../scripts/cluster/control.ts";
import {
  type ClusterPlan,
  localCluster,
  memberFlags,
  pidFile,
} from "../../scripts/cluster/layout.ts";
import {
  commandLineOf,
  hasEnded,
  isPortFree,
  type PortHolder,
  type PortView,
  portHolder,
  portTrouble,
} from "../../scripts/cluster/processes.ts";
import { restartRolling } from "../../scripts/cluster/rolling.ts";
import { clusterStatus, shownDuration } from "../../scripts/cluster/status.ts";
import { systemTrouble } from "../../scripts/cluster/trouble.ts";
import { endsWith } from "../support/children.ts";
import { freePorts } from "../support/ports.ts";
import { until } from "../support/until.ts";

const dir = mkdtempSync(join(tmpdir(), "quorate-cluster-"));
const said: string[] = [];
const say = (line: string): void => void said.push(line);
const words = (): string => said.splice(0).join("\n");

const ports = await freePorts(4);
const plan: ClusterPlan = {
  dir: join(dir, ".quorate"),
  token: "t",
  members: [
    { name: "m0", clientPort: ports[0], peerPort: ports[1] },
    { name: "m1", clientPort: ports[2], peerPort: ports[3] },
  ],
  command: [process.execPath, join(import.meta.dirname, "../support/fake-member.ts")],
};

afterEach(async () => {
  await stopCluster(plan, () => {});
});
after(() => rmSync(dir, { recursive: true }));

test("start, start again, stop, clean", async () => {
  assert.equal(await startCluster(plan, say), true, said.join("\n"));
  assert.match(words(), /making certificates[\s\S]*starting m0 \(pid \d+[\s\S]*m1 is healthy/);
  for (const name of ["certs", "data", "logs", "pids"])
    assert.equal(statSync(join(plan.dir, name)).mode & 0o777, 0o700, name);
  const pids = plan.members.map((member) => runningPid(plan, member));
  const certs = readFileSync(join(plan.dir, "certs/ca.pem"), "utf8");

  assert.equal(await startCluster(plan, say), true);
  assert.match(words(), /m0 is running already[\s\S]*m1 is running already/);
  assert.deepEqual(
    plan.members.map((member) => runningPid(plan, member)),
    pids,
  );

  assert.equal(await stopCluster(plan, say), true);
  assert.match(words(), /m0 stopped \(pid \d+[\s\S]*m1 stopped|m1 stopped[\s\S]*m0 stopped/);
  assert.equal(runningPid(plan, plan.members[0]), undefined);
  assert.equal(await stopCluster(plan, say), true);
  assert.equal(words(), "no member is running");

  assert.equal(await cleanCluster(plan, true, say), true);
  assert.equal(readFileSync(join(plan.dir, "certs/ca.pem"), "utf8"), certs);
  assert.ok(!existsSync(join(plan.dir, "data")));
  assert.equal(await cleanCluster(plan, false, say), true);
  assert.ok(!existsSync(join(plan.dir, "certs")));
  words();
});

test("a rolling restart takes one member after the other, the leader last, and each only when it is safe", async () => {
  await startCluster(plan, () => {});
  const before = plan.members.map((member) => runningPid(plan, member));
  const asked: string[] = [];
  const refusals = ["m1 is 9 entries behind", "m1 is 9 entries behind"];
  const questions = {
    role: async ({ name }: { name: string }) => (name === "m0" ? "leader" : "follower"),
    async againstRestart({ name }: { name: string }, other: { name: string }) {
      asked.push(`${name} at ${other.name}`);
      for (const member of plan.members) assert.ok(runningPid(plan, member) !== undefined);
      return name === "m1" ? refusals.pop() : undefined;
    },
  };
  words();
  assert.equal(await restartRolling(plan, say, questions), true);
  assert.deepEqual(asked, ["m1 at m0", "m1 at m0", "m1 at m0", "m0 at m1"]);
  assert.match(
    words(),
    /^m1 waits: m1 is 9 entries behind\nm1 stopped[^\n]*\nstarting m1[^\n]*\nm1 is healthy[^\n]*\nm0 stopped/,
  );
  const after = plan.members.map((member) => runningPid(plan, member));
  assert.ok(after.every((pid, i) => pid !== undefined && pid !== before[i]));

  // It never becomes safe: nothing is stopped.
  const never = { ...questions, againstRestart: async () => "m0 has no leader" };
  assert.equal(await restartRolling(plan, say, never, 0), false);
  assert.match(words(), /^m1 waits: m0 has no leader\ngave up after 0 s; m1 was not stopped$/);
  // Certificates that no member could be started with: nothing is stopped.
  rmSync(join(plan.dir, "certs/peer.pem"));
  assert.equal(await restartRolling(plan, say, questions), false);
  assert.match(words(), /peer\.pem is missing; .* run scripts\/restart\.sh --at-once$/);
  assert.deepEqual(
    plan.members.map((member) => runningPid(plan, member)),
    after,
  );
  await cleanCluster(plan, false, () => {});
});

test("a port in use is named with the process that holds it, and nothing starts", async () => {
  const holder = createServer();
  await new Promise<void>((resolve) =>
    holder.listen(plan.members[1].peerPort, "127.0.0.1", resolve),
  );
  try {
    assert.equal(await startCluster(plan, say), false);
    assert.match(
      words(),
      new RegExp(
        `port ${plan.members[1].peerPort}, the peer port of m1, is in use by pid ${process.pid}: .*cluster\\.test\\.ts`,
      ),
    );
    assert.equal(runningPid(plan, plan.members[0]), undefined);
    assert.equal(portHolder(plan.members[1].peerPort)?.pid, process.pid);
  } finally {
    await new Promise((resolve) => holder.close(resolve));
  }
  assert.equal(portHolder(plan.members[1].peerPort), undefined);
});

/**
 * Ports as they are while a process ends: in use for so many looks, by the process that `holder`
 * names.
 */
function portsThatStayInUse(
  looks: number,
  holder: PortHolder | undefined,
): PortView & { looked: number } {
  const view = {
    looked: 0,
    isFree: async () => ++view.looked > looks,
    holder: () => holder,
    ownUserId: () => 1000,
    delay: async () => {},
  };
  return view;
}

test("a port of a process that is ending is waited for; the error has what is known of the holder", async () => {
  const unseen = (userId: number | undefined): PortHolder => ({
    pid: undefined,
    command: undefined,
    userId,
  });
  for (const holder of [
    undefined,
    unseen(1000),
    unseen(0),
    { pid: 7, command: undefined, userId: 1000 },
  ]) {
    assert.equal(await portTrouble(4711, portsThatStayInUse(3, holder)), undefined);
  }
  const known = portsThatStayInUse(1000, { pid: 7, command: "etcd --name x", userId: 1000 });
  assert.equal(await portTrouble(4711, known), "is in use by pid 7: etcd --name x");
  assert.equal(known.looked, 1);
  const hint = 'as root, "ss -ltnp sport = :4711" shows it';
  for (const [holder, reported] of [
    [unseen(1000), `is in use by a process that cannot be determined; ${hint}`],
    [unseen(undefined), `is in use by a process that cannot be determined; ${hint}`],
    [unseen(104), `is in use by a process of the user with the id 104; ${hint}`],
    [{ pid: 7, command: undefined, userId: 1000 }, "is in use by pid 7, which is ending"],
    [
      undefined,
      "is in use, but no process listens there: a connection of another program may use it as its own port",
    ],
  ] as const) {
    const view = portsThatStayInUse(1000, holder);
    assert.equal(await portTrouble(4711, view), reported);
    assert.ok(view.looked < 200);
  }
});

test("a process has ended when all of its threads have, whether or not its parent has looked", {
  skip: process.platform === "linux" ? false : "/proc is Linux's",
}, async () => {
  // The shell becomes a program that never looks at its child, so the child stays a corpse. The
  // child lives until then, as a shell may look at a child that ends before.
  const parent = endsWith(
    spawn("sh", ["-c", "cat <&3 & echo $!; exec sleep 600"], {
      stdio: ["ignore", "pipe", "inherit", "pipe"],
    }),
  );
  const child = Number(
    await new Promise<string>((resolve) =>
      parent.stdout?.once("data", (data) => resolve(String(data))),
    ),
  );
  await until(
    "the shell is another program",
    () => commandLineOf(parent.pid!)?.startsWith("sleep ") === true,
  );
  assert.equal(hasEnded(child), false);
  (parent.stdio[3] as Writable).end();
  await until("the child has ended", () => commandLineOf(child) === undefined);
  await until("nothing of it lives", () => hasEnded(child));
  assert.ok(existsSync(`/proc/${child}`), "the corpse is there");
  assert.equal(hasEnded(parent.pid!), false);
  assert.equal(hasEnded(process.pid), false);
  assert.equal(hasEnded(2 ** 30), true);
  const gone = new Promise((resolve) => parent.once("exit", resolve));
  parent.kill("SIGKILL");
  await gone;
});

test("a member's ports are free once it is said to have stopped", async () => {
  for (let round = 0; round < 10; round++) {
    assert.equal(await startCluster(plan, say), true, said.join("\n"));
    assert.equal(await stopCluster(plan, say), true, said.join("\n"));
    for (const { clientPort } of plan.members)
      assert.equal(await isPortFree(clientPort), true, `round ${round}`);
  }
  words();
});

test("status shows members that run, that stand still and that are down, and its result is their health", async () => {
  const many = await freePorts(6);
  const real: ClusterPlan = {
    dir: join(dir, "real"),
    token: "t",
    members: [0, 1, 2].map((i) => ({
      name: `m${i}`,
      clientPort: many[2 * i],
      peerPort: many[2 * i + 1],
    })),
    command: [process.execPath, join(import.meta.dirname, "../../bin/quorate.js")],
  };
  const status = async (): Promise<[boolean, string[][], string[]]> => {
    const good = await clusterStatus(real, say, Date.now());
    const lines = words().split("\n");
    return [good, lines.slice(1, 4).map((line) => line.split(/ {2,}/)), lines.slice(4)];
  };
  try {
    let [good, rows, notes] = await status();
    assert.equal(good, false);
    assert.deepEqual(rows[0], [
      "m0",
      "-",
      "-",
      `https://127.0.0.1:${many[0]}`,
      "down",
      "-",
      "-",
      "-",
    ]);
    assert.match(notes[0], /^m0: it does not run; scripts\/start-all\.sh starts it$/);
    assert.equal(await startCluster(real, say), true, said.join("\n"));
    words();
    [good, rows, notes] = await status();
    assert.deepEqual([good, notes], [true, []]);
    assert.deepEqual(rows.map((row) => row[2]).sort(), ["follower", "follower", "leader"]);
    for (const [i, row] of rows.entries()) {
      assert.deepEqual(
        [row[0], row[1], row[4], row[6]],
        [`m${i}`, String(runningPid(real, real.members[i])), "healthy", "3.7.0"],
      );
      assert.match(row[5], /^[\d.]+ [kM]?B$/);
      assert.match(row[7], /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(\d.*s\)$/);
    }
    const [still, down] = [0, 1].map((i) => runningPid(real, real.members[i])!) as [number, number];
    process.kill(down, "SIGKILL");
    await until("m1 is gone", () => hasEnded(down));
    process.kill(still, "SIGSTOP");
    try {
      [good, rows, notes] = await status();
    } finally {
      process.kill(still, "SIGCONT");
    }
    assert.equal(good, false);
    assert.deepEqual([rows[0][1], rows[0][2], rows[0][4]], [String(still), "-", "unhealthy"]);
    assert.deepEqual([rows[1][1], rows[1][4]], ["-", "down"]);
    assert.deepEqual(notes.map((note) => note.split(":")[0]).slice(0, 2), ["m0", "m1"]);
  } finally {
    assert.equal(await stopCluster(real, say), true, said.join("\n"));
    words();
  }
  assert.deepEqual([45_000, 190_000, 7_500_000, 349_200_000].map(shownDuration), [
    "45s",
    "3m 10s",
    "2h 5m",
    "4d 1h",
  ]);
});

test("a pid file that names another process is stale: that process lives on", async () => {
  const outsider = endsWith(
    spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" }),
  );
  const gone = new Promise((resolve) => outsider.on("exit", resolve));
  const member = plan.members[0];
  mkdirSync(join(plan.dir, "pids"), { recursive: true });
  try {
    for (const text of [`${outsider.pid}\n`, "1\n", "-1\n", "rubbish"]) {
      writeFileSync(pidFile(plan, member), text);
      assert.equal(runningPid(plan, member), undefined, text);
    }
    writeFileSync(pidFile(plan, member), `${outsider.pid}\n`);
    assert.equal(await startCluster(plan, say), true, said.join("\n"));
    assert.match(words(), /m0: its pid file is stale/);
    process.kill(outsider.pid!, 0);
  } finally {
    outsider.kill("SIGKILL");
    await gone;
  }
  assert.equal(outsider.signalCode, "SIGKILL");
});

test("a member that dies while starting is reported with its last words", async () => {
  process.env["FAKE_MEMBER_DIES"] = "m1";
  try {
    assert.equal(await startCluster(plan, say), false);
  } finally {
    delete process.env["FAKE_MEMBER_DIES"];
  }
  assert.match(
    words(),
    /m1 died while starting\n--- last lines of .*m1\.log\n[\s\S]*cannot go on\n---/,
  );
});

test("beside members that run, one without data joins their cluster; a learner is no trouble", async () => {
  rmSync(join(plan.dir, "logs"), { recursive: true, force: true });
  const lastHello = (): string | undefined =>
    readFileSync(join(plan.dir, "logs/m1.log"), "utf8").trimEnd().split("\n").at(-1);
  assert.equal(await startCluster(plan, say), true);
  assert.equal(lastHello(), "m1 says hello to a cluster that is new");
  await stopCluster(plan, () => {}, [plan.members[1]]);
  process.env["FAKE_MEMBER_LEARNS"] = "m1";
  try {
    assert.equal(await startCluster(plan, say), true);
  } finally {
    delete process.env["FAKE_MEMBER_LEARNS"];
  }
  assert.equal(lastHello(), "m1 says hello to a cluster that is existing");
  assert.match(words(), /m1 runs as a learner; "quoratectl member promote ID" makes it a voter$/);
});

test("variables of the caller that a flag would shadow are not handed to members; others are", async () => {
  const variables = {
    ETCD_DATA_DIR: "/elsewhere",
    ETCD_CONFIG_FILE: "/elsewhere.yml",
    ETCD_LOG_LEVEL: "debug",
  };
  Object.assign(process.env, variables);
  rmSync(join(plan.dir, "logs"), { recursive: true, force: true });
  try {
    assert.equal(await startCluster(plan, say), true, said.join("\n"));
  } finally {
    for (const name of Object.keys(variables)) delete process.env[name];
  }
  assert.match(
    readFileSync(join(plan.dir, "logs/m1.log"), "utf8"),
    /^m1 says hello to a cluster that is new\nvariable ETCD_LOG_LEVEL\n$/,
  );
  words();
});

test("what the system refuses is one line with the path and what to do", () => {
  const file = join(dir, "file");
  writeFileSync(file, "");
  for (const [command, directory, expected] of [
    [
      "start",
      file,
      `${file}: a file stands where a directory should be; name a directory with --dir (EEXIST, mkdir)\n`,
    ],
    [
      "stop",
      join(file, "x"),
      `${join(file, "x")}: a part of the path is a file; name a directory with --dir (ENOTDIR, mkdir)\n`,
    ],
  ] as const) {
    const tool = join(import.meta.dirname, "../../scripts/cluster.ts");
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [tool, command, "--dir", directory],
      { encoding: "utf8" },
    );
    assert.deepEqual({ status, stdout, stderr }, { status: 1, stdout: "", stderr: expected });
  }
  const error = (code: string, syscall: string, path?: string): Error =>
    Object.assign(new Error("words"), { code, syscall, path });
  assert.match(
    systemTrouble(error("ENOSPC", "write"), "/d")!,
    /^\/d: no space left on the disk; free some, .* \(ENOSPC, write\)$/,
  );
  assert.match(
    systemTrouble(error("EACCES", "open", "/d/lock"), "/d")!,
    /^\/d\/lock: permission denied; run this as the user/,
  );
  assert.match(
    systemTrouble(error("EPERM", "kill"), "/d")!,
    /^a member's process: not permitted; run this as the user/,
  );
  assert.equal(systemTrouble(error("EMFILE", "open", "/d"), "/d"), "/d: words (EMFILE, open)");
  assert.equal(systemTrouble(new TypeError("a bug"), "/d"), undefined);
});

test("the real plan is the documented one", () => {
  const real = localCluster("/repository/.quorate");
  assert.deepEqual(memberFlags(real, real.members[1], "new").slice(0, 9), [
    "--name=infra1",
    "--data-dir=/repository/.quorate/data/infra1",
    "--listen-client-urls=https://127.0.0.1:4379",
    "--advertise-client-urls=https://127.0.0.1:4379",
    "--listen-peer-urls=https://127.0.0.1:4380",
    "--initial-advertise-peer-urls=https://127.0.0.1:4380",
    "--initial-cluster=infra0=https://127.0.0.1:3380,infra1=https://127.0.0.1:4380,infra2=https://127.0.0.1:5380",
    "--initial-cluster-token=etcd-cluster-1",
    "--initial-cluster-state=new",
  ]);
});
