/**
 * A backup in an object store that others wrote (versitygw), which checks signatures and hashes.
 * The store goes away meanwhile, the run is killed, its directory is lost; what comes back equals
 * the model.
 * @slow
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { quorateutl } from "@quorate/ctl";
import { levelKeyspaces } from "@quorate/host/node";
import { MaintenanceService, RangeRequest } from "@quorate/proto";
import { applyRange, Store } from "@quorate/store";
import { BackupRun } from "../support/backup-run.ts";
import { withCluster } from "../support/cluster.ts";
import { runInProcess } from "../support/ctl-io.ts";
import { quorate, skipWithout } from "../support/executables.ts";
import { KvModel, toModelKeys } from "../support/kv-model.ts";
import { sendModel } from "../support/model-sender.ts";
import { ObjectStoreServer, STORE_CREDENTIALS, STORE_PROGRAM } from "../support/object-store.ts";
import { freePorts } from "../support/ports.ts";
import { SeededRandom, seedOf } from "../support/random.ts";
import { clientOf } from "../support/snapshots.ts";
import { until } from "../support/until.ts";

const skip = skipWithout(
  STORE_PROGRAM,
  "go install github.com/versity/versitygw/cmd/versitygw@v1.8.0",
);
/** How often it is restored. */
const RESTORES = Number(process.env["QUORATE_RESTORES"] ?? 5);

test("a backup whose directory is lost comes back from the object store", {
  skip,
  timeout: 400_000 + 2000 * RESTORES,
}, async (t) => {
  const seed = seedOf(20_261_128);
  t.diagnostic(`seed ${seed} (QUORATE_SEED)`);
  const random = new SeededRandom(seed);
  const model = new KvModel(random);
  const [port] = await freePorts(1);
  await withCluster({ executable: quorate, size: 1 }, async (cluster) => {
    const server = new ObjectStoreServer(join(cluster.dir, "s3"), `127.0.0.1:${port}`);
    await server.start(t);
    const dir = join(cluster.dir, "backup");
    const key = join(cluster.dir, "key");
    writeFileSync(key, "00112233".repeat(8));
    const place = "s3://backups/prod/one";
    const storeFlags = [`--s3-endpoint=${server.endpoint}`, `--encryption-key=${key}`];
    Object.assign(process.env, STORE_CREDENTIALS);
    const flags = [`--mirror=${place}`, "--mirror-interval=300ms", ...storeFlags];
    const utl = async (...args: readonly string[]): Promise<string> => {
      const env = { ...process.env };
      const result = await runInProcess(quorateutl, args, { env });
      assert.equal(result.code, 0, result.stderr);
      return result.stdout;
    };
    const fetched = join(cluster.dir, "fetched");
    /** The last revision of what a fetch into a new directory has. */
    const fetchedRevision = async (): Promise<number> => {
      rmSync(fetched, { recursive: true, force: true });
      await utl("backup", "fetch", place, fetched, ...storeFlags);
      const list = JSON.parse(await utl("backup", "list", fetched, "-w", "json"));
      return Math.max(...list.map((one: { lastRevision: number }) => one.lastRevision));
    };
    const client = clientOf(cluster);
    await sendModel(client, model, 30);
    const base = model.revision;
    const first = new BackupRun(t, cluster.endpoints, dir, ...flags);
    await first.says(/base snapshot at revision/);
    await sendModel(client, model, 100);
    await server.stop();
    await sendModel(client, model, 100);
    await first.says(/the mirror is behind: .*ECONNREFUSED/);
    await server.start(t);
    await first.says(/the mirror has caught up/);
    const newest = model.revision;
    await until("the mirror has all", async () => (await fetchedRevision()) >= newest, 200);
    await first.end("SIGKILL");
    rmSync(dir, { recursive: true });
    assert.equal(server.contentOf("prod/one").indexOf("segment"), -1);
    assert.equal(
      server.contentOf("prod/one").indexOf("QRMBKUP1"),
      -1,
      "nothing stands there unencrypted",
    );

    // A run goes on in the directory that was fetched.
    await sendModel(client, model, 50);
    const second = new BackupRun(t, cluster.endpoints, fetched, ...flags, "--once");
    await second.says(/stopped at revision/);
    const points: { revision: number; hash: number }[] = [];
    for (let i = 0; i < RESTORES; i++) {
      const revision = base + random.below(model.revision - base + 1);
      const { hash } = await client.call(MaintenanceService.methods.HashKV, { revision });
      points.push({ revision, hash });
    }
    client.close();
    assert.equal(await fetchedRevision(), model.revision);
    assert.match(await utl("backup", "verify", fetched), /: good; [1-9]\d* hashes compared\n$/);
    const out = join(cluster.dir, "out");
    for (const { revision, hash } of points) {
      rmSync(out, { recursive: true, force: true });
      await utl("backup", "restore", fetched, `--at=${revision}`, `--data-dir=${out}`);
      const store = await Store.open(levelKeyspaces, `${out}/member/store`);
      const all = RangeRequest.create({ key: new Uint8Array(1), rangeEnd: new Uint8Array(1) });
      assert.equal(store.mvcc.currentRevision, revision);
      const { kvs } = applyRange(store.mvcc, all);
      assert.deepEqual(toModelKeys(kvs), model.at(revision).keys, `revision ${revision}`);
      // The model does not compact.
      assert.equal((await store.mvcc.hashKV(revision)).hash, hash, `revision ${revision}`);
      await store.close({ flush: false });
    }
  });
});
