/**
 * Watch beside the original: the same requests to both, the same responses; and clients that others
 * wrote.
 * @slow
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Event, fromUtf8, KeyValue, KVService, type WatchCreateRequest } from "@quorate/proto";
import { Etcd3 } from "etcd3";
import { endsWith } from "../support/children.ts";
import { TestClient } from "../support/client.ts";
import { startCluster, type TestCluster, withCluster } from "../support/cluster.ts";
import { etcd, quorate, skipWithoutEtcd, skipWithoutEtcdctl } from "../support/executables.ts";
import { metric } from "../support/http.ts";
import type { TestMember } from "../support/member.ts";
import { until } from "../support/until.ts";
import { describeResponse, WatchClient } from "../support/watch.ts";

const key = fromUtf8;
/** What waits for a program gives up then, on a machine that has much else to do. */
const PROGRAM_LIMIT_MS = 60_000;

/** One client of each kind to one member. */
class Side {
  readonly cluster: TestCluster;
  readonly kv: TestClient;

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
    this.kv = new TestClient(this.address);
  }

  get address(): string {
    return this.cluster.members[0].clientAddress;
  }

  async put(name: string, value: string): Promise<number> {
    return (await this.kv.call(KVService.methods.Put, { key: key(name), value: key(value) }))
      .header!.revision;
  }

  async delete(name: string, end = ""): Promise<number> {
    return (
      await this.kv.call(KVService.methods.DeleteRange, { key: key(name), rangeEnd: key(end) })
    ).header!.revision;
  }

  async compact(revision: number): Promise<void> {
    await this.kv.call(KVService.methods.Compact, { revision, physical: true });
  }

  /** A number of the member's metrics. */
  async metric(name: string): Promise<number> {
    const text = await (await fetch(`${this.cluster.members[0].clientUrl}/metrics`)).text();
    return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
  }

  async close(): Promise<void> {
    this.kv.close();
    await this.cluster.destroy();
  }
}

type Script = (
  side: Side,
  watch: WatchClient,
  saw: (count: number) => Promise<void>,
) => Promise<void>;

/** What a stream answers to a script, as text. */
async function play(side: Side, script: Script): Promise<string[]> {
  const watch = new WatchClient(side.address);
  const lines: string[] = [];
  try {
    await script(side, watch, async (count) => {
      lines.push(...(await watch.take(count)).map(describeResponse));
    });
    return lines;
  } finally {
    watch.close();
  }
}

