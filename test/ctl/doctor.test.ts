/**
 * quoratectl doctor on real members over real sockets: it finds nothing wrong with healthy
 * clusters, and each fault that is planted.
 * @slow
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { pathToFileURL } from "node:url";
import * as grpc from "@grpc/grpc-js";
import {
  AlarmRequest_AlarmAction,
  AlarmType,
  ClusterService,
  KVService,
  MaintenanceService,
  type MethodDescriptor,
  StatusResponse,
} from "@quorate/proto";
import { createAuthority, localHosts } from "../../scripts/certs.ts";
import { MemberDisk } from "../robustness/disks.ts";
import { leaderOf, statusOf, withClient } from "../support/checks.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { metric } from "../support/http.ts";
import type { TestMember } from "../support/member.ts";
import { shell } from "../support/operator-shell.ts";
import { freePorts } from "../support/ports.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";

interface Finding {
  readonly severity: string;
  readonly check: string;
  readonly member: string;
  readonly seen: string;
  readonly right: string;
  readonly next: string;
  readonly run: readonly string[];
}

interface Report {
  readonly healthy: boolean;
  readonly members: readonly { name: string; answers: boolean }[];
  readonly findings: readonly Finding[];
  readonly notes: readonly { member: string; text: string }[];
}

const scratch = mkdtempSync(join(tmpdir(), "quorate-doctor-"));
after(() => rmSync(scratch, { recursive: true }));

/** What the doctor says of a cluster. The exit code is that of its findings. */
async function doctor(endpoints: readonly string[], ...flags: string[]): Promise<Report> {
  const { code, stdout, stderr } = await runQuoratectl(endpoints, [
    "doctor",
    "-w",
    "json",
    "--command-timeout=30s",
    ...flags,
  ]);
  assert.equal(stderr, "");
  const report = JSON.parse(stdout) as Report;
  assert.equal(code, report.findings.length === 0 ? 0 : 1);
  assert.equal(report.healthy, code === 0);
  return report;
}

/**
 * Runs the doctor in an operator's shell, then each command that it prints as it stands there, in
 * the same shell, as a reader would.
 * @param fails commands that cannot succeed, because of what is wrong
 */
async function runPrinted(
  line: string,
  env: Readonly<Record<string, string>>,
  fails = /^$/,
): Promise<Report> {
  const said = await shell(scratch, `${line} -w json`, env);
  assert.equal(said.code, 1, said.output);
  const report = JSON.parse(said.output) as Report;
  for (const { check, member, run } of report.findings) {
    for (const command of run) {
      const isThere =
        spawnSync("sh", ["-c", `command -v ${/^(?:\w+=\S* )*(\S+)/.exec(command)![1]}`]).status ===
        0;
      if (!isThere && !command.includes("quoratectl")) continue;
      const { code, output } = await shell(scratch, command, env);
      const what = `${check} of ${member}: ${command}\n${output}`;
      assert.doesNotMatch(
        output,
        /conflicting environment|--help|unknown (?:flag|command)|cannot be resolved/,
        what,
      );
      if (!fails.test(command)) assert.equal(code, 0, what);
    }
  }
  return report;
}

/**
 * Asserts that there is a finding of this check for this member, which says what was seen; and that
 * it advises a command.
 */
function assertFound({ findings }: Report, check: string, member: string, seen: RegExp): void {
  const found = findings.find(
    (one) => one.check === check && one.member === member && seen.test(one.seen),
  );
  assert.ok(
    found !== undefined,
    `no finding ${check} of ${member} that says ${seen} among ${JSON.stringify(findings, null, 1)}`,
  );
  assert.ok(found.right !== "" && found.next !== "");
}

/**
 * Waits until every member is connected to every other: followers are ready before they have found
 * each other.
 */
async function connected(cluster: TestCluster): Promise<void> {
  for (const member of cluster.members) {
    const others = cluster.members.length - 1;
    await until(
      `${member.name} has its links`,
      async () => (await metric(cluster, member, "etcd_network_active_peers")) === others,
    );
  }
}

/**
 * Runs a command that must succeed, once the members' links are old enough for a change of the
 * membership.
 */
