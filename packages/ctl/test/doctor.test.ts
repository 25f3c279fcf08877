/**
 * The doctor's findings on constructed views; test/ctl/doctor.test.ts plants faults in real
 * clusters.
 */
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { painted, plain, readCommandLine, runProgram } from "@quorate/cli";
import { FakeIo } from "@quorate/cli/testing";
import { Member, ResponseHeader, StatusResponse } from "@quorate/proto";
import { commandMaker } from "../src/doctor/commands.ts";
import { diagnose } from "../src/doctor/diagnose.ts";
import { look } from "../src/doctor/look.ts";
import { humanReport } from "../src/doctor/report.ts";
import { reasonsAgainstRestart } from "../src/doctor/restart-safe.ts";
import { probeDisk } from "../src/doctor/run.ts";
import type { ClusterView, MemberView } from "../src/doctor/view.ts";
import { MetricsText } from "../src/observe/metrics-text.ts";
import { quoratectl } from "../src/quoratectl.ts";
import { endpointOf, FakeProber, fakeMember } from "./top-support.ts";

const NOW_MS = Date.UTC(2026, 10, 22);
const DAY_MS = 86_400_000;

function member(
  n: number,
  parts: Partial<MemberView> = {},
  status: Partial<StatusResponse> = {},
): MemberView {
  const header = ResponseHeader.create({ memberId: BigInt(n), clusterId: 9n });
  return {
    label: `m${n}`,
    endpoint: `https://h${n}:2379`,
    member: Member.create({
      ID: BigInt(n),
      name: `m${n}`,
      peerURLs: [`https://h${n}:2380`],
      clientURLs: [`https://h${n}:2379`],
    }),
    status: StatusResponse.create({
      header,
      version: "3.7.0",
      leader: 1n,
      raftIndex: 100,
      raftAppliedIndex: 100,
      ...status,
    }),
    failure: undefined,
    metrics: undefined,
    clock: { lowMs: -5, highMs: 5 },
    certificate: undefined,
    peerCertificate: undefined,
    ...parts,
  };
}

function view(members: readonly MemberView[], parts: Partial<ClusterView> = {}): ClusterView {
  const limits = { fsyncMs: 100, clockMs: 1000, certificateDays: 30 };
  const command = (words: string, endpoint: string): string =>
    `quoratectl --endpoints=${endpoint} ${words}`;
  return {
    members,
    files: [],
    disk: undefined,
    nowMs: NOW_MS,
    limits,
    endpoint: "https://h1:2379",
    command,
    ...parts,
  };
}

/** "severity check member: observation" of each finding. */
function found(members: readonly MemberView[], parts: Partial<ClusterView> = {}): string[] {
  return diagnose(view(members, parts)).map(
    ({ severity, check, member: of, seen }) => `${severity} ${check} ${of}: ${seen}`,
  );
}

const three = [member(1), member(2), member(3)];

test("a healthy cluster has no findings", () => {
  assert.deepEqual(found(three), []);
});

test("a follower that is far behind", () => {
  assert.deepEqual(
    found([
      member(1, {}, { raftIndex: 9000, raftAppliedIndex: 9000 }),
      member(2, {}, { raftIndex: 8999 }),
      member(3),
    ]),
    [
      "warning lag m2: 8900 entries behind (it has applied 100 of 9000)",
      "warning lag m3: 8900 entries behind (it has applied 100 of 9000)",
    ],
  );
});

test("members that refuse whoever does not log in: one finding, which says so", () => {
  const refused = { status: undefined, failure: "etcdserver: user name is empty" };
  const members = [1, 2, 3].map((n) => member(n, refused));
  assert.deepEqual(found(members), [
    "error login client: m1, m2, m3 responded and refused the request: etcdserver: user name is empty",
  ]);
  const report = humanReport(view(members), diagnose(view(members)), [], plain);
  assert.match(
    report,
    /^3 members, 0 of them respond; 3 refuse to answer without a user's login\n/,
  );
  assert.match(report, /next: {2}the cluster has users: pass --user NAME/);
  assert.doesNotMatch(report, /systemctl|no leader/);
  const wrong = {
    ...refused,
    failure: "etcdserver: authentication failed, invalid user ID or password",
  };
  assert.match(diagnose(view([member(1, wrong)]))[0].next, /^check the name and the password/);
});