const scripts: Readonly<Record<string, Script>> = {
  "keys, ranges, prefixes, from a key on, all keys": async (side, watch, saw) => {
    const asked: Partial<WatchCreateRequest>[] = [
      { key: key("k/b") },
      { key: key("k/b"), rangeEnd: key("k/d") },
      { key: key("k/"), rangeEnd: key("k0") },
      { key: key("k/c"), rangeEnd: key("\0") },
      { rangeEnd: key("\0") },
      { key: key("k/z") },
    ];
    for (const request of asked) {
      watch.create(request);
      await saw(1);
    }
    // One by one: the watches of one change may be notified in any order.
    const reach = { "k/b": [0, 1, 2, 4], "k/c": [1, 2, 3, 4], "k/d": [2, 3, 4], j: [4], l: [3, 4] };
    for (const [name, ids] of Object.entries(reach)) {
      await side.put(name, "x");
      const responses = await watch.take(ids.length);
      assert.deepEqual(responses.map((response) => response.watchId).sort(), ids);
    }
  },
  "puts and deletions with what was before": async (side, watch, saw) => {
    watch.create({ key: key("p"), prevKv: true });
    await saw(1);
    await side.put("p", "1");
    await side.put("p", "2");
    await side.delete("p");
    await side.put("p", "3");
    await side.delete("p");
    await side.delete("p");
    await saw(5);
  },
  filters: async (side, watch, saw) => {
    watch.create({ key: key("f"), filters: [0] });
    await saw(1);
    watch.create({ key: key("f"), filters: [1], watchId: 7 });
    await saw(1);
    await side.put("f", "1");
    await saw(1);
    await side.delete("f");
    await saw(1);
    watch.create({ key: key("f"), filters: [0, 1], startRevision: 1 });
    await saw(1);
    await side.put("f", "2");
    await saw(1);
  },
  "a transaction is one response": async (side, watch, saw) => {
    watch.create({ key: key("t"), rangeEnd: key("u"), prevKv: true });
    await saw(1);
    await side.put("t1", "0");
    await saw(1);
    const put = (name: string) => ({
      request: { case: "requestPut", value: { key: key(name), value: key("x") } },
    });
    await side.kv.call(KVService.methods.Txn, {
      success: [put("t1"), put("t2"), put("v"), put("t3")],
    } as never);
    await saw(1);
    await side.delete("t", "u");
    await saw(1);
  },
  "from the past, and on": async (side, watch, saw) => {
    const first = await side.put("h", "1");
    await side.put("h", "2");
    await side.put("elsewhere", "x");
    watch.create({ key: key("h"), startRevision: first });
    await saw(2);
    await side.put("h", "3");
    await saw(1);
    watch.create({ key: key("h"), startRevision: first + 1, prevKv: true });
    await saw(2);
  },
  "from a revision to come": async (side, watch, saw) => {
    const now = await side.put("n", "1");
    watch.create({ key: key("n"), startRevision: now + 3 });
    await saw(1);
    for (const value of ["2", "3", "4", "5"]) await side.put("n", value);
    await saw(2);
  },
  "ids: of the server, of the client, in use, free again": async (side, watch, saw) => {
    watch.create({ key: key("i") });
    await saw(1);
    watch.create({ key: key("i"), watchId: 1 });
    await saw(1);
    watch.create({ key: key("i"), watchId: 1 });
    await saw(1);
    watch.create({ key: key("i") });
    await saw(1);
    watch.cancel(1);
    await saw(1);
    watch.create({ key: key("i"), watchId: 1 });
    await saw(1);
    watch.cancel(99);
    watch.create({ key: key("i"), watchId: -5 });
    await saw(1);
    watch.cancel(-5);
    await saw(1);
    await side.put("i0", "x");
  },
  "ranges that hold nothing": async (_side, watch, saw) => {
    watch.create({ key: key("b"), rangeEnd: key("a") });
    await saw(1);
    watch.create({ key: key("b"), rangeEnd: key("b") });
    await saw(1);
  },
  "progress on request": async (side, watch, saw) => {
    watch.create({ key: key("g") });
    await saw(1);
    watch.progress();
    await saw(1);
    await side.put("not g", "x");
    watch.progress();
    await saw(1);
    await side.put("g", "x");
    await saw(1);
    watch.progress();
    await saw(1);
  },
  "a revision that is compacted": async (side, watch, saw) => {
    const first = await side.put("c", "1");
    await side.put("c", "2");
    const last = await side.put("c", "3");
    await side.compact(last - 1);
    watch.create({ key: key("c"), startRevision: first });
    await saw(2);
    watch.cancel(0);
    await saw(1);
    watch.create({ key: key("c"), startRevision: last - 1, prevKv: true });
    await saw(2);
  },
};

