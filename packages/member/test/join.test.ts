/** What a member asks of others before it starts without a log, and what comes of the answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { etcdserverpb, fromUtf8, idToHex } from "@quorate/proto";
import type { PeerAnswer, PeerCall } from "@quorate/transport";
import { Wal } from "@quorate/wal";
import { bootstrap } from "../src/bootstrap.ts";
import type { MemberConfig } from "../src/config/member-config.ts";
import { parseInitialCluster, parseUrls } from "../src/config/url.ts";
import { checkNotStartedBefore, joinCluster, otherMembers } from "../src/membership/join.ts";
import { askMembers, fetchVersions } from "../src/membership/remote-cluster.ts";
import {
  compareVersions,
  downgradeTargetOf,
  minorVersion,
  versionProblem,
} from "../src/membership/versions.ts";

const CLUSTER = 0xabcn;
const A = "http://10.0.0.1:1";
const B = "http://10.0.0.2:1";
const SELF = "http://10.0.0.9:1";

function configOf(cluster: string, more: Partial<MemberConfig> = {}): MemberConfig {
  return {
    name: "self",
    dataDir: "/data",
    maxLearners: 1,
    electionTimeoutMs: 1000,
    advertisePeerUrls: parseUrls(SELF),
    initialCluster: parseInitialCluster(cluster),
    ...more,
  } as MemberConfig;
}

const CONFIG = configOf(`a=${A},b=${B},self=${SELF}`);

interface Listed {
  readonly id: number;
  readonly name?: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs?: readonly string[];
  readonly isLearner?: boolean;
}

const MEMBERS: readonly Listed[] = [
  { id: 1, name: "a", peerURLs: [A] },
  { id: 2, name: "b", peerURLs: [B] },
  { id: 9, peerURLs: [SELF] },
];

const json = (value: unknown, more: Partial<PeerAnswer> = {}): PeerAnswer => ({
  status: 200,
  body: fromUtf8(JSON.stringify(value)),
  ...more,
});
const list = (members: readonly Listed[], cluster = CLUSTER) =>
  json(members, { clusterId: idToHex(cluster) });
const versions = (etcdcluster: string, etcdserver = "3.7.0") => json({ etcdserver, etcdcluster });

/** Answers by URL and path; undefined: none comes. What was asked is noted with its time. */
function peers(answers: Readonly<Record<string, PeerAnswer | undefined>>) {
  const asked: [target: string, timeoutMs: number][] = [];
  const call: PeerCall = async (url, path, body, timeoutMs) => {
    assert.equal(body, undefined);
    asked.push([url + path, timeoutMs]);
    const answer = answers[url + path];
    if (answer === undefined) throw new Error("no answer");
    return answer;
  };
  return { asked, deps: { call, logger: silentLogger } };
}

/** A has no member of etcd beside it. */
const FEATURES = { [`${A}/quorate/features`]: json({ features: [], followsEtcd: false }) };

const ANSWERS = {
  ...FEATURES,
  [`${A}/members`]: list(MEMBERS),
  [`${A}/version`]: versions("3.7.0"),
  [`${B}/version`]: versions("not_decided"),
};

test("a member joins as the one of the cluster that has its URLs", async () => {
  const { asked, deps } = peers(ANSWERS);
  const joining = await joinCluster(CONFIG, deps);
  assert.deepEqual(
    [joining.memberId, joining.clusterId, joining.members.map(({ id }) => id)],
    [9n, CLUSTER, [1n, 2n, 9n]],
  );
  assert.deepEqual(asked, [
    [`${A}/members`, 10_000],
    [`${B}/members`, 10_000],
    [`${A}/version`, 7000],
    [`${B}/version`, 7000],
    [`${A}/quorate/features`, 10_000],
    [`${B}/quorate/features`, 10_000],
  ]);
});

test("a member that joins finds out whether members of etcd are in the cluster", async () => {
  const features = (followsEtcd: boolean) => json({ features: [], followsEtcd });
  const cases: [boolean, PeerAnswer | undefined, PeerAnswer | undefined][] = [
    [false, features(false), features(false)],
    [true, features(false), { status: 404, body: new Uint8Array(0) }],
    [true, features(true), undefined],
    [false, { status: 500, body: new Uint8Array(0) }, features(false)],
  ];
  for (const [expected, a, b] of cases) {
    const { deps } = peers({
      ...ANSWERS,
      [`${A}/quorate/features`]: a,
      [`${B}/quorate/features`]: b,
    });
    assert.equal((await joinCluster(CONFIG, deps)).followsEtcd, expected);
  }
});

