/**
 * Continuous backup of running clusters. A random history is recorded, by runs that are killed and
 * started again, and the store is rebuilt at fifty random revisions: each equals the model, with
 * every revision before it.
 * @slow
 */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { quorateutl } from "@quorate/ctl";
import { levelKeyspaces } from "@quorate/host/node";
import { fromLatin1, KVService, RangeRequest } from "@quorate/proto";
import { applyRange, Store } from "@quorate/store";
import { BackupRun } from "../support/backup-run.ts";
import { startCluster, withCluster } from "../support/cluster.ts";
import { runInProcess } from "../support/ctl-io.ts";
import { etcd, quorate, skipWithoutEtcd } from "../support/executables.ts";
import { KvModel, toModelKeys } from "../support/kv-model.ts";
import { sendModel } from "../support/model-sender.ts";
import { SeededRandom, seedOf } from "../support/random.ts";
import {
  clientOf,
  ourTool,
  restoreFlags,
  revisionOf,
  sendHistory,
  startRestored,
  visibleState,
} from "../support/snapshots.ts";
import { until } from "../support/until.ts";

const steps = Number(process.env["QUORATE_STEPS"] ?? 500);
/** A test that takes longer hangs. */
const timeout = 400_000;

/** The last revision that a backup has on the disk. */
async function recorded(dir: string): Promise<number> {
  const { code, stdout, stderr } = await ourTool("quorateutl", "backup", "list", dir, "-w", "json");
  assert.equal(code, 0, stderr);
  return Math.max(
    0,
    ...(JSON.parse(stdout) as { lastRevision: number }[]).map(({ lastRevision }) => lastRevision),
  );
}

async function recordedAtLeast(dir: string, revision: number): Promise<void> {
  await until(
    `revision ${revision} is recorded`,
    async () => (await recorded(dir)) >= revision,
    100,
  );
}

/** Runs quorateutl in this process. */
async function utl(...args: readonly string[]): Promise<{ code: number; out: string }> {
  const { code, stdout, stderr } = await runInProcess(quorateutl, args, { sleep: async () => {} });
  return { code, out: stdout + stderr };
}

test("rebuilt at fifty random revisions of a random history, each equals the model", {
  timeout,
}, async (t) => {
  const seed = seedOf(20_260_101);
  t.diagnostic(`seed ${seed} (QUORATE_SEED), ${steps} steps (QUORATE_STEPS)`);
  const random = new SeededRandom(seed);
  const model = new KvModel(random);
  await withCluster({ executable: quorate, size: 3 }, async (cluster) => {
    const dir = join(cluster.dir, "backup");
    const client = clientOf(cluster);
    await sendModel(client, model, 30);
    const base = model.revision;
    const first = new BackupRun(t, cluster.endpoints, dir);
    await first.says(/base snapshot at revision/);
    await sendModel(client, model, steps >> 1);
    await recordedAtLeast(dir, model.revision);
    await first.end("SIGKILL");
    await sendModel(client, model, steps >> 3);
    // Of the two members that it may watch, either goes away while it runs.
    const second = new BackupRun(t, cluster.endpoints.slice(1), dir);
    await second.says(/continuing behind revision/);
    await cluster.members[2].kill();
    await sendModel(client, model, steps >> 3);
    cluster.members[2].start();
    await cluster.waitReady();
    await cluster.members[1].terminate();
    await sendModel(client, model, steps >> 2);
    const newest = model.revision;
    await recordedAtLeast(dir, newest);
    assert.equal(await second.end("SIGTERM"), 0, second.output);
    assert.doesNotMatch(second.output, /GAP/);
    client.close();

    const verified = await utl("backup", "verify", dir);
    assert.equal(verified.code, 0, verified.out);
    const compared = /^revisions (\d+) to (\d+): good; (\d+) hashes compared\n$/.exec(verified.out);
    assert.ok(compared !== null, verified.out);
    assert.deepEqual([Number(compared[1]), Number(compared[2])], [base, newest]);
    assert.ok(Number(compared[3]) > 0, verified.out);

    const out = join(cluster.dir, "out");
    for (let i = 0; i < 50; i++) {
      const revision = i === 0 ? newest : base + random.below(newest - base + 1);
      rmSync(out, { recursive: true, force: true });
      const restored = await utl("backup", "restore", dir, `--at=${revision}`, `--data-dir=${out}`);
      assert.equal(restored.code, 0, restored.out);
      assert.match(
        restored.out,
        new RegExp(`: revision ${revision}, ${model.at(revision).keys.size} keys; member `),
      );
      const store = await Store.open(levelKeyspaces, `${out}/member/store`);
      assert.equal(store.mvcc.currentRevision, revision);
      for (const at of [revision, base, base + random.below(revision - base + 1)]) {
        const all = RangeRequest.create({
          key: new Uint8Array(1),
          rangeEnd: new Uint8Array(1),
          revision: at,
        });
        assert.deepEqual(
          toModelKeys(applyRange(store.mvcc, all).kvs),
          model.at(at).keys,
          `the keys at ${at} in the store of ${revision}`,
        );
      }
      await store.close({ flush: false });
    }
    const beyond = await utl(
      "backup",
      "restore",
      dir,
      `--at=${newest + 1}`,
      `--data-dir=${join(cluster.dir, "beyond")}`,
    );
    assert.equal(beyond.code, 1);
    assert.match(
      beyond.out,
      new RegExp(
        `revision ${newest + 1} is not in it; it has the revisions ${base} to ${newest}\n$`,
      ),
    );

    // And a whole cluster starts from it.
    await startRestored(cluster, (flags) =>
      ourTool("quorateutl", "backup", "restore", dir, `--at=${newest - 5}`, ...flags),
    );
    const again = clientOf(cluster, 1);
    const { kvs } = await again.call(KVService.methods.Range, {
      key: new Uint8Array(1),
      rangeEnd: new Uint8Array(1),
    });
    assert.deepEqual(toModelKeys(kvs), model.at(newest - 5).keys);
    again.close();
    // Its history is not the one that was recorded any more.
    const refused = await ourTool(
      "quoratectl",
      `--endpoints=${cluster.endpoints[0]}`,
      "backup",
      "run",
      `--to=${dir}`,
      "--once",
    );
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /the cluster was restored from an earlier state; begin a new backup: quoratectl backup run --to \S+-2/,
    );
  });
});

