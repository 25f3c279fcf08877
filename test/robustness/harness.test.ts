/**
 * The harness, judged: what it must notice is done to a cluster of its own, step by step.
 * @slow
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { leaderOf } from "../support/checks.ts";
import { until } from "../support/until.ts";
import { FAULTS } from "./faults.ts";
import { judge } from "./judge.ts";
import { type RunningCluster, startRunningCluster } from "./members.ts";
import { Mixture, oursAlone } from "./mixture.ts";
import { drawKind } from "./nemesis.ts";
import { canFindOwners } from "./owner.ts";
import { OPEN_WIRE } from "./proxy.ts";
import { Recorder, readHistory } from "./recorder.ts";
import { wipe } from "./round.ts";
import { type Plant, RecordingClient, Shared } from "./workload.ts";

const skip = canFindOwners() ? false : "only Linux shows the owner of a connection";
const limitMs = 120_000;
const callLimitMs = 20_000;

/** What the judge says of the calls that `body` makes. */
async function judged(
  running: RunningCluster,
  path: string,
  plant: Plant | undefined,
  body: (clientOf: (member: number) => RecordingClient) => Promise<void>,
): Promise<string | undefined> {
  const recorder = new Recorder(path, await wipe(running, limitMs));
  const shared = new Shared(running, recorder, { thinkMs: 0, callLimitMs }, 1, plant);
  const clients: RecordingClient[] = [];
  try {
    await body((member) => {
      clients.push(new RecordingClient(`c${clients.length}`, shared, member));
      return clients.at(-1)!;
    });
  } finally {
    for (const client of clients) client.close();
    recorder.close();
  }
  return judge(readHistory(path)).violation;
}

const get = { kind: "range", key: "ka", end: "" } as const;
const put = (value: string) => ({ kind: "put", key: "ka", value }) as const;

test("stale reads, lost writes, members that end: all of it is noticed, and nothing else", {
  skip,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-harness-"));
  const ends: string[] = [];
  const running = await startRunningCluster({
    dir,
    programs: [oursAlone([]), oursAlone([]), oursAlone([])],
    onEnd: (_node, what) => ends.push(what),
  });
  const { nodes, wires, cluster } = running;
  const leading = async (): Promise<number> =>
    cluster.members.indexOf(await leaderOf(cluster, limitMs));
  try {
    await t.test("members speak through the proxies alone", async () => {
      // Followers have little to say to each other, but look whether the other is there.
      for (const wire of wires.all)
        await until(`something goes over ${wire.name}`, () => wire.passedBytes > 0);
    });

    await t.test(
      "reads of a member that hears nothing: right as what they are, wrong as linearizable ones",
      async () => {
        for (const plant of [undefined, "stale-read"] as const) {
          const leader = await leading();
          const cutOff = (leader + 1) % 3;
          const violation = await judged(
            running,
            join(dir, `stale-${plant}.jsonl`),
            plant,
            async (clientOf) => {
              const other = clientOf(leader);
              await other.call(put("old"));
              assert.equal((await clientOf(cutOff).call(get)).kind, "answered");
              const around = wires.all.filter(({ name }) => name.includes(nodes[cutOff].name));
              for (const wire of around) wire.set({ ...OPEN_WIRE, state: "blackhole" });
              try {
                assert.equal((await other.call(put("new"))).kind, "answered");
                await clientOf(cutOff).call(get, { serializable: plant === undefined });
              } finally {
                wires.heal();
              }
            },
          );
          if (plant === undefined) assert.equal(violation, undefined);
          else assert.match(violation ?? "nothing is wrong", /HIST-1/);
        }
      },
    );

    await t.test("a write that was answered and that the history denies", async () => {
      const violation = await judged(
        running,
        join(dir, "lost.jsonl"),
        "lost-write",
        async (clientOf) => {
          const client = clientOf(await leading());
          for (let i = 0; i < 60; i++) await client.call(put(`v${i}`));
          await client.call(get);
        },
      );
      assert.match(violation ?? "nothing is wrong", /HIST-2: revision \d+ is /);
    });

    await t.test(
      "a full disk: the member ends and says why, which is no violation; with space it comes back",
      async () => {
        const node = nodes[0];
        node.disk.fill();
        const client = new RecordingClient(
          "filler",
          sharedOf(running, join(dir, "full.jsonl")),
          (await leading()) === 0 ? 1 : 0,
        );
        await until("the member ends", async () => {
          if (node.test.isRunning) await client.call(put("more"), {}, 1000);
          return !node.test.isRunning;
        });
        client.close();
        await until("its end is excused", () => node.excuse === "disk full");
        assert.match(node.log(), /no space left/i);
        node.disk.free();
        node.disk.wasFull = false;
        node.start();
        await node.test.waitReady(limitMs);
        assert.deepEqual(ends, []);
      },
    );

    await t.test("a member that is killed is excused, one that ends by itself is not", async () => {
      await nodes[1].kill();
      nodes[1].start();
      await nodes[1].test.waitReady(limitMs);
      assert.deepEqual(ends, []);
      process.kill(nodes[1].test.pid!, "SIGKILL");
      await until("the end is noticed", () => ends.length > 0);
      assert.match(
        ends[0],
        /m1 ended \(code null, signal SIGKILL\) and no fault explains it\n--- its last lines\n.*"/,
      );
    });
  } catch (error) {
    console.error(cluster.logTails());
    throw error;
  } finally {
    await running.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

function sharedOf(running: RunningCluster, path: string): Shared {
  return new Shared(running, new Recorder(path, 1), { thinkMs: 0, callLimitMs }, 1, undefined);
}

test("each kind of fault strikes once before one comes again, whatever the seed", () => {
  const kinds = Object.keys(FAULTS);
  assert.ok(kinds.includes("stopLogReader"));
  for (let seed = 0; seed < 200; seed++) {
    const random = new SeededRandom(BigInt(seed));
    const counts = new Map<string, number>();
    for (let i = 0; i < 3 * kinds.length; i++) {
      const kind = drawKind(random, counts);
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      if (i === kinds.length - 1) assert.deepEqual([...counts.keys()].sort(), [...kinds].sort());
    }
    assert.equal(counts.size, kinds.length);
  }
});

test("mixed clusters: some members are ours, but not all, and none joins that is too old", () => {
  const installed = (release: string) => ({ name: "etcd" as const, command: [release] });
  const seen = new Set<string>();
  for (let seed = 1; seed <= 200; seed++) {
    const mixture = new Mixture(new SeededRandom(BigInt(seed)), [], installed);
    let programs = mixture.founders(3);
    for (let round = 0; round < 4; round++) {
      const changes = mixture.changes(programs, round === 0);
      for (const [index, program] of changes) {
        const others = programs.filter((_, at) => at !== index);
        const version = others.map(({ name }) => (name === "quorate" ? "3.7" : name)).sort()[0]!;
        assert.ok(program.name === "quorate" || program.name >= version, `seed ${seed}`);
        programs = programs.with(index, program);
      }
      const ours = programs.filter(({ name }) => name === "quorate").length;
      assert.ok(ours > 0 && ours < 3, `seed ${seed}: ${ours} of 3`);
      seen.add(
        programs
          .map(({ name }) => name)
          .sort()
          .join(),
      );
    }
  }
  for (const mixed of ["3.5,3.5,quorate", "3.5,3.6,quorate", "3.7,quorate,quorate"])
    assert.ok(seen.has(mixed), mixed);
});
