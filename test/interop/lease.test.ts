/**
 * Leases, locks and elections: what clients of the original see is what they see here.
 * @slow
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import {
  ElectionService,
  fromUtf8,
  KVService,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseService,
  LockService,
  type MethodDescriptor,
  toUtf8,
  v3electionpb,
} from "@quorate/proto";
import { endsWith } from "../support/children.ts";
import { CallError, type RequestOf, TestClient } from "../support/client.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { etcdctlFor } from "../support/etcdctl.ts";
import { etcd, skipWithoutEtcd, skipWithoutEtcdctl } from "../support/executables.ts";
import { until } from "../support/until.ts";

/** A command as typed; "$L" stands for the lease that was granted last. */
const SCRIPT: readonly string[] = [
  "lease list",
  "lease grant 100",
  "lease list",
  "lease timetolive $L",
  "put --lease=$L k1 v1",
  "get k1 -w fields",
  "lease timetolive $L --keys",
  "lease keep-alive --once $L",
  "lease revoke $L",
  "get k1",
  "lease revoke $L",
  "lease timetolive $L",
  "lease timetolive $L --keys",
  "lease keep-alive --once $L",
  "put --lease=$L k2 v2",
  "lease grant 100",
  "lease timetolive $L -w json",
  "lease grant 1",
  "lease grant 0",
  "lease grant -- -5",
  "lease grant 9000000001",
  "lease grant 9223372036854775807",
  "lease revoke 7fffffffffffffff",
  "lease grant 100",
  "put --lease=$L a v",
  "put --lease=$L b v",
  "put a v",
  "lease timetolive $L --keys",
  "put b w --ignore-lease",
  "lease timetolive $L --keys",
  "del b",
  "lease timetolive $L --keys",
  "lease revoke $L",
  "get a",
  "lock m -- sh -c env|grep^ETCD_LOCK_KEY|cut-c1-15",
  "lock m echo held",
  "get m/ --prefix --keys-only",
];

/** The words of a line of the script; a pipeline for sh is written without its spaces. */
function wordsOf(line: string, lease: string): string[] {
  return line
    .replaceAll("$L", lease)
    .split(" ")
    .map((word) =>
      word.replace("env|grep^ETCD_LOCK_KEY|cut-c1-15", "env | grep ^ETCD_LOCK_KEY | cut -c1-15"),
    );
}

/** Output without what differs between two runs: ids, terms, seconds that have passed. */
function plain(text: string): string {
  return (
    text
      .replaceAll(/\b[0-9a-f]{15,16}\b/g, "ID")
      // In keys an id stands without leading zeros, of which it has the more the smaller the
      // member's own id is.
      .replaceAll(/(?<=^post\/)[0-9a-f]+$/gm, "ID")
      .replaceAll(
        /("(?:cluster_id|member_id|raft_term|id)":|"(?:ClusterID|MemberID|RaftTerm|Lease)" : )\d+/g,
        "$1N",
      )
      .replaceAll(/"ttl":-?\d+/g, '"ttl":N')
      .replaceAll(/TTL\((\d+)s\), remaining\((\d+)s\)/g, (text, granted, left) => {
        const passed = Number(granted) - Number(left);
        return passed >= 0 && passed <= 20 ? `TTL(${granted}s), remaining(nearly all)` : text;
      })
      .replaceAll(
        /"ts":"[^"]*"|https?:\/\/[\w.:]+|endpoint:[\w\-./:]+|passthrough:\S+|"caller":"[^"]*"|"target":"[^"]*"/g,
        "...",
      )
  );
}

async function play(cluster: TestCluster): Promise<string[]> {
  const etcdctl = etcdctlFor(cluster, cluster.endpoints.slice(0, 1));
  const seen: string[] = [];
  let lease = "0";
  for (const line of SCRIPT) {
    const { stdout, stderr, code } = await etcdctl(wordsOf(line, lease));
    lease = /^lease ([0-9a-f]+) granted/.exec(stdout)?.[1] ?? lease;
    const error = stderr
      .split("\n")
      .filter((one) => one.startsWith("Error"))
      .join("\n");
    seen.push(plain(`> ${line}\n${stdout}${error}\nexit ${code}`));
  }
  return seen;
}