test("what was compacted while no backup ran is a gap that is reported, listed and cannot be rebuilt", {
  timeout,
}, async () => {
  const cluster = await startCluster({ executable: quorate, size: 1 });
  try {
    const dir = join(cluster.dir, "backup");
    mkdirSync(dir);
    const client = clientOf(cluster);
    const put = async (count: number): Promise<number> => {
      for (let i = 0; i < count; i++)
        await client.call(KVService.methods.Put, {
          key: fromLatin1(`k${i % 5}`),
          value: fromLatin1(`${i}`),
        });
      return revisionOf(client);
    };
    const once = () =>
      ourTool(
        "quoratectl",
        `--endpoints=${cluster.endpoints[0]}`,
        "backup",
        "run",
        `--to=${dir}`,
        "--once",
      );
    await put(10);
    assert.equal((await once()).code, 0);
    const known = await put(10);
    const second = await once();
    assert.equal(second.code, 0, second.stderr);
    assert.doesNotMatch(second.stdout, /GAP|base/);
    const lost = await put(10);
    await client.call(KVService.methods.Compact, { revision: lost, physical: true });
    const third = await once();
    assert.equal(third.code, 0, third.stderr);
    assert.match(
      third.stdout,
      new RegExp(`GAP: the cluster compacted changes behind revision ${known} `),
    );
    const newest = await put(5);
    assert.equal((await once()).code, 0);
    const list = await ourTool("quorateutl", "backup", "list", dir, "-w", "json");
    const rows = JSON.parse(list.stdout) as { revision: number; lastRevision: number }[];
    assert.deepEqual(
      rows.map(({ revision, lastRevision }) => [revision, lastRevision]),
      [
        [11, known],
        [lost, newest],
      ],
    );
    const verified = await ourTool("quorateutl", "backup", "verify", dir);
    assert.match(
      verified.stdout,
      new RegExp(
        `^revisions 11 to ${known}: good; .*\nGAP: nothing between ${known} and ${lost}\nrevisions ${lost} to ${newest}: good; `,
      ),
    );
    const between = await ourTool(
      "quorateutl",
      "backup",
      "restore",
      dir,
      `--at=${known + 1}`,
      `--data-dir=${join(cluster.dir, "x")}`,
    );
    assert.equal(between.code, 1);
    assert.match(
      between.stderr,
      new RegExp(
        `revision ${known + 1} is not in it; it has the revisions 11 to ${known}, and ${lost} to ${newest}`,
      ),
    );
    const restoreAt = (timeMs: number, name: string) =>
      ourTool(
        "quorateutl",
        "backup",
        "restore",
        dir,
        `--at=${new Date(timeMs).toISOString()}`,
        `--data-dir=${join(cluster.dir, name)}`,
      );
    // The newest state, and a word that it is older than what was asked for.
    const later = await restoreAt(Date.now() + 3_600_000, "later");
    assert.equal(later.code, 0, later.stderr);
    assert.match(
      later.stderr,
      new RegExp(
        `^Warning: the backup ends at \\S+Z with revision ${newest}: changes between that and \\S+Z are not in it$`,
        "m",
      ),
    );
    assert.match(later.stdout + later.stderr, new RegExp(`revision ${newest}\\b`));
    const early = await restoreAt(Date.now() - 3_600_000, "early");
    assert.equal(early.code, 1);
    assert.match(early.stderr, /it begins at \S+Z, after \S+Z/);
    client.close();
  } finally {
    await cluster.destroy();
  }
});