test("a start that is begun again asks once more whether members of etcd are in the cluster", async () => {
  for (const followsEtcd of [false, true]) {
    const disk = new MemoryDisk();
    const clock = new ManualClock();
    const dirs = { walDir: "/data/wal", snapDir: "/data/snap", storeDir: "/data/store" };
    for (const dir of ["/data", dirs.snapDir, dirs.storeDir]) disk.makeDir(dir);
    // The first start ended before its store and its first entries were there.
    const metadata = etcdserverpb.Metadata.encode({ NodeID: 9n, ClusterID: CLUSTER });
    await Wal.create(disk, dirs.walDir, metadata, { clock, logger: silentLogger }).close();
    const { deps } = peers({
      ...ANSWERS,
      [`${A}/quorate/features`]: json({ features: [], followsEtcd }),
    });
    const { store, wal } = await bootstrap(configOf(`a=${A},b=${B},self=${SELF}`, dirs), {
      disk,
      keyspaces: new MemoryKeyspaceOpener(disk),
      clock,
      logger: silentLogger,
      callPeer: deps.call,
    });
    assert.equal(store.followsEtcd, followsEtcd);
    await store.close({ flush: false });
    await wal.close();
  }
});

test("a member does not join while no other says whether members of etcd are there", async () => {
  const silent = { [`${A}/quorate/features`]: undefined, [`${B}/quorate/features`]: undefined };
  const broken = { ...silent, [`${A}/quorate/features`]: { status: 500, body: new Uint8Array(0) } };
  for (const answers of [silent, broken]) {
    const { deps } = peers({ ...ANSWERS, ...answers });
    await assert.rejects(joinCluster(CONFIG, deps), /start this one again when they respond/);
  }
});