async function ctl(cluster: TestCluster, ...args: string[]): Promise<string> {
  let out = "";
  await until(args.join(" "), async () => {
    const { code, stdout, stderr } = await runQuoratectl(cluster.endpoints, [
      ...args,
      "--command-timeout=30s",
    ]);
    out = stdout;
    if (code !== 0) assert.match(stderr, /unhealthy cluster/);
    return code === 0;
  });
  return out;
}

/**
 * A gRPC endpoint that passes a member's answers on, but reports another version. The caller stops
 * it.
 */
async function impostor(
  cluster: TestCluster,
  member: TestMember,
  version: string,
): Promise<{ url: string; server: grpc.Server }> {
  const server = new grpc.Server();
  const passed = [
    ClusterService.methods.MemberList,
    MaintenanceService.methods.Alarm,
    MaintenanceService.methods.Status,
  ];
  const define = (method: MethodDescriptor): grpc.MethodDefinition<object, object> => ({
    path: method.path,
    requestStream: false,
    responseStream: false,
    requestSerialize: (value) => Buffer.from(method.requestType.encode(value)),
    requestDeserialize: (bytes) => method.requestType.decode(bytes),
    responseSerialize: (value) => Buffer.from(method.responseType.encode(value)),
    responseDeserialize: (bytes) => method.responseType.decode(bytes),
  });
  for (const method of passed as readonly MethodDescriptor[]) {
    const pass: grpc.handleUnaryCall<object, object> = (call, done) => {
      withClient(cluster, member, (client) => client.call(method, call.request)).then(
        (answer) =>
          done(
            null,
            method.responseType === StatusResponse
              ? { ...(answer as StatusResponse), version }
              : (answer as object),
          ),
        (error) => done(error as grpc.ServiceError),
      );
    };
    server.addService({ only: define(method) }, { only: pass });
  }
  const [port] = await freePorts(1);
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return { url: `http://127.0.0.1:${port}`, server };
}

async function put(
  cluster: TestCluster,
  member: TestMember,
  key: string,
  valueBytes: number,
): Promise<void> {
  await withClient(cluster, member, (client) =>
    client.call(
      KVService.methods.Put,
      { key: Buffer.from(key), value: randomBytes(valueBytes) },
      60_000,
    ),
  );
}

/** Variables for a member whose wall clock goes by a file. */
function clockEnv(file: string): Record<string, string> {
  writeFileSync(file, "0");
  const preload = pathToFileURL(join(import.meta.dirname, "../support/clock-shift.ts")).href;
  return { NODE_OPTIONS: `--import=${preload}`, QUORATE_TEST_CLOCK_SHIFT: file };
}

const QUOTA_BYTES = 8 * 1024 * 1024;