/** Nothing here takes as long; what does is killed, and has printed too little then. */
const PROGRAM_LIMIT_MS = 60_000;

/** Runs etcdctl until a line of its output is as wanted, then interrupts it; returns the lines. */
async function interrupted(
  cluster: TestCluster,
  args: readonly string[],
  lines: number,
): Promise<string[]> {
  const env = { ...process.env, ETCDCTL_API: "3" };
  const child = endsWith(
    spawn("etcdctl", [`--endpoints=${cluster.endpoints[0]}`, ...args], { env }),
  );
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    if (text.split("\n").length > lines) child.kill("SIGINT");
  });
  child.stderr.resume();
  const late = setTimeout(() => child.kill("SIGKILL"), PROGRAM_LIMIT_MS);
  await once(child, "close");
  clearTimeout(late);
  return text.trimEnd().split("\n");
}

describe("etcdctl beside etcd", { skip: skipWithoutEtcdctl || skipWithoutEtcd }, () => {
  let ours: TestCluster;
  let theirs: TestCluster;
  before(async () => {
    [ours, theirs] = await Promise.all([
      startCluster({ size: 3 }),
      startCluster({ executable: etcd!, size: 1 }),
    ]);
  });
  after(async () => {
    await Promise.all([ours?.destroy(), theirs?.destroy()]);
  });

  test("a script of lease and lock commands prints the same", async () => {
    const [here, there] = await Promise.all([play(ours), play(theirs)]);
    assert.deepEqual(here, there);
  });

  test("lock and elect print their key, and hand over in turn", async () => {
    for (const cluster of [ours, theirs]) {
      const [key] = await interrupted(cluster, ["lock", "turns"], 1);
      assert.match(key, /^turns\/[0-9a-f]+$/);
      const [again] = await interrupted(cluster, ["lock", "turns"], 1);
      assert.match(again, /^turns\/[0-9a-f]+$/);
      assert.notEqual(again, key);
      const elected = await interrupted(cluster, ["elect", "turns2", "me"], 2);
      assert.match(elected[0], /^turns2\/[0-9a-f]+$/);
      assert.equal(elected[1], "me");
    }
  });

  test("keep-alive goes on until it is interrupted, and elect -l prints the leader", async () => {
    const printed = async (cluster: TestCluster): Promise<string[]> => {
      const etcdctl = etcdctlFor(cluster, cluster.endpoints.slice(0, 1));
      const [lease] = /[0-9a-f]{15,16}/.exec((await etcdctl(["lease", "grant", "15"])).stdout)!;
      // It renews the lease when a third of its time is over, the first time at once.
      const kept = await interrupted(cluster, ["lease", "keep-alive", lease], 2);
      const leader = endsWith(
        spawn("etcdctl", [`--endpoints=${cluster.endpoints[0]}`, "elect", "post", "ann"], {
          env: { ...process.env, ETCDCTL_API: "3" },
          stdio: ["ignore", "pipe", "ignore"],
        }),
      );
      try {
        await Promise.race([
          once(leader.stdout, "data"),
          once(leader, "close").then(() => assert.fail("no leader was elected")),
        ]);
        const heard = await interrupted(cluster, ["elect", "-l", "post"], 2);
        return [...kept.slice(0, 2), ...heard].map(plain);
      } finally {
        leader.kill("SIGKILL");
      }
    };
    const [here, there] = await Promise.all([printed(ours), printed(theirs)]);
    assert.deepEqual(here, there);
    assert.deepEqual(here, [
      ...Array(2).fill("lease ID keepalived with TTL(15)"),
      "post/ID",
      "ann",
    ]);
  });

  test("Lock and Election services answer the same, errors included", async () => {
    const [here, there] = [
      new TestClient(ours.members[1].clientAddress),
      new TestClient(theirs.members[0].clientAddress),
    ];
    try {
      for (const [method, request] of UNARY) {
        assert.equal(
          await answer(here, method, request),
          await answer(there, method, request),
          `${method.path} ${show(request)}`,
        );
      }
    } finally {
      here.close();
      there.close();
    }
  });
});

