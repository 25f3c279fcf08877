/**
 * Snapshots exchanged with the original in both directions: the same keys at the same revisions,
 * leases and hash on either side.
 * @slow
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import {
  AlarmRequest_AlarmAction,
  AlarmType,
  fromLatin1,
  KeyValue,
  KVService,
  MaintenanceService,
} from "@quorate/proto";
import { withCluster } from "../support/cluster.ts";
import { etcdctlFor } from "../support/etcdctl.ts";
import { etcd, quorate, skipWithoutEtcd, skipWithoutEtcdctl } from "../support/executables.ts";
import { SeededRandom, seedOf } from "../support/random.ts";
import {
  clientOf,
  ETCDCTL_3,
  etcdRestores,
  ourTool,
  peerUrls,
  restoreFlags,
  revisionOf,
  runProgram,
  sendHistory,
  startRestored,
  visibleState,
} from "../support/snapshots.ts";

const steps = Number(process.env["QUORATE_STEPS"] ?? 600);
const skip = skipWithoutEtcd || skipWithoutEtcdctl;

const alarm = { memberID: 5n, alarm: AlarmType.NOSPACE };

/** A few revisions of a history, the oldest ones compacted most likely. */
const someOf = (newest: number): number[] =>
  [1, newest >> 1, newest - 20, newest - 3, newest].filter((revision) => revision > 0);

test("a snapshot of ours starts the original, and one of that starts ours again", {
  skip,
}, async (t) => {
  const seed = seedOf(7);
  t.diagnostic(`seed ${seed} (QUORATE_SEED), ${steps} steps (QUORATE_STEPS)`);
  const random = new SeededRandom(seed);
  await withCluster(
    { executable: quorate, size: 3, flags: ["--quota-auto-disarm=false"] },
    (ours) =>
      withCluster({ executable: etcd!, size: 3 }, async (theirs) => {
        const out = join(ours.dir, "out.db");
        const back = join(ours.dir, "back.db");
        const first = clientOf(ours);
        const newest = await sendHistory(first, random, steps);
        await first.call(MaintenanceService.methods.Alarm, {
          ...alarm,
          action: AlarmRequest_AlarmAction.ACTIVATE,
        });
        const expected = await visibleState(first, someOf(newest));
        first.close();

        const saved = await etcdctlFor(ours, ours.endpoints.slice(0, 1))(["snapshot", "save", out]);
        assert.equal(saved.code, 0, saved.stderr);
        assert.match(saved.stdout, /^Snapshot saved at .*out\.db\n/);
        const status = await runProgram(
          [...etcdRestores, "snapshot", "status", out, "-w", "json"],
          ETCDCTL_3,
        );
        assert.equal(status.code, 0, status.stderr);
        const ourStatus = await ourTool("quorateutl", "snapshot", "status", out, "-w", "json");
        assert.equal(ourStatus.code, 0, ourStatus.stderr);
        const theirFields = JSON.parse(status.stdout) as Record<string, number>;
        const ourFields = JSON.parse(ourStatus.stdout) as Record<string, number>;
        for (const name of ["hash", "revision", "totalSize"])
          assert.equal(ourFields[name], theirFields[name], name);
        assert.equal(ourFields["revision"], newest);

        await startRestored(theirs, (flags) =>
          runProgram([...etcdRestores, "snapshot", "restore", out, ...flags], ETCDCTL_3),
        );
        const original = clientOf(theirs);
        assert.deepEqual(await visibleState(original, someOf(newest)), expected);
        assert.deepEqual(
          await peerUrls(original),
          theirs.members.map((member) => member.options.peerUrl).sort(),
        );

        // It goes on there, without the alarm, and comes back with another one.
        await original.call(MaintenanceService.methods.Alarm, {
          ...alarm,
          action: AlarmRequest_AlarmAction.DEACTIVATE,
        });
        const further = await sendHistory(original, random, steps >> 1);
        assert.ok(further > newest);
        await original.call(MaintenanceService.methods.Alarm, {
          ...alarm,
          memberID: 6n,
          action: AlarmRequest_AlarmAction.ACTIVATE,
        });
        const grown = await visibleState(original, someOf(further));
        original.close();
        const again = await etcdctlFor(
          theirs,
          theirs.endpoints.slice(1, 2),
        )(["snapshot", "save", back]);
        assert.equal(again.code, 0, again.stderr);
        await startRestored(ours, (flags) =>
          ourTool("quorateutl", "snapshot", "restore", back, ...flags),
        );
        for (const [index] of ours.members.entries()) {
          const one = clientOf(ours, index);
          assert.equal(await revisionOf(one), further);
          assert.deepEqual(await visibleState(one, someOf(further)), grown);
          assert.deepEqual(
            await peerUrls(one),
            ours.members.map((member) => member.options.peerUrl).sort(),
          );
          one.close();
        }
        const last = clientOf(ours, 2);
        const put = { key: fromLatin1("after"), value: fromLatin1("1") };
        await assert.rejects(
          last.call(KVService.methods.Put, put),
          /etcdserver: mvcc: database space exceeded/,
        );
        await last.call(MaintenanceService.methods.Alarm, {
          ...alarm,
          memberID: 6n,
          action: AlarmRequest_AlarmAction.DEACTIVATE,
        });
        const { header } = await last.call(KVService.methods.Put, put);
        assert.equal(header!.revision, further + 1);
        last.close();
      }),
  );
});

test("a database from a data directory of the original, with revisions that never go back", {
  skip,
}, async () => {
  await withCluster({ executable: quorate, size: 1 }, (ours) =>
    withCluster({ executable: etcd!, size: 1 }, async (theirs) => {
      const original = clientOf(theirs);
      for (let i = 0; i < 30; i++)
        await original.call(KVService.methods.Put, {
          key: fromLatin1(`k${i % 7}`),
          value: fromLatin1(`${i}`),
        });
      const newest = await revisionOf(original);
      original.close();
      await theirs.members[0].terminate();
      const database = join(theirs.members[0].options.dataDir, "member/snap/db");
      const [member] = ours.members;
      await member.kill();
      const other = join(ours.dir, "other");
      const flags = restoreFlags(member).map((flag) =>
        flag.startsWith("--data-dir=") ? `--data-dir=${other}` : flag,
      );
      const refused = await ourTool("quorateutl", "snapshot", "restore", database, ...flags);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /snapshot missing hash but --skip-hash-check=false/);

      const bump = ["--skip-hash-check", "--bump-revision=1000000", "--mark-compacted"];
      await startRestored(ours, (some) =>
        ourTool("quorateutl", "snapshot", "restore", database, ...bump, ...some),
      );
      const client = clientOf(ours);
      assert.equal(await revisionOf(client), newest + 1_000_000);
      const old = client.call(KVService.methods.Range, { key: fromLatin1("k1"), revision: newest });
      await assert.rejects(old, /required revision has been compacted/);
      const { kvs } = await client.call(KVService.methods.Range, { key: fromLatin1("k1") });
      const { modRevision, version, value } = KeyValue.decode(kvs[0]);
      assert.deepEqual([modRevision, version, Buffer.from(value).toString()], [newest, 5, "29"]);
      client.close();
    }),
  );
});
