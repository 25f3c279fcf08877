/**
 * The v2 API of three members: etcdctl 3.4 with ETCDCTL_API=2 as the reference client, writers of
 * two members on one key, a leader that is killed while clients wait, and a random stream of
 * requests compared with etcd 3.4.
 * @slow
 */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { quorate, skipWithoutEtcdctl } from "../support/executables.ts";
import type { TestMember } from "../support/member.ts";
import { until } from "../support/until.ts";
import { compare } from "./v2/compare.ts";
import { KNOWN } from "./v2/differences.ts";
import { etcd34, skipWithoutEtcd34 } from "./v2/reference.ts";
import { HttpTarget, type V2Response } from "./v2/target.ts";

let cluster: TestCluster;
let targets: HttpTarget[];

before(async () => {
  cluster = await startCluster({ executable: quorate, flags: ["--enable-v2"] });
  targets = cluster.members.map(({ name, clientUrl }) => new HttpTarget(name, clientUrl));
});

after(async () => {
  await Promise.all(targets.map((target) => target.close()));
  await cluster.destroy();
});

function put(target: HttpTarget, key: string, body: string): Promise<V2Response> {
  return target.send({ method: "PUT", path: `/v2/keys${key}`, query: "", body });
}

function get(target: HttpTarget, key: string, query = "quorum=true"): Promise<V2Response> {
  return target.send({ method: "GET", path: `/v2/keys${key}`, query, body: undefined });
}

const env = { ...process.env, ETCDCTL_API: "2" };

function etcdctl(args: readonly string[]): Promise<{ code: number; text: string }> {
  const all = [`--endpoints=${cluster.endpoints.join(",")}`, "--timeout=20s", ...args];
  return new Promise((resolve) => {
    const child = execFile("etcdctl", all, { env, timeout: 60_000 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code ?? -1);
      resolve({ code, text: stdout + stderr });
    });
    child.stdin!.end();
  });
}