test("the original is backed up as well, and ours starts from it", {
  skip: skipWithoutEtcd,
  timeout,
}, async (t) => {
  await withCluster({ executable: quorate, size: 1 }, (ours) =>
    withCluster({ executable: etcd!, size: 1 }, async (theirs) => {
      const dir = join(theirs.dir, "backup");
      const client = clientOf(theirs);
      const random = new SeededRandom(seedOf(11));
      await sendHistory(client, random, 60);
      const run = new BackupRun(t, theirs.endpoints, dir);
      await run.says(/base snapshot at revision/);
      const newest = await sendHistory(client, random, 200);
      await recordedAtLeast(dir, newest);
      assert.equal(await run.end("SIGTERM"), 0, run.output);
      const verified = await ourTool("quorateutl", "backup", "verify", dir);
      assert.equal(verified.code, 0, verified.stderr);
      const { atRevisions, granted } = (await visibleState(client, [])) as {
        atRevisions: unknown;
        granted: unknown;
      };
      client.close();
      await startRestored(ours, (flags) =>
        ourTool("quorateutl", "backup", "restore", dir, ...flags),
      );
      const copy = clientOf(ours);
      const found = (await visibleState(copy, [])) as { atRevisions: unknown; granted: unknown };
      assert.deepEqual(found.atRevisions, atRevisions);
      assert.deepEqual(found.granted, granted);
      copy.close();
      assert.ok(restoreFlags(ours.members[0]).length === 5);
    }),
  );
});

test("a damaged base snapshot is named with the next commands, and what another one reaches is rebuilt", {
  timeout,
}, async (t) => {
  await withCluster({ executable: quorate, size: 1 }, async (cluster) => {
    const dir = join(cluster.dir, "backup");
    const client = clientOf(cluster);
    const put = (value: string) =>
      client.call(KVService.methods.Put, { key: fromLatin1("k"), value: fromLatin1(value) });
    for (const value of ["one", "two"]) {
      await put(value);
      const run = new BackupRun(t, cluster.endpoints, dir, "--interval=1s");
      const wanted = value === "one" ? 1 : 2;
      await until(
        "a base is taken",
        () => existsSync(dir) && readdirSync(dir).filter(isBase).length >= wanted,
        100,
      );
      await run.end("SIGTERM");
    }
    const revision = Number(
      (await client.call(KVService.methods.Range, { key: fromLatin1("k") })).header!.revision,
    );
    const last = readdirSync(dir).filter(isBase).sort().at(-1)!;
    const path = join(dir, last);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.with(bytes.length >> 1, bytes[bytes.length >> 1] ^ 1));
    const verified = await utl("backup", "verify", dir);
    assert.equal(verified.code, 1, verified.out);
    const next =
      /What to do next: "mv (\S+) (\S+)"; then "quorateutl (backup list) (\S+)" shows which revisions the others reach/.exec(
        verified.out,
      );
    assert.deepEqual(next?.slice(1), [path, `${path}.damaged`, "backup list", dir], verified.out);
    renameSync(next[1], next[2]);
    assert.ok(
      (await recorded(dir)) >= revision - 1,
      "the first base reaches as far as its segments do",
    );
    assert.equal((await utl("backup", "verify", dir)).code, 0);
    client.close();
  });
});

const isBase = (name: string): boolean => /^base-[0-9a-f]{16}-[0-9TZ]+\.db$/.test(name);