const bytes = fromUtf8;
const NAME = bytes("jobs");
// biome-ignore lint/suspicious/noExplicitAny: requests of many methods
const UNARY: readonly [MethodDescriptor, any][] = [
  [LeaseService.methods.LeaseGrant, { ID: 0x2an, TTL: 100 }],
  [LeaseService.methods.LeaseGrant, { ID: 0x7fn, TTL: 100 }],
  [LeaseService.methods.LeaseGrant, { ID: 0x2an, TTL: 100 }],
  [LeaseService.methods.LeaseGrant, { ID: -3n, TTL: 100 }],
  [LeaseService.methods.LeaseRevoke, { ID: -3n }],
  [LeaseService.methods.LeaseRevoke, { ID: 0n }],
  [LeaseService.methods.LeaseTimeToLive, { ID: 5n, keys: true }],
  [LockService.methods.Lock, { name: NAME, lease: 0x2an }],
  [LockService.methods.Lock, { name: NAME, lease: 0x2an }],
  [LockService.methods.Lock, { name: NAME, lease: 404n }],
  [LockService.methods.Unlock, { key: bytes("jobs/2a") }],
  [LockService.methods.Unlock, { key: bytes("jobs/2a") }],
  [LockService.methods.Unlock, { key: bytes("") }],
  [LockService.methods.Lock, { name: NAME, lease: 0x7fn }],
  [LockService.methods.Unlock, { key: bytes("jobs/7f") }],
  [ElectionService.methods.Leader, { name: bytes("e") }],
  [ElectionService.methods.Campaign, { name: bytes("e"), lease: 0x2an, value: bytes("one") }],
  [ElectionService.methods.Leader, { name: bytes("e") }],
  [ElectionService.methods.Campaign, { name: bytes("e"), lease: 0x2an, value: bytes("two") }],
  [ElectionService.methods.Leader, { name: bytes("e") }],
  [ElectionService.methods.Campaign, { name: bytes("e"), lease: 404n, value: bytes("x") }],
  [ElectionService.methods.Proclaim, { value: bytes("x") }],
  [
    ElectionService.methods.Proclaim,
    { leader: { name: bytes("e"), key: bytes("e/2a"), rev: 1, lease: 0x2an }, value: bytes("x") },
  ],
  [ElectionService.methods.Resign, {}],
  [
    ElectionService.methods.Resign,
    { leader: { name: bytes("e"), key: bytes("e/2a"), rev: 1, lease: 0x2an } },
  ],
  [ElectionService.methods.Leader, { name: bytes("e") }],
  [LeaseService.methods.LeaseRevoke, { ID: 0x2an }],
  [ElectionService.methods.Leader, { name: bytes("e") }],
  [KVService.methods.Range, { key: bytes("jobs"), rangeEnd: bytes("k") }],
];

function show(message: unknown): string {
  return JSON.stringify(message, (name, value) => {
    if (["clusterId", "memberId", "raftTerm", "createRevision"].includes(name)) return undefined;
    if (typeof value === "bigint") return `${value}n`;
    return value instanceof Uint8Array ? toUtf8(value) : value;
  });
}

async function answer<M extends MethodDescriptor>(
  client: TestClient,
  method: M,
  request: RequestOf<M>,
): Promise<string> {
  try {
    return show(await client.call(method, request));
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return `error ${error.code}: ${error.details}`;
  }
}