/** Command lines of etcdctl 3.4, its exit code, and what it prints, as on etcd 3.4. */
const COMMANDS: readonly (readonly [line: string, code: number, text: RegExp])[] = [
  ["mkdir /ctl", 0, /^$/],
  ["mkdir /ctl", 4, /^Error: {2}105: Key already exists \(\/ctl\) \[\d+\]\n$/],
  ["mk /ctl/a one", 0, /^one\n$/],
  ["mk /ctl/a one", 4, /105: Key already exists \(\/ctl\/a\)/],
  ["mk --in-order /ctl/queue two", 0, /^two\n$/],
  ["set /ctl/a three", 0, /^three\n$/],
  ["set /ctl/a four --swap-with-value three", 0, /^four\n$/],
  ["set /ctl/a four --swap-with-value three", 4, /101: Compare failed \(\[three != four\]\)/],
  ["update /ctl/a five", 0, /^five\n$/],
  ["update /ctl/none five", 4, /100: Key not found \(\/ctl\/none\)/],
  ["get --quorum /ctl/a", 0, /^five\n$/],
  [
    "-o extended get --quorum /ctl/a",
    0,
    /^Key: \/ctl\/a\nCreated-Index: \d+\nModified-Index: \d+\n/,
  ],
  ["set /ctl/a/b six", 4, /104: Not a directory \(\/ctl\/a\)/],
  ["ls --quorum --sort /ctl", 0, /^\/ctl\/a\n\/ctl\/queue\n$/],
  ["ls --quorum --sort -r -p /ctl", 0, /^\/ctl\/a\n\/ctl\/queue\/\n\/ctl\/queue\/\d{20}\n$/],
  ["setdir /ctl/t --ttl 500", 0, /^$/],
  ["updatedir /ctl/t --ttl 600", 0, /^$/],
  ["updatedir /ctl/none --ttl 1", 4, /100: Key not found/],
  ["rmdir /ctl", 4, /108: Directory not empty \(\/ctl\)/],
  ["rm /ctl", 4, /102: Not a file \(\/ctl\)/],
  ["rm /ctl/a --with-value one", 4, /101: Compare failed \(\[one != five\]\)/],
  ["rm /ctl/a --with-value five", 0, /^\n$/],
  ["rmdir /ctl/t", 0, /^$/],
  ["rm -r /ctl", 0, /^$/],
  ["get --quorum /ctl", 4, /100: Key not found \(\/ctl\)/],
  [
    "cluster-health",
    0,
    /^(member \w+ is healthy: got healthy result from \S+\n){3}cluster is healthy\n$/,
  ],
  ["member list", 0, /^(\w+: name=\S+ peerURLs=\S+ clientURLs=\S+ isLeader=(true|false)\n){3}$/],
  ["member remove 1234", 1, /Couldn't find a member in the cluster with an ID of 1234/],
  ["user list", 1, /the users and roles of v2 are not served/],
];

test("etcd 3.4 answers a random stream of requests alike", {
  skip: skipWithoutEtcd34,
}, async () => {
  const reference = await startCluster({ executable: etcd34!, size: 1, flags: ["--enable-v2"] });
  const etcd = new HttpTarget("etcd", reference.members[0].clientUrl);
  try {
    const dice = new SeededRandom(20261122n);
    const outcome = await compare({
      reference: etcd,
      own: targets[0],
      dice,
      requests: 200,
      known: KNOWN,
      maxDifferences: 1,
      waitsOnPaths: false,
    });
    assert.deepEqual(outcome.differences, []);
    assert.ok(outcome.writes > 20);
  } finally {
    await etcd.close();
    await reference.destroy();
  }
});

test("etcdctl of API 2: each command", { skip: skipWithoutEtcdctl }, async () => {
  for (const [line, code, text] of COMMANDS) {
    const result = await etcdctl(line.split(" "));
    assert.match(result.text, text, line);
    assert.equal(result.code, code, line);
  }
});

test("etcdctl of API 2: watch and exec-watch", { skip: skipWithoutEtcdctl }, async () => {
  const lines = [
    ["watch", "--forever", "--recursive", "/watched"],
    ["exec-watch", "--recursive", "/watched", "--", "sh", "-c", "echo $ETCD_WATCH_KEY"],
  ];
  const children = lines.map((args) => {
    const child = spawn("etcdctl", [`--endpoints=${cluster.endpoints[0]}`, ...args], { env });
    const output = { text: "" };
    child.stdout.on("data", (data) => {
      output.text += String(data);
    });
    return { child, output };
  });
  try {
    let n = 0;
    // A write is seen once the wait has begun, which the client does not say.
    await until("both show a write", async () => {
      await put(targets[1], "/watched/k", `value=v${n++}`);
      return children.every(({ output }) => output.text !== "");
    });
    assert.match(children[0].output.text, /^\[set\] \/watched\/k\nv\d+\n/);
    assert.match(children[1].output.text, /^\/watched\/k\n/);
  } finally {
    for (const { child } of children) child.kill("SIGKILL");
  }
});

test("two members: of all compare-and-swaps on one key each one that succeeds is counted", async () => {
  await put(targets[0], "/counter", "value=0");
  const increment = async (target: HttpTarget): Promise<number> => {
    for (let tries = 1; ; tries++) {
      const { node } = JSON.parse((await get(target, "/counter")).body);
      const body = `value=${Number(node.value) + 1}&prevIndex=${node.modifiedIndex}`;
      const { status } = await put(target, "/counter", body);
      if (status === 200) return tries;
      assert.equal(status, 412);
    }
  };
  const work = async (target: HttpTarget) => {
    for (let i = 0; i < 10; i++) await increment(target);
  };
  await Promise.all([targets[0], targets[1], targets[0], targets[1]].map(work));
  assert.equal(JSON.parse((await get(targets[2], "/counter")).body).node.value, "40");
});

test("two members: names of POST are in the order of their indexes", async () => {
  const post = (target: HttpTarget) =>
    target.send({ method: "POST", path: "/v2/keys/queue", query: "", body: "value=x" });
  const responses = await Promise.all(Array.from({ length: 60 }, (_, i) => post(targets[i % 3])));
  const nodes = responses.map(({ status, body }) => {
    assert.equal(status, 201, body);
    return JSON.parse(body).node as { key: string; createdIndex: number };
  });
  const byIndex = nodes.toSorted((a, b) => a.createdIndex - b.createdIndex).map(({ key }) => key);
  assert.deepEqual(byIndex, byIndex.toSorted());
  assert.equal(new Set(byIndex).size, 60);
});

test("the leader is killed: waits of the others go on, and so do writes", async () => {
  const leader = await leaderOf(cluster.members);
  const others = targets.filter((_, i) => cluster.members[i] !== leader);
  const wait = get(others[0], "/after", "wait=true");
  await leader.kill();
  const written = async () => (await put(others[1], "/after", "value=1")).status < 300;
  await until("a write after the leader's end", written);
  const { status, body } = await wait;
  assert.equal(status, 200);
  assert.equal(JSON.parse(body).node.key, "/after");
});

async function leaderOf(members: readonly TestMember[]): Promise<TestMember> {
  for (const member of members) {
    const response = await fetch(`${member.clientUrl}/v2/stats/self`);
    const { state } = (await response.json()) as { state: string };
    if (state === "StateLeader") return member;
  }
  throw new Error("no leader");
}