test("endpoints that are of no member are not counted, and named", async () => {
  const stray = {
    label: "http://h9:2379",
    endpoint: "http://h9:2379",
    member: undefined,
    status: undefined,
    failure: "connect ECONNREFUSED",
  };
  const members = [...three, member(9, stray)];
  assert.deepEqual(found(members), [
    "warning endpoints client: http://h9:2379 is no client URL of a member, and does not respond: connect ECONNREFUSED",
  ]);
  assert.match(
    humanReport(view(members), [], [], plain),
    /^3 members, 3 of them respond; m1 leads/,
  );
  // Nobody knows the members: the endpoint may be one.
  assert.match(found([member(9, stray)])[0], /^error reachable/);
});

test("through a grpc-proxy the members are not examined, and the doctor says so", async () => {
  const prober = new FakeProber([fakeMember(1), fakeMember(2)]);
  const proxy = "http://10.0.0.2:2379";
  const members = prober.members.bind(prober);
  prober.members = async (endpoint) =>
    endpoint === proxy
      ? [Member.create({ name: "host", clientURLs: [proxy] })]
      : (await members(endpoint)).slice(0, 1);
  const status = prober.status.bind(prober);
  prober.status = (endpoint) => status(endpoint === proxy ? endpointOf(1) : endpoint);
  const lookAt = (endpoints: string[]) => look(prober, { endpoints, tls: undefined, timeoutMs: 1 });
  const only = view((await lookAt([proxy])).members);
  assert.deepEqual(
    diagnose(only).map(({ seen }) => seen),
    [
      `${proxy} is a grpc-proxy, which answers for one of the members and lists none of them: they were not examined through it`,
    ],
  );
  assert.match(humanReport(only, diagnose(only), [], plain), /^no member was examined\n/);
  const both = view((await lookAt([proxy, endpointOf(1)])).members);
  assert.deepEqual(
    diagnose(both).map(({ check }) => check),
    ["endpoints"],
  );
  assert.match(humanReport(both, [], [], plain), /^1 member, 1 of them respond; m1 leads/);
});

test("whether a member can be restarted now", () => {
  const answer = (members: readonly MemberView[], name: string) =>
    reasonsAgainstRestart(view(members), name);
  assert.deepEqual(answer(three, "m1"), []);
  assert.deepEqual(answer(three, "2"), [], "by its id");
  assert.equal(answer(three, "m9"), undefined);
  const down = member(3, { status: undefined, failure: "connection refused" });
  assert.deepEqual(answer([member(1), member(2), down], "m3"), [], "it is down already");
  assert.deepEqual(answer([member(1), member(2), down], "m1"), [
    "1 of the other members work, and 2 of 3 voters must",
    "m3 does not respond: connection refused",
  ]);
  const late = member(3, {}, { raftAppliedIndex: 100 });
  const ahead = [1, 2].map((n) => member(n, {}, { raftIndex: 900, raftAppliedIndex: 900 }));
  assert.deepEqual(answer([...ahead, late], "m2")?.slice(1), ["m3 is 800 entries behind"]);
  assert.deepEqual(answer([member(1), member(2), member(3, {}, { leader: 0n })], "m1")?.slice(1), [
    "m3 has no leader",
  ]);
  const healing = new MetricsText("quorate_server_healing 1\n");
  assert.deepEqual(
    answer([member(1), member(2), member(3, { metrics: healing })], "m1")?.slice(1),
    ["m3 rebuilds its store"],
  );
  assert.deepEqual(answer([member(1)], "m1"), [
    "0 of the other members work, and 1 of 1 voters must",
  ]);
  assert.deepEqual(answer([member(1), member(2)], "m1")?.length, 1);
  // A learner counts neither when it is restarted nor when another is.
  const learner = member(4);
  const asLearner = { ...learner, member: { ...learner.member!, isLearner: true } };
  assert.deepEqual(answer([member(1), down, asLearner], "m4"), []);
  assert.equal(answer([member(1), member(2), asLearner], "m1")?.length, 1);
});

