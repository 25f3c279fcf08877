/** The doctor's judgement on views that are made up; test/ctl/doctor.test.ts plants faults in real clusters. */
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { Member, ResponseHeader, StatusResponse } from "@quorate/proto";
import { runProgram } from "../index.ts";
import { diagnose } from "../src/doctor/diagnose.ts";
import { probeDisk } from "../src/doctor/disk.ts";
import { humanReport } from "../src/doctor/report.ts";
import type { ClusterView, MemberView } from "../src/doctor/view.ts";
import { MetricsText } from "../src/observe/metrics-text.ts";
import { quoratectl } from "../src/quoratectl.ts";
import { painted, plain } from "../src/terminal.ts";
import { FakeIo } from "./fake-io.ts";

const NOW_MS = Date.UTC(2026, 10, 22);
const DAY_MS = 86_400_000;

function member(n: number, parts: Partial<MemberView> = {}, status: Partial<StatusResponse> = {}): MemberView {
  const header = ResponseHeader.create({ memberId: BigInt(n), clusterId: 9n });
  return {
    label: `m${n}`,
    endpoint: `https://h${n}:2379`,
    member: Member.create({ ID: BigInt(n), name: `m${n}`, peerURLs: [`https://h${n}:2380`], clientURLs: [`https://h${n}:2379`] }),
    status: StatusResponse.create({ header, version: "3.7.0", leader: 1n, raftIndex: 100, raftAppliedIndex: 100, ...status }),
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
  return { members, files: [], disk: undefined, nowMs: NOW_MS, limits, endpoint: "https://h1:2379", ...parts };
}

/** "severity check member: what was seen" of each finding. */
function found(members: readonly MemberView[], parts: Partial<ClusterView> = {}): string[] {
  return diagnose(view(members, parts)).map(({ severity, check, member: of, seen }) => `${severity} ${check} ${of}: ${seen}`);
}

const three = [member(1), member(2), member(3)];

test("nothing is found where nothing is wrong", () => {
  assert.deepEqual(found(three), []);
});

test("a follower that is far behind", () => {
  assert.deepEqual(found([member(1, {}, { raftIndex: 9000, raftAppliedIndex: 9000 }), member(2, {}, { raftIndex: 8999 }), member(3)]), [
    "warning lag m2: 8900 entries behind (it has applied 100 of 9000)",
    "warning lag m3: 8900 entries behind (it has applied 100 of 9000)",
  ]);
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
  // A slow answer proves nothing.
  assert.deepEqual(found([member(1), member(2, { clock: { lowMs: -3000, highMs: 2000 } }), member(3)]), []);
});

test("members without connections, unless those that are missing explain it; few open files left", () => {
  const metrics = new MetricsText("etcd_network_active_peers 1\nprocess_open_fds 900\nprocess_max_fds 1024\n");
  assert.deepEqual(found([member(1, { metrics }), member(2), member(3)]), [
    "error peers m1: has connections to 1 of the 2 other members that run",
    "warning files m1: 900 of 1024 open files",
  ]);
  const down = member(3, { status: undefined, failure: "connect ECONNREFUSED" });
  assert.deepEqual(found([member(1, { metrics }), member(2), down]), [
    "error reachable m3: does not answer at https://h3:2379: connect ECONNREFUSED",
    "warning files m1: 900 of 1024 open files",
  ]);
});

test("the quota of a member of etcd's counts the file", () => {
  assert.deepEqual(found([member(1, {}, { dbSize: 95, dbSizeInUse: 90, dbSizeQuota: 100 }), member(2), member(3)]), [
    "error quota m1: 95% of the quota is used: 95 B of 100 B",
  ]);
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
        member(3, { peerCertificate: shown(-9, 29, "UNABLE_TO_VERIFY_LEAF_SIGNATURE"), certificate: shown(-9, 31) }),
      ],
      { files: [{ flag: "--cacert", path: "/ca.pem", subject: "ca", validFromMs: 0, validToMs: NOW_MS + DAY_MS / 2 }] },
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
  assert.deepEqual(slow, ["warning disk client: /data: half of 20 synced writes took 120 ms, 1% longer than 450 ms"]);
  assert.throws(() => probeDisk("/no/such/folder", () => 0n), /ENOENT/);
});

test("the report for people: coloured on a terminal, the same words plain in a pipe", () => {
  const sick = view([member(1), member(2), member(3), member(4, { clock: { lowMs: 2000, highMs: 2100 } })]);
  const text = humanReport(sick, diagnose(sick), [{ member: "m1", text: "not looked at" }], plain);
  assert.equal(
    text,
    `4 members, 4 of them answer; m1 leads in term 0; version 3.7.0

warning  voters  cluster  4 voters: no more of them may fail than with 3
         right: an odd number of voters, 3 or 5
         next:  quoratectl --endpoints=https://h1:2379 member add NAME --learner --peer-urls=URL, or: \
quoratectl --endpoints=https://h1:2379 member remove ID

warning  clock   m4       its clock is at least 2000 ms ahead of this machine's
         right: clocks within 1000 ms: certificates, logs and times of backups go by them
         next:  on its machine: timedatectl status; chronyc tracking

note     m1: not looked at

0 errors, 2 warnings.
`,
  );
  const coloured = humanReport(sick, diagnose(sick), [{ member: "m1", text: "not looked at" }], painted);
  assert.notEqual(coloured, text);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of colours begin with one
  assert.equal(coloured.replace(/\u001b\[[\d;]*m/g, ""), text);
});

test("what it cannot do is refused", async () => {
  for (const [args, message] of [
    [["x"], "doctor command accepts no arguments"],
    [["-w", "fields"], "doctor has the forms simple, table and json, and not fields"],
    [["--probe-dir=/no/such/folder"], "--probe-dir /no/such/folder: ENOENT"],
  ] as const) {
    const io = new FakeIo();
    assert.notEqual(await runProgram(quoratectl, ["doctor", ...args], io), 0);
    assert.ok(io.err.includes(message), io.err);
  }
});