describe("watch beside etcd", { skip: skipWithoutEtcd }, () => {
  let ours: Side;
  let theirs: Side;
  before(async () => {
    ours = new Side(await startCluster({ size: 1 }));
    theirs = new Side(await startCluster({ executable: etcd!, size: 1 }));
  });
  after(async () => {
    await ours?.close();
    await theirs?.close();
  });

  for (const [name, script] of Object.entries(scripts)) {
    test(name, async () => {
      const expected = await play(theirs, script);
      assert.deepEqual(await play(ours, script), expected);
    });
  }

  describe("etcdctl", { skip: skipWithoutEtcdctl }, () => {
    /** What etcdctl prints while `changes` are made; they begin when the member has its watch. */
    async function printed(
      side: Side,
      args: readonly string[],
      input: string,
      lines: number,
      changes: () => Promise<void>,
    ): Promise<string> {
      const watchers = () => side.metric("etcd_debugging_mvcc_watcher_total");
      await until(
        "the watches of connections that are closed have ended",
        async () => (await watchers()) === 0,
      );
      const env = { ...process.env, ETCDCTL_API: "3" };
      const child = endsWith(
        spawn("etcdctl", [`--endpoints=${side.address}`, "watch", ...args], { env }),
      );
      let output = "";
      let errors = "";
      child.stdout.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
      child.stderr.on("data", (chunk: Buffer) => {
        errors += chunk.toString();
      });
      // One that has ended does not read on.
      child.stdin.on("error", () => {});
      child.stdin.write(input);
      try {
        const endMs = performance.now() + PROGRAM_LIMIT_MS;
        const wait = async (done: () => boolean | Promise<boolean>): Promise<void> => {
          while (!(await done())) {
            if (performance.now() > endMs || child.exitCode !== null)
              throw new Error(`etcdctl watch ${args.join(" ")}: ${output}${errors}`);
            await delay(20);
          }
        };
        await wait(async () => (await watchers()) > 0);
        await changes();
        await wait(() => output.split("\n").length > lines);
        return output.replace(/"(cluster_id|member_id|raft_term)":\d+/g, '"$1":0');
      } finally {
        const gone = new Promise((resolve) => child.once("close", resolve));
        child.kill("SIGKILL");
        await gone;
      }
    }

    async function same(
      args: readonly string[],
      lines: number,
      changes: (side: Side) => Promise<void>,
      input = "",
    ): Promise<string> {
      const expected = await printed(theirs, args, input, lines, () => changes(theirs));
      assert.equal(await printed(ours, args, input, lines, () => changes(ours)), expected);
      return expected;
    }

    test("watch key", async () => {
      const output = await same(["ctl"], 8, async (side) => {
        await side.put("ctl", "1");
        await side.put("ctl2", "other");
        await side.put("ctl", "2");
        await side.delete("ctl");
      });
      assert.equal(output, "PUT\nctl\n1\nPUT\nctl\n2\nDELETE\nctl\n\n");
    });

    test("watch --prefix, and a range", async () => {
      const changes = async (side: Side) => {
        for (const name of ["pre/a", "pre/b", "prf", "pre/a"]) await side.put(name, "x");
        await side.delete("pre/", "pre0");
      };
      await same(["pre/", "--prefix"], 15, changes);
      await same(["pre/", "prf"], 15, changes);
    });

    test("watch --rev, --prev-kv", async () => {
      const rev = await theirs.put("past", "1");
      assert.equal(await ours.put("past", "1"), rev);
      for (const side of [ours, theirs]) {
        await side.put("past", "2");
        await side.delete("past");
      }
      await same(["past", `--rev=${rev}`], 15, async (side) => {
        await side.put("past", "3");
        await side.delete("past");
      });
      await same(["past", `--rev=${rev}`, "--prev-kv"], 20, async () => {});
      await same(["past", `--rev=${rev}`, "-w", "json"], 1, async () => {});
    });

    test("watch -i: several watches, progress, cancel", async () => {
      await same(
        ["-i"],
        6,
        async (side) => {
          await side.put("int/1", "x");
          await side.put("int/2", "y");
        },
        "watch int/ --prefix\n",
      );
      const output = await same(["-i"], 1, async () => {}, "watch int/ --prefix\nprogress\n");
      assert.match(output, /^progress notify: \d+\n$/);
    });
  });
});