suite("a plain cluster", () => {
  let cluster: TestCluster;
  let learner: TestMember;
  const clockFile = join(scratch, "clock");
  const disk = new MemberDisk(join(scratch, "unused"), join(scratch, "disk"), false);

  after(() => cluster?.destroy());

  test("a healthy one has no finding", async () => {
    cluster = await startCluster({
      flags: [`--quota-backend-bytes=${QUOTA_BYTES}`],
      envOf: (name) => (name === "m1" ? clockEnv(clockFile) : name === "m2" ? disk.env : {}),
    });
    await connected(cluster);
    // How busy this machine's disk is right now is none of this test's business.
    const report = await doctor([cluster.members[0].clientUrl], "--fsync-limit=5s");
    assert.deepEqual(report.findings, []);
    assert.deepEqual(report.notes, []);
    assert.deepEqual(report.members.map(({ name, answers }) => [name, answers]).sort(), [
      ["m0", true],
      ["m1", true],
      ["m2", true],
    ]);
    const human = await runQuoratectl(
      [cluster.members[0].clientUrl],
      ["doctor", "--fsync-limit=5s"],
    );
    assert.equal(human.code, 0);
    assert.match(
      human.stdout,
      /^3 members, 3 of them respond; m\d leads in term \d+; version 3\.7\.0\n\nNothing is wrong\.\n$/,
    );
  });

  test("a wrong clock, a slow disk, a full quota, elections, an even number of voters, a learner, a version", async () => {
    const [m0, m1, m2] = cluster.members as [TestMember, TestMember, TestMember];
    writeFileSync(clockFile, "90000");
    for (let i = 0; i < 5; i++) {
      const leader = await leaderOf(cluster);
      const next = leader === m0 ? m1 : m0;
      const id = (await statusOf(cluster, next)).header!.memberId.toString(16);
      const { code, stderr } = await runQuoratectl([leader.clientUrl], ["move-leader", id]);
      assert.equal(code, 0, stderr);
    }
    // A disk is judged by many syncs.
    for (let i = 0; i < 60; i++) await put(cluster, m0, "quick", 10);
    disk.slow(250);
    for (let i = 0; i < 14; i++) await put(cluster, m0, `fill${i % 7}`, 512 * 1024);
    await until("the slow disk of m2 shows", async () => {
      await put(cluster, m0, "more", 10);
      return (await metric(cluster, m2, "etcd_disk_wal_fsync_duration_seconds_sum")) > 3;
    });
    learner = await cluster.prepareMember("m3");
    const added = await ctl(
      cluster,
      "member",
      "add",
      "m3",
      "--learner",
      `--peer-urls=${learner.options.peerUrl}`,
    );
    learner.start([
      `--initial-cluster=${/ETCD_INITIAL_CLUSTER="([^"]+)"/.exec(added)![1]}`,
      "--initial-cluster-state=existing",
    ]);
    await until("the learner has said its name", async () =>
      / started, m3, /.test(await ctl(cluster, "member", "list")),
    );
    await until("the learner serves", () =>
      statusOf(cluster, learner).then(
        () => true,
        () => false,
      ),
    );
    disk.slow(0);
    await ctl(cluster, "member", "add", "m4", "--peer-urls=http://127.0.0.1:1");
    const fake = await impostor(cluster, m0, "3.6.5");
    try {
      const report = await doctor([fake.url, m1.clientUrl]);
      assertFound(
        report,
        "clock",
        "m1",
        /^its clock is at least (?:8\d|90) s ahead of this machine's$/,
      );
      assertFound(
        report,
        "disk",
        "m2",
        /^1% of its log's syncs took longer than \d+ ms since it started/,
      );
      assertFound(report, "quota", "m1", /^8\d% of the quota is used: 7\.\d MB of 8\.4 MB$/);
      assertFound(report, "elections", "cluster", /^\d+ leader changes in an hour or less/);
      assertFound(report, "voters", "cluster", /^4 voters/);
      assertFound(report, "learner", "m3", /^is a learner that has caught up$/);
      assertFound(report, "version", "m0", /^version 3\.6\.5; others have 3\.7\.0$/);
      const unstarted = report.findings.find(({ check }) => check === "started");
      assert.match(unstarted?.member ?? "", /^[0-9a-f]+ \(http:\/\/127\.0\.0\.1:1\)$/);
      assert.match(unstarted!.seen, /^added as a voter, and never started$/);
      // The impostor has no metrics: it is said that they were not looked at.
      assert.match(
        report.notes.map(({ member, text }) => `${member}: ${text}`).join("\n"),
        /^m0: .*disk, clock and limits were not examined$/,
      );
    } finally {
      fake.server.forceShutdown();
    }
  });

  test("each command that is printed runs as it stands, with the endpoints exported; what it is for is done then", async () => {
    const env = { ETCDCTL_ENDPOINTS: cluster.members.map(({ clientUrl }) => clientUrl).join(",") };
    const before = await runPrinted("quoratectl doctor --member-timeout=30s", env);
    const checks = ({ findings }: Report) =>
      findings.map(({ check, member }) => `${check} ${member}`);
    for (const found of ["quota m1", "voters cluster", "learner m3"])
      assert.ok(checks(before).includes(found), JSON.stringify(before));
    assert.ok(before.findings.some(({ check }) => check === "started"));
    const [compaction] = before.findings.find(({ check }) => check === "quota")!.run;
    assert.match(
      compaction,
      /^ETCDCTL_ENDPOINTS=http:\S+ quoratectl compaction --physical [1-9]\d+$/,
    );
    // With the members named by a flag instead, the commands name them so as well.
    const named = (
      await shell(
        scratch,
        `quoratectl doctor --endpoints=${env.ETCDCTL_ENDPOINTS} --member-timeout=30s -w json`,
        {},
      )
    ).output;
    const after = JSON.parse(named) as Report;
    for (const gone of ["quota m1", "learner m3"])
      assert.ok(!checks(after).includes(gone), JSON.stringify(after));
    assert.ok(!after.findings.some(({ check }) => check === "started"), named);
    for (const { run } of after.findings)
      for (const line of run) assert.match(line, /^quoratectl --endpoints=http|^timedatectl/);
  });

  test("settings that differ are found: a quota, an election timeout, a feature gate", async () => {
    const [, m1] = cluster.members as [TestMember, TestMember, TestMember];
    await m1.kill();
    m1.start([
      `--quota-backend-bytes=${4 * QUOTA_BYTES}`,
      "--election-timeout=3000",
      "--feature-gates=CompactHashCheck=true",
      "--self-heal",
    ]);
    await cluster.waitReady();
    const report = await doctor([m1.clientUrl], "--fsync-limit=5s");
    assertFound(report, "quota", "m1", /^quota: 34 MB, most have 8\.4 MB$/);
    assertFound(report, "timing", "m1", /^election timeout: 3 s, most have 1 s$/);
    assertFound(report, "feature", "m1", /^feature gate CompactHashCheck: on, most have off$/);
    assertFound(report, "healing", "m1", /^--self-heal: on, most have off$/);
  });

  test("alarms, a frozen member, a dead one, and no leader", async () => {
    const [m0, m1, m2] = cluster.members as [TestMember, TestMember, TestMember];
    const id = (await statusOf(cluster, m0)).header!.memberId;
    await withClient(cluster, m2, (client) =>
      client.call(
        MaintenanceService.methods.Alarm,
        { action: AlarmRequest_AlarmAction.ACTIVATE, alarm: AlarmType.NOSPACE, memberID: id },
        60_000,
      ),
    );
    await withClient(cluster, m2, (client) =>
      client.call(
        MaintenanceService.methods.Alarm,
        { action: AlarmRequest_AlarmAction.ACTIVATE, alarm: AlarmType.CORRUPT, memberID: id },
        60_000,
      ),
    );
    m1.signal("SIGSTOP");
    await m0.kill();
    for (const member of [m2, learner]) {
      await until(`${member.name} knows that there is no leader, or is a learner`, async () => {
        const { leader, isLearner } = await statusOf(cluster, member);
        return leader === 0n || isLearner;
      });
    }
    const report = await doctor([m2.clientUrl], "--command-timeout=3s");
    assertFound(report, "alarm", "m0", /^the alarm NOSPACE/);
    assertFound(report, "alarm", "m0", /^the alarm CORRUPT/);
    assertFound(report, "reachable", "m0", /^does not respond at http:.*connection refused/);
    assertFound(report, "reachable", "m1", /^does not respond at http:/);
    assertFound(report, "leader", "cluster", /^no member has a leader/);
    assert.ok(
      report.findings.some(({ check, severity }) => check === "leader" && severity === "error"),
    );
    // Without a quorum, too, the commands run; those that ask the dead one or all of them fail,
    // because of what is wrong.
    await runPrinted(
      "quoratectl doctor --member-timeout=3s",
      { ETCDCTL_ENDPOINTS: m2.clientUrl },
      /health|hashkv|compaction|disarm|member list/,
    );
    m1.signal("SIGCONT");
  });
});