describe("@grpc/grpc-js over TLS", () => {
  let cluster: TestCluster;
  let clients: TestClient[];
  before(async () => {
    cluster = await startCluster({ size: 3, tls: true });
    clients = cluster.members.map(
      (member) => new TestClient(member.clientAddress, cluster.identity),
    );
  });
  after(async () => {
    for (const client of clients ?? []) client.close();
    await cluster?.destroy();
  });

  test("keep-alives through each member keep a lease that would have ended", async () => {
    const { methods } = LeaseService;
    await clients[0].call(methods.LeaseGrant, { ID: 77n, TTL: 6 });
    const { ca, key, cert } = cluster.identity;
    const pem = (text: string | undefined) => Buffer.from(text!);
    const credentials = grpc.credentials.createSsl(pem(ca), pem(key), pem(cert));
    const channels = cluster.members.map(
      (member) =>
        new grpc.Client(member.clientAddress, credentials, {
          "grpc.ssl_target_name_override": "localhost",
        }),
    );
    const streams = channels.map((channel) =>
      channel.makeBidiStreamRequest(
        methods.LeaseKeepAlive.path,
        (ID: bigint) => Buffer.from(LeaseKeepAliveRequest.encode({ ID })),
        (message) => LeaseKeepAliveResponse.decode(message),
      ),
    );
    try {
      for (let round = 0; round < 6; round++) {
        for (const stream of streams) {
          const answered = new Promise<LeaseKeepAliveResponse>((resolve, reject) => {
            stream.once("data", resolve);
            stream.once("error", reject);
          });
          stream.write(77n);
          const { TTL, header } = await answered;
          assert.equal(TTL, 6);
          assert.equal(header!.revision, 1);
        }
        await new Promise((resolve) => setTimeout(resolve, 1200));
      }
      for (const client of clients)
        assert.ok((await client.call(methods.LeaseTimeToLive, { ID: 77n })).TTL >= 0);
    } finally {
      for (const stream of streams) {
        stream.on("error", () => {});
        stream.cancel();
      }
      for (const channel of channels) channel.close();
    }
  });

  test("a lock passes from one member's client to another's, with growing create revisions", async () => {
    const { Lock, Unlock } = LockService.methods;
    const held = [await clients[0].call(Lock, { name: NAME })];
    const waiting = clients.slice(1).map((client) => client.call(Lock, { name: NAME }));
    for (let i = 0; i < 2; i++) {
      await clients[0].call(Unlock, { key: held.at(-1)!.key });
      held.push(
        await Promise.race(
          waiting.filter((one) => !held.some((other) => passed.get(one) === other)).map(note),
        ),
      );
    }
    const tokens = held.map((one) => one.createRevision);
    assert.deepEqual(
      tokens,
      [...tokens].sort((a, b) => a - b),
    );
    assert.equal(new Set(tokens).size, 3);
  });
  const passed = new Map<unknown, unknown>();
  async function note<T>(waiting: Promise<T>): Promise<T> {
    const result = await waiting;
    passed.set(waiting, result);
    return result;
  }

  test("a leader is observed as it comes, proclaims and goes", async () => {
    const { Campaign, Proclaim, Resign } = ElectionService.methods;
    const name = bytes("office");
    const { ca, key, cert } = cluster.identity;
    const pem = (text: string | undefined) => Buffer.from(text!);
    const channel = new grpc.Client(
      cluster.members[2].clientAddress,
      grpc.credentials.createSsl(pem(ca), pem(key), pem(cert)),
      {
        "grpc.ssl_target_name_override": "localhost",
      },
    );
    const observed: string[] = [];
    const stream = channel.makeServerStreamRequest(
      ElectionService.methods.Observe.path,
      (request: { name: Uint8Array }) => Buffer.from(v3electionpb.LeaderRequest.encode(request)),
      (message) => v3electionpb.LeaderResponse.decode(message),
      { name },
    );
    stream.on("error", () => {});
    stream.on("data", ({ kv }: v3electionpb.LeaderResponse) => {
      observed.push(toUtf8(kv!.value));
    });
    const observedAll = (count: number) =>
      until(`${count} leaders are observed`, () => observed.length >= count);
    try {
      const { leader } = await clients[0].call(Campaign, { name, value: bytes("first") });
      await observedAll(1);
      await clients[1].call(Proclaim, { leader, value: bytes("second") });
      await observedAll(2);
      const next = clients[1].call(Campaign, { name, value: bytes("third") });
      await clients[0].call(Resign, { leader });
      assert.equal(toUtf8((await next).leader!.name), "office");
      await observedAll(3);
      assert.deepEqual(observed, ["first", "second", "third"]);
    } finally {
      stream.cancel();
      channel.close();
    }
  });
});