describe("watch by other clients", () => {
  let side: Side;
  before(async () => {
    side = new Side(await startCluster({ size: 1 }));
  });
  after(() => side?.close());

  test("etcd3 of npm: put, delete, from a revision, previous value, cancel", async () => {
    const client = new Etcd3({ hosts: side.address });
    try {
      const seen: string[] = [];
      const watcher = await client.watch().prefix("npm/").withPreviousKV().create();
      const all = new Promise<void>((resolve) => {
        watcher.on("put", (kv, previous) =>
          seen.push(`put ${kv.key}=${kv.value} before ${previous?.value ?? "nothing"}`),
        );
        watcher.on("delete", (kv, previous) => {
          seen.push(`delete ${kv.key} before ${previous?.value ?? "nothing"}`);
          resolve();
        });
      });
      const { header } = await client.put("npm/a").value("1");
      await client.put("npm/a").value("2");
      await client.delete().key("npm/a");
      await all;
      assert.deepEqual(seen, [
        "put npm/a=1 before nothing",
        "put npm/a=2 before 1",
        "delete npm/a before 2",
      ]);
      await watcher.cancel();

      const again = await client.watch().key("npm/a").startRevision(header.revision).create();
      const values: string[] = [];
      await new Promise<void>((resolve) => {
        again.on("put", (kv) => values.push(kv.value.toString()));
        again.on("delete", () => resolve());
      });
      assert.deepEqual(values, ["1", "2"]);
      await again.cancel();
    } finally {
      client.close();
    }
  });

  test("metrics count watchers, streams and events; all are gone with the connection", async () => {
    const events = await side.metric("etcd_debugging_mvcc_events_total");
    const watch = new WatchClient(side.address);
    for (let i = 0; i < 3; i++) watch.create({ key: key("m") });
    await watch.take(3);
    assert.equal(await side.metric("etcd_debugging_mvcc_watcher_total"), 3);
    assert.equal(await side.metric("etcd_debugging_mvcc_watch_stream_total"), 1);
    await side.put("m", "x");
    await watch.take(3);
    assert.equal(await side.metric("etcd_debugging_mvcc_events_total"), events + 3);
    assert.equal(await side.metric("etcd_debugging_mvcc_pending_events_total"), 0);
    assert.equal(await side.metric("etcd_debugging_mvcc_slow_watcher_total"), 0);
    watch.close();
    await until(
      "the stream is gone",
      async () => (await side.metric("etcd_debugging_mvcc_watch_stream_total")) === 0,
    );
    assert.equal(await side.metric("etcd_debugging_mvcc_watcher_total"), 0);
  });

  test("a client that stops reading gets everything once it reads again, in order", async () => {
    const watch = new WatchClient(side.address);
    const neighbour = new WatchClient(side.address);
    for (const one of [watch, neighbour]) one.create({ key: key("slow") });
    await watch.take(1);
    await neighbour.take(1);
    watch.pause();
    const value = "v".repeat(100_000);
    const revisions: number[] = [];
    for (let i = 0; i < 120; i++) revisions.push(await side.put("slow", value + i));
    await neighbour.until(() => eventCount(neighbour) === 120);
    assert.equal(
      await side.metric("etcd_debugging_mvcc_slow_watcher_total"),
      1,
      "12 MB are beyond the stream's budget",
    );
    watch.resume();
    await watch.until(() => eventCount(watch) === 120);
    for (const one of [watch, neighbour]) {
      const seen = one.responses.flatMap((response) =>
        response.events.map((event) => KeyValue.decode(Event.decode(event).kv!).modRevision),
      );
      assert.deepEqual(seen, revisions);
      one.close();
    }
  });
});

/** The member that has the only watcher. */
async function memberOfWatch(cluster: TestCluster): Promise<TestMember> {
  let found: TestMember | undefined;
  await until("a member has the watch", async () => {
    for (const member of cluster.members) {
      if ((await metric(cluster, member, "etcd_debugging_mvcc_watcher_total")) === 1)
        found = member;
    }
    return found !== undefined;
  });
  return found!;
}