suite("a cluster with certificates", () => {
  let cluster: TestCluster;
  after(() => cluster?.destroy());

  function write(name: string, text: string): string {
    const path = join(scratch, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }

  /**
   * Starts a member again with another certificate on its client port, and another authority for
   * its clients.
   */
  async function restart(
    member: TestMember,
    caFile: string,
    { certPem, keyPem }: { certPem: string; keyPem: string },
  ): Promise<void> {
    const cert = write(`${member.name}.pem`, certPem);
    const key = write(`${member.name}-key.pem`, keyPem);
    const starts = (): number => member.log().split("ready to serve client requests").length;
    const before = starts();
    await member.kill();
    member.start([`--cert-file=${cert}`, `--key-file=${key}`, `--trusted-ca-file=${caFile}`]);
    await until(`${member.name} serves again`, () => starts() > before);
  }

  test("a healthy one has no finding", async () => {
    cluster = await startCluster({ tls: true });
    await connected(cluster);
    const { ca, client, clientKey } = cluster.certs!;
    const report = await doctor(
      [cluster.endpoints[0]],
      `--cacert=${ca}`,
      `--cert=${client}`,
      `--key=${clientKey}`,
      "--fsync-limit=5s",
    );
    assert.deepEqual(report.findings, []);
    assert.deepEqual(report.notes, []);
    assert.equal(report.members.length, 3);
  });

  test("top takes the same flags", async () => {
    const { ca, client, clientKey } = cluster.certs!;
    const flags = [
      `--cacert=${ca}`,
      `--cert=${client}`,
      `--key=${clientKey}`,
      "--member-timeout=30s",
      "--interval=100ms",
    ];
    const { code, stdout, stderr } = await runQuoratectl(
      [cluster.endpoints[0]],
      ["top", "--once", ...flags],
    );
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^quoratectl top {2}3 members {2}m\d leads in term \d+ /);
    assert.equal(stdout.match(/^m\d +(?:leader|follower) +\d/gm)?.length, 3, stdout);
  });

  test("one that expires, one of another authority, one of another name, and the client's own", async () => {
    const authority = await createAuthority("doctor-ca");
    const other = await createAuthority("other-ca");
    const caFile = write("ca.pem", authority.caPem);
    const client = await authority.issue({
      commonName: "short-lived",
      hosts: [],
      usage: "client",
      days: 3.5,
    });
    const own = [
      `--cacert=${caFile}`,
      `--cert=${write("client.pem", client.certPem)}`,
      `--key=${write("client-key.pem", client.keyPem)}`,
    ];
    const [m0, m1, m2] = cluster.members as [TestMember, TestMember, TestMember];
    await Promise.all([
      restart(
        m0,
        caFile,
        await authority.issue({
          commonName: "tomorrow",
          hosts: localHosts,
          usage: "both",
          days: 0.9,
        }),
      ),
      restart(
        m1,
        caFile,
        await other.issue({ commonName: "foreign", hosts: localHosts, usage: "both" }),
      ),
      restart(
        m2,
        caFile,
        await authority.issue({ commonName: "misnamed", hosts: ["db.example.org"], usage: "both" }),
      ),
    ]);
    const report = await doctor(cluster.endpoints, ...own, "--command-timeout=3s");
    assertFound(
      report,
      "certificate",
      "m0",
      /^the certificate of its client port \(tomorrow, issued by doctor-ca\) expires in 2\d hours, at 2/,
    );
    assertFound(
      report,
      "certificate",
      "m1",
      /\(foreign, issued by other-ca\) does not verify with the CA in --cacert/,
    );
    assertFound(
      report,
      "certificate",
      "m2",
      /\(misnamed, issued by doctor-ca\) is not valid for the name in https:.*IP: 127\.0\.0\.1 is not in the cert's list/,
    );
    assertFound(
      report,
      "certificate",
      "client",
      /^--cert .*client\.pem \(short-lived\) expires in 3 days, at 2/,
    );
    // What does not answer for its certificate's sake is not found twice.
    assert.deepEqual([...new Set(report.findings.map(({ check }) => check))], ["certificate"]);
  });
});

test("a store that takes much more space than what is in it", async () => {
  const cluster = await startCluster({ size: 1, flags: ["--max-request-bytes=4194304"] });
  try {
    const [member] = cluster.members as [TestMember];
    for (let i = 0; i < 26; i++) await put(cluster, member, "big", 3 * 1024 * 1024);
    const { revision } = (await statusOf(cluster, member)).header!;
    await ctl(cluster, "compaction", String(revision), "--physical");
    const { dbSize, dbSizeInUse } = await statusOf(cluster, member);
    const report = await doctor(cluster.endpoints, "--fsync-limit=5s");
    assertFound(
      report,
      "space",
      "m0",
      /^its store takes \d+ MB on the disk, for [\d.]+ MB in use$/,
    );
    assert.ok(dbSize > 2 * dbSizeInUse);
    // What is advised helps.
    await ctl(cluster, "defrag");
    assert.deepEqual((await doctor(cluster.endpoints, "--fsync-limit=5s")).findings, []);
  } finally {
    await cluster.destroy();
  }
});