test("why a member cannot join", async () => {
  const fromA = (members: readonly Listed[], cluster = "3.7.0") => ({
    ...FEATURES,
    [`${A}/members`]: list(members),
    [`${A}/version`]: versions(cluster),
  });
  const [a, b, self] = MEMBERS;
  const learner = (id: number): Listed => ({ ...MEMBERS[id === 1 ? 0 : 1], isLearner: true });
  const cases: [RegExp, Record<string, PeerAnswer | undefined>, MemberConfig?][] = [
    [/asked: http:\/\/10.0.0.1:1, http:\/\/10.0.0.2:1/, {}],
    [/names no other member/, {}, configOf(`self=${SELF}`)],
    [/asked/, { [`${A}/members`]: json(MEMBERS) }],
    [/asked/, { [`${A}/members`]: list([]) }],
    [/asked/, { [`${A}/members`]: { ...list(MEMBERS), status: 503 } }],
    [/started before as "self"/, fromA([a, b, { ...self, name: "self" }])],
    [/there are 2, and --max-learners is 1/, fromA([learner(1), learner(2), self])],
    [/the cluster has 2, --initial-cluster names 3/, fromA([a, self])],
    [
      /no match found for existing member \(2, \[http:\/\/10.0.0.7:1\]\)/,
      {
        ...fromA([a, { ...b, peerURLs: ["http://10.0.0.7:1"] }, self]),
      },
    ],
    [/no match found for existing member \(2,/, fromA([a, { ...b, peerURLs: [B, A] }, self])],
    [/none of them is this member, "self"/, fromA([a, { id: 3, peerURLs: [A] }, b])],
    [/no member reports its cluster version/, { [`${A}/members`]: list(MEMBERS) }],
    [/no member reports its cluster version/, fromA(MEMBERS, "not_decided")],
    [/of a cluster of version 2.9.0, this one works with 3.0.0 to 3.7.0/, fromA(MEMBERS, "2.9.0")],
    [/of a cluster of version 3.8.0/, fromA(MEMBERS, "3.8.0")],
    [
      /of a cluster of version 3.8.0/,
      {
        ...fromA(MEMBERS, "3.8.0"),
        [`${B}/version`]: versions("3.7.0"),
      },
    ],
  ];
  for (const [reason, answers, config = CONFIG] of cases)
    await assert.rejects(joinCluster(config, peers(answers).deps), reason);
  for (const fits of ["3.0.0", "3.7.0", "3.7.9"])
    await joinCluster(CONFIG, peers(fromA(MEMBERS, fits)).deps);
  await joinCluster(CONFIG, peers(fromA([learner(1), b, self])).deps);
});

test("several URLs of a member are the same in any order, each once", async () => {
  const cluster = configOf(`a=${A},a=${B},self=${SELF}`);
  const joined = (peerURLs: readonly string[]) =>
    joinCluster(
      cluster,
      peers({
        ...FEATURES,
        [`${B}/members`]: list([{ id: 1, name: "a", peerURLs }, MEMBERS[2]]),
        [`${A}/version`]: versions("3.7.0"),
      }).deps,
    );
  assert.equal((await joined([B, A])).memberId, 9n);
  await assert.rejects(joined([A, A]), /no match found/);
  await assert.rejects(joined([A]), /no match found/);
});

test("before a new cluster, the others are asked for a second, and may be silent", async () => {
  const silent = peers({});
  assert.deepEqual(await otherMembers(CONFIG, silent.deps), []);
  await checkNotStartedBefore(CONFIG, 9n, silent.deps);
  assert.deepEqual(new Set(silent.asked.map(([, timeoutMs]) => timeoutMs)), new Set([1000]));
  const { deps } = peers(ANSWERS);
  assert.deepEqual(
    (await otherMembers(CONFIG, deps)).map(({ id }) => id),
    [1n, 2n, 9n],
  );
  await checkNotStartedBefore(CONFIG, 9n, deps);
  await checkNotStartedBefore(CONFIG, 7n, deps);
  const started = [{ ...MEMBERS[2], clientURLs: ["http://10.0.0.9:2"] }];
  await assert.rejects(
    checkNotStartedBefore(CONFIG, 9n, peers({ [`${B}/members`]: list(started) }).deps),
    /member 9 has already been bootstrapped/,
  );
});

test("versions count only where both are there", async () => {
  const versionsOf = (answer: unknown) => {
    const { deps } = peers({ [`${A}/version`]: json(answer) });
    return fetchVersions([A], { ...deps, timeoutMs: 1 });
  };
  assert.deepEqual(await versionsOf({ etcdserver: "3.7.0", etcdcluster: "3.6.0" }), {
    server: "3.7.0",
    cluster: "3.6.0",
  });
  assert.equal(await versionsOf({ etcdserver: "3.7.0" }), undefined);
  assert.equal(await versionsOf({ etcdcluster: "3.7.0" }), undefined);
});

test("all that are known or named are asked for the membership, each once", async () => {
  const many = Array.from({ length: 101 }, (_, i) => ({ id: i + 1, peerURLs: [A] }));
  const { asked, deps } = peers({
    [`${A}/members`]: list(MEMBERS),
    [`${B}/members`]: list(MEMBERS, CLUSTER + 1n),
    "http://known/members": list(many),
    "http://down/members": { ...list(MEMBERS), status: 500 },
  });
  const answers: number[] = [];
  await askMembers(
    { clusterId: CLUSTER, config: CONFIG, ...deps },
    ["http://known", A, "http://down", "http://silent"],
    (members) => answers.push(members.length),
  );
  assert.deepEqual(asked, [
    ["http://known/members", 2000],
    [`${A}/members`, 2000],
    ["http://down/members", 2000],
    ["http://silent/members", 2000],
    [`${B}/members`, 2000],
  ]);
  assert.deepEqual(answers, [100, 3]);
});

test("versions are compared by major, then by minor", () => {
  assert.deepEqual(["3.7.5-rc.1", "v3.10", "3", "3.x.0", ""].map(minorVersion), [
    "3.7.0",
    "3.10.0",
    undefined,
    undefined,
    undefined,
  ]);
  assert.ok(compareVersions("3.10.0", "3.9.0") > 0);
  assert.ok(compareVersions("3.9.0", "4.0.0") < 0);
  assert.equal(compareVersions("3.7.1", "3.7.0"), 0);
  assert.equal(versionProblem("3.7.9"), undefined);
  assert.match(versionProblem("3.8.0")!, /the cluster version 3.8.0 is above this member's, 3.7.0/);
  assert.equal(
    versionProblem("x".repeat(99)),
    `a cluster version that is none: "${"x".repeat(40)}"`,
  );
  assert.equal(downgradeTargetOf("3.7.0"), "3.6.0");
});