test("endpoints of two clusters", () => {
  const header = ResponseHeader.create({ memberId: 3n, clusterId: 10n });
  assert.deepEqual(found([member(1), member(3, {}, { header, leader: 3n })]).slice(0, 1), [
    "error cluster cluster: the endpoints belong to different clusters: m1 9, m3 a",
  ]);
});

test("clocks: a member's, or this machine's if all differ from it in the same direction", () => {
  const ahead = { lowMs: 59_000, highMs: 61_000 };
  assert.deepEqual(found([member(1), member(2, { clock: ahead }), member(3)]), [
    "warning clock m2: its clock is at least 59 s ahead of this machine's",
  ]);
  assert.deepEqual(found(three.map((one) => ({ ...one, clock: ahead }))), [
    "warning clock client: this machine's clock is 59 s or more behind those of all members",
  ]);
  // A slow response proves nothing.
  assert.deepEqual(
    found([member(1), member(2, { clock: { lowMs: -3000, highMs: 2000 } }), member(3)]),
    [],
  );
});

test("members without connections, unless those that are missing explain it; few open files left", () => {
  const metrics = new MetricsText(
    "etcd_network_active_peers 1\nprocess_open_fds 900\nprocess_max_fds 1024\n",
  );
  assert.deepEqual(found([member(1, { metrics }), member(2), member(3)]), [
    "error peers m1: has connections to 1 of the 2 other members that run",
    "warning files m1: 900 of 1024 open files",
  ]);
  const down = member(3, { status: undefined, failure: "connect ECONNREFUSED" });
  assert.deepEqual(found([member(1, { metrics }), member(2), down]), [
    "error reachable m3: does not respond at https://h3:2379: connect ECONNREFUSED",
    "warning files m1: 900 of 1024 open files",
  ]);
});

test("the quota of a member of etcd's counts the file", () => {
  assert.deepEqual(
    found([member(1, {}, { dbSize: 95, dbSizeInUse: 90, dbSizeQuota: 100 }), member(2), member(3)]),
    ["error quota m1: 95% of the quota is used: 95 B of 100 B"],
  );
});