describe("the member that a watch is on ends", () => {
  for (const [how, end] of [
    ["killed", (member: TestMember) => member.kill()],
    ["asked to stop", (member: TestMember) => member.terminate()],
  ] as const) {
    test(`${how}: etcd3 of npm goes on at another member, and sees every change once`, async () => {
      await withCluster({ size: 3 }, async (cluster) => {
        const client = new Etcd3({ hosts: cluster.members.map((member) => member.clientAddress) });
        try {
          const watcher = await client.watch().prefix("k").create();
          const seen: string[] = [];
          watcher.on("put", (kv) => seen.push(kv.value.toString()));
          const written: string[] = [];
          const write = async (through: TestMember): Promise<void> => {
            const kv = new TestClient(through.clientAddress);
            try {
              for (let i = 0; i < 20; i++) {
                const value = `${written.length}`;
                await kv.call(KVService.methods.Put, { key: key(`k${value}`), value: key(value) });
                written.push(value);
              }
            } finally {
              kv.close();
            }
          };
          const on = await memberOfWatch(cluster);
          const others = cluster.members.filter((member) => member !== on);
          await write(on);
          await end(on);
          await write(await untilWritable(others));
          await until("every change is seen", () => seen.length >= written.length);
          assert.deepEqual(seen, written);
          await watcher.cancel();
        } finally {
          client.close();
        }
      });
    });
  }
});

describe("a member without a leader", () => {
  for (const [name, executable] of [
    ["ours", quorate],
    ["etcd", etcd],
  ] as const) {
    const skip = executable === undefined && skipWithoutEtcd;
    test(`${name}: ends the watches of a client that wants one, and refuses new ones; others stay`, {
      skip,
    }, async () => {
      await withCluster({ size: 3, executable: executable! }, async (cluster) => {
        const [alone, ...others] = cluster.members;
        const picky = new WatchClient(alone.clientAddress, { hasleader: "true" });
        const patient = new WatchClient(alone.clientAddress);
        const clients = [picky, patient];
        try {
          for (const one of clients) {
            one.create({ key: key("k") });
            await one.take(1);
          }
          await Promise.all(others.map((member) => member.kill()));
          await picky.until(() => picky.status !== undefined);
          assert.deepEqual(
            [picky.status!.code, picky.status!.details],
            [14, "etcdserver: no leader"],
          );
          const late = new WatchClient(alone.clientAddress, { hasleader: "true" });
          clients.push(late);
          late.create({ key: key("k") });
          await late.until(() => late.status !== undefined);
          assert.deepEqual(
            [late.status!.code, late.status!.details],
            [14, "etcdserver: no leader"],
          );
          assert.equal(patient.status, undefined);
          for (const member of others) member.start();
          await cluster.waitReady();
          const kv = new TestClient((await untilWritable(cluster.members)).clientAddress);
          await kv.call(KVService.methods.Put, { key: key("k"), value: key("v") });
          kv.close();
          assert.match(describeResponse((await patient.take(1))[0]), /PUT k=v/);
        } finally {
          for (const one of clients) one.close();
        }
      });
    });
  }
});

/**
 * A member through which one can write, which takes an election. The write is to a key without
 * watches.
 */
async function untilWritable(members: readonly TestMember[]): Promise<TestMember> {
  let found: TestMember | undefined;
  await until("a member takes writes", async () => {
    for (const member of members) {
      const kv = new TestClient(member.clientAddress);
      const isWritten = kv
        .call(KVService.methods.Put, { key: key("probe") }, 2000)
        .then(() => true);
      if (await isWritten.catch(() => false).finally(() => kv.close())) found = member;
    }
    return found !== undefined;
  });
  return found!;
}

const eventCount = (watch: WatchClient): number =>
  watch.responses.reduce((sum, { events }) => sum + events.length, 0);