test("certificates that have expired, are not valid yet, expire soon; on the peer port no authority is known", () => {
  const shown = (fromDays: number, toDays: number, chainProblem?: string) => ({
    subject: "s",
    issuer: "ca",
    validFromMs: NOW_MS + fromDays * DAY_MS,
    validToMs: NOW_MS + toDays * DAY_MS,
    chainProblem,
    nameProblem: undefined,
  });
  assert.deepEqual(
    found(
      [
        member(1, { certificate: shown(-9, -1, "CERT_HAS_EXPIRED") }),
        member(2, { certificate: shown(1, 99, "CERT_NOT_YET_VALID") }),
        member(3, {
          peerCertificate: shown(-9, 29, "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
          certificate: shown(-9, 31),
        }),
      ],
      {
        files: [
          {
            flag: "--cacert",
            path: "/ca.pem",
            subject: "ca",
            validFromMs: 0,
            validToMs: NOW_MS + DAY_MS / 2,
          },
        ],
      },
    ),
    [
      "error certificate m1: the certificate of its client port (s, issued by ca) expired at 2026-11-21T00:00:00Z",
      "error certificate m2: the certificate of its client port (s, issued by ca) is not valid before 2026-11-23T00:00:00Z",
      "warning certificate m3: the certificate of its peer port (s, issued by ca) expires in 29 days, at 2026-12-21T00:00:00Z",
      "warning certificate client: --cacert /ca.pem (ca) expires in 12 hours, at 2026-11-22T12:00:00Z",
    ],
  );
});

test("a local disk is measured, and judged", () => {
  const disk = probeDisk(tmpdir(), () => process.hrtime.bigint());
  assert.ok(disk.syncs > 0 && disk.p50Ms > 0 && disk.p99Ms >= disk.p50Ms);
  const slow = found(three, { disk: { path: "/data", p50Ms: 120, p99Ms: 450.4, syncs: 20 } });
  assert.deepEqual(slow, [
    "warning disk client: /data: half of 20 synced writes took 120 ms, 1% longer than 450 ms",
  ]);
  assert.throws(() => probeDisk("/no/such/directory", () => 0n), /ENOENT/);
});

test("the text report: coloured on a terminal, the same text in a pipe", () => {
  const sick = view([
    member(1),
    member(2),
    member(3),
    member(4, { clock: { lowMs: 2000, highMs: 2100 } }),
  ]);
  const text = humanReport(sick, diagnose(sick), [{ member: "m1", text: "not looked at" }], plain);
  assert.equal(
    text,
    `4 members, 4 of them respond; m1 leads in term 0; version 3.7.0

warning  voters  cluster  4 voters: they tolerate no more failures than 3
         right: an odd number of voters, 3 or 5
         next:  add one (member add NAME --learner --peer-urls=URL), or remove one (member remove ID); the members:
                quoratectl --endpoints=https://h1:2379 member list -w table

warning  clock   m4       its clock is at least 2000 ms ahead of this machine's
         right: clocks within 1000 ms: certificates, logs and backups depend on them
         next:  on its machine: timedatectl status; chronyc tracking

note     m1: not looked at

0 errors, 2 warnings.
`,
  );
  const coloured = humanReport(
    sick,
    diagnose(sick),
    [{ member: "m1", text: "not looked at" }],
    painted,
  );
  assert.notEqual(coloured, text);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of colours begin with one
  assert.equal(coloured.replace(/\u001b\[[\d;]*m/g, ""), text);
});

const FSYNC = "etcd_disk_wal_fsync_duration_seconds_bucket";
const syncs = (quick: number, slow: number): MetricsText =>
  new MetricsText(
    `${FSYNC}{le="0.064"} ${quick}\n${FSYNC}{le="0.128"} ${quick}\n${FSYNC}{le="4"} ${quick + slow}\n${FSYNC}{le="+Inf"} ${quick + slow}\n`,
  );

test("a disk is judged by many syncs: one slow one of thirteen, or a few of many thousands, are no fault", () => {
  const disks = (quick: number, slow: number) =>
    found([member(1, { metrics: syncs(quick, slow) }), member(2), member(3)]);
  assert.deepEqual(disks(12, 1), []);
  assert.deepEqual(disks(45, 4), []);
  assert.deepEqual(disks(60, 4), []);
  assert.deepEqual(disks(10_000, 50), []);
  assert.match(
    disks(60, 6)[0],
    /^error disk m1: 1% of its log's syncs took longer than \d+ ms since it started \(of 66\)$/,
  );
});

test("settings that differ: those of the minority, or all without a majority", () => {
  const metrics = (parts: { quota?: number; election?: number; files?: number; gate?: number }) =>
    new MetricsText(`etcd_server_quota_backend_bytes ${parts.quota ?? 2e9}
quorate_server_election_timeout_seconds ${parts.election ?? 1}
quorate_server_heartbeat_interval_seconds 0.1
process_max_fds ${parts.files ?? 65536}
etcd_server_feature_enabled{name="CompactHashCheck",stage="BETA"} ${parts.gate ?? 0}
`);
  const three = (a: MetricsText, b: MetricsText, c: MetricsText) =>
    found([member(1, { metrics: a }), member(2, { metrics: b }), member(3, { metrics: c })]);
  assert.deepEqual(three(metrics({}), metrics({}), metrics({})), []);
  assert.deepEqual(
    three(metrics({}), metrics({ quota: 8e9, election: 0.5, files: 1024, gate: 1 }), metrics({})),
    [
      "warning quota m2: quota: 8.0 GB, most have 2.0 GB",
      "warning timing m2: election timeout: 500 ms, most have 1 s",
      "warning files m2: limit of open files: 1024, most have 65536",
      "warning feature m2: feature gate CompactHashCheck: on, most have off",
    ],
  );
  assert.deepEqual(
    three(metrics({ election: 1 }), metrics({ election: 2 }), metrics({ election: 3 })),
    [
      "warning timing m1: election timeout: 1 s, others have other values",
      "warning timing m2: election timeout: 2 s, others have other values",
      "warning timing m3: election timeout: 3 s, others have other values",
    ],
  );
  // etcd does not export its timeouts.
  assert.deepEqual(three(metrics({}), new MetricsText("process_max_fds 65536\n"), metrics({})), []);
});

test("authorities and revocation lists, which no handshake shows", () => {
  const inDays = (days: number) => NOW_MS / 1000 + days * 86_400;
  const metrics =
    new MetricsText(`quorate_tls_certificate_not_after_seconds{role="server"} ${inDays(3)}
quorate_tls_certificate_not_after_seconds{role="client_ca"} ${inDays(10)}
quorate_tls_certificate_not_after_seconds{role="peer_ca"} ${inDays(-1)}
quorate_tls_crl_next_update_seconds{role="client"} ${inDays(1)}
quorate_tls_crl_next_update_seconds{role="peer"} ${inDays(-2)}
`);
  assert.deepEqual(found([member(1, { metrics }), member(2), member(3)]), [
    "error certificate m1: a CA that it trusts for members expired at 2026-11-21T00:00:00Z",
    "warning certificate m1: a CA that it trusts for clients expires in 10 days, at 2026-12-02T00:00:00Z",
    "warning certificate m1: the revocation list for members was to be renewed at 2026-11-20T00:00:00Z",
  ]);
});

test("NOSPACE: compaction to the present revision, and only the steps that are needed", () => {
  const full = (metrics: string, status: Partial<StatusResponse> = {}) => {
    const header = ResponseHeader.create({ memberId: 1n, clusterId: 9n, revision: 77 });
    const one = member(
      1,
      { metrics: new MetricsText(metrics) },
      { header, dbSizeQuota: 100, errors: ["memberID:1 alarm:NOSPACE"], ...status },
    );
    const { next, run } = diagnose(view([one])).find(({ check }) => check === "alarm")!;
    return [
      next,
      ...run.map((line) => line.replace("quoratectl --endpoints=https://h1:2379 ", "")),
    ];
  };
  const ours = (share: number, disarms: number, compacted = 5) =>
    `quorate_server_quota_used_ratio ${share}
quorate_server_quota_auto_disarm ${disarms}
etcd_debugging_mvcc_compact_revision ${compacted}
`;
  assert.deepEqual(full(ours(0.97, 1)), [
    "compact the history (older revisions cannot be read any more); " +
      "the alarm is disarmed automatically once less than 80% of the quota is used:",
    "compaction --physical 77",
  ]);
  assert.deepEqual(full(ours(0.97, 0)).slice(1), ["compaction --physical 77", "alarm disarm"]);
  assert.deepEqual(full(ours(0.3, 1)), [
    "space is free again; the alarm is disarmed automatically once less than 80% of the quota is used",
  ]);
  assert.deepEqual(full(ours(0.3, 0)), ["space is free again; disarm the alarm:", "alarm disarm"]);
  assert.match(
    full(ours(0.97, 1, 77))[0],
    /^there is no history to compact: delete keys and compact again/,
  );
  assert.deepEqual(full("etcd_debugging_mvcc_compact_revision 5\n", { dbSize: 99 }).slice(1), [
    "compaction --physical 77",
    "defrag --cluster --command-timeout=10m",
    "alarm disarm",
  ]);
});

test("a command that is the whole cluster's is printed once", () => {
  const full = (n: number) =>
    member(
      n,
      {},
      {
        dbSize: 95,
        dbSizeInUse: 90,
        dbSizeQuota: 100,
        header: ResponseHeader.create({ memberId: BigInt(n), clusterId: 9n, revision: 7 }),
      },
    );
  const findings = diagnose(view([full(1), full(2), member(3)]));
  assert.deepEqual(
    findings.map(({ member: of, run }) => [of, run]),
    [
      ["m1", ["quoratectl --endpoints=https://h1:2379 compaction --physical 7"]],
      ["m2", []],
    ],
  );
  assert.match(findings[1].next, /--auto-compaction-retention \(see the command above\)$/);
});

test("commands carry the connection flags, except those set as variables in the shell; they are quoted", async () => {
  const words = async (argv: string[], env: Record<string, string> = {}) => {
    const { flags } = await readCommandLine(quoratectl, ["doctor", ...argv], []);
    for (const [name, text] of Object.entries(env))
      flags.set(name.replace("ETCDCTL_", "").toLowerCase(), text);
    return commandMaker(flags, env)("member list", "http://a:1");
  };
  assert.equal(await words([]), "quoratectl --endpoints=http://a:1 member list");
  assert.equal(
    await words([], { ETCDCTL_ENDPOINTS: "http://b:1" }),
    "ETCDCTL_ENDPOINTS=http://a:1 quoratectl member list",
  );
  assert.equal(
    await words(["--cacert=my ca.pem", "--user=root:secret"], {
      ETCDCTL_CERT: "c.pem",
      ETCDCTL_KEY: "k.pem",
    }),
    "quoratectl --endpoints=http://a:1 --cacert='my ca.pem' --user=root member list",
  );
  const { flags } = await readCommandLine(quoratectl, ["doctor", "--endpoints=x:1,y:2"], []);
  assert.equal(
    commandMaker(flags, {})("member list", ""),
    "quoratectl --endpoints=x:1,y:2 member list",
  );
  assert.equal(
    commandMaker(flags, {})("member list", "http://a:1;touch /tmp/x'\n$(id)"),
    "quoratectl --endpoints='http://a:1;touch /tmp/x'\\''?$(id)' member list",
  );
});

test("members are examined concurrently, each once; members that are only listed come after the given endpoints", async () => {
  const prober = new FakeProber([
    fakeMember(1),
    fakeMember(2),
    fakeMember(3, { failure: "paused" }),
    fakeMember(4, { failure: "paused" }),
  ]);
  const looking = look(prober, {
    endpoints: [endpointOf(1), endpointOf(3)],
    tls: undefined,
    timeoutMs: 1000,
  });
  const turns = async () => {
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  };
  await turns();
  assert.deepEqual(prober.asked, [endpointOf(1), endpointOf(3)]);
  prober.timeOut();
  await turns();
  assert.deepEqual(prober.asked.slice(2).sort(), [endpointOf(2), endpointOf(4)]);
  prober.timeOut();
  const { members } = await looking;
  assert.deepEqual(
    members.map(({ label, failure }) => [label, failure]),
    [
      ["m1", undefined],
      ["m2", undefined],
      ["m3", "no response within 1 s"],
      ["m4", "no response within 1 s"],
    ],
  );
});

test("unsupported arguments and formats are refused", async () => {
  for (const [args, message] of [
    [["x"], "doctor command accepts no arguments"],
    [["-w", "fields"], "doctor has the formats simple, table and json, not fields"],
    [["--probe-dir=/no/such/directory"], "--probe-dir /no/such/directory: ENOENT"],
  ] as const) {
    const io = new FakeIo();
    assert.notEqual(await runProgram(quoratectl, ["doctor", ...args], io), 0);
    assert.ok(io.err.includes(message), io.err);
  }
});
