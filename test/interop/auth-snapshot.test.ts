/**
 * The state of an etcd cluster with authentication enabled: restore, the restore of a backup and a
 * member's start refuse it. With the override it is served openly, and its users and roles are in
 * force again once the data is back in etcd.
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { baseName } from "@quorate/backup";
import { fromLatin1, KVService } from "@quorate/proto";
import { withCluster } from "../support/cluster.ts";
import { etcdctlFor } from "../support/etcdctl.ts";
import { etcd, quorate, skipWithoutEtcd, skipWithoutEtcdctl } from "../support/executables.ts";
import {
  clientOf,
  ETCDCTL_3,
  etcdRestores,
  ourTool,
  restoreFlags,
  runProgram,
} from "../support/snapshots.ts";

const REFUSAL = /authentication is enabled in it, .* --unsafe-serve-without-auth/;
const FLAG = "--unsafe-serve-without-auth";
const asRoot = ["--user", "root:secret"];

test("a cluster with users and roles is not served openly without a word", {
  skip: skipWithoutEtcd || skipWithoutEtcdctl,
}, async () => {
  await withCluster({ executable: quorate, size: 1 }, (ours) =>
    withCluster({ executable: etcd!, size: 1 }, async (theirs) => {
      const etcdctl = etcdctlFor(theirs, theirs.endpoints);
      const saved = join(ours.dir, "auth.db");
      for (const args of [
        ["put", "secret", "of the root user"],
        ["user", "add", "root:secret"],
        ["role", "add", "root"],
        ["user", "grant-role", "root", "root"],
        ["auth", "enable"],
        [...asRoot, "snapshot", "save", saved],
      ]) {
        const { code, stderr } = await etcdctl(args);
        assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
      }

      const member = ours.members[0];
      await member.kill();
      rmSync(member.options.dataDir, { recursive: true, force: true });
      const refused = await ourTool(
        "quorateutl",
        "snapshot",
        "restore",
        saved,
        ...restoreFlags(member),
      );
      assert.deepEqual([refused.code, refused.stdout], [1, ""]);
      assert.match(refused.stderr, REFUSAL);

      const backup = join(ours.dir, "backup");
      mkdirSync(backup);
      copyFileSync(saved, join(backup, baseName(2, 1_700_000_000_000)));
      const verified = await ourTool("quorateutl", "backup", "verify", backup);
      assert.equal(verified.code, 0, verified.stderr);
      const rebuilt = await ourTool(
        "quorateutl",
        "backup",
        "restore",
        backup,
        ...restoreFlags(member),
      );
      assert.equal(rebuilt.code, 1);
      assert.match(rebuilt.stderr, REFUSAL);
      const overridden = await ourTool(
        "quorateutl",
        "backup",
        "restore",
        backup,
        FLAG,
        ...restoreFlags(member),
      );
      assert.equal(overridden.code, 0, overridden.stderr);

      // The data directory that came of the override does not start without it either.
      const flags = [...member.options.flags];
      const [program, ...before] = quorate.command;
      const started = await runProgram([program!, ...before, ...flags]);
      assert.equal(started.code, 1);
      assert.match(started.stderr + started.stdout, REFUSAL);

      rmSync(member.options.dataDir, { recursive: true, force: true });
      const taken = await ourTool(
        "quorateutl",
        "snapshot",
        "restore",
        saved,
        FLAG,
        ...restoreFlags(member),
      );
      assert.equal(taken.code, 0, taken.stderr);
      member.start([FLAG]);
      await member.waitReady();
      const client = clientOf(ours);
      assert.equal(
        (await client.call(KVService.methods.Range, { key: fromLatin1("secret") })).kvs.length,
        1,
      );
      client.close();

      const back = join(ours.dir, "back.db");
      const again = await ourTool(
        "quoratectl",
        `--endpoints=${ours.endpoints[0]}`,
        "snapshot",
        "save",
        back,
      );
      assert.equal(again.code, 0, again.stderr);
      const original = theirs.members[0];
      await original.kill();
      rmSync(original.options.dataDir, { recursive: true, force: true });
      const restored = await runProgram(
        [...etcdRestores, "snapshot", "restore", back, ...restoreFlags(original)],
        ETCDCTL_3,
      );
      assert.equal(restored.code, 0, restored.stderr);
      original.start();
      await original.waitReady();
      const anyone = await etcdctl(["get", "secret"]);
      assert.match(anyone.stderr, /user name is empty/);
      const root = await etcdctl([...asRoot, "get", "secret"]);
      assert.equal(root.stdout, "secret\nof the root user\n");
    }),
  );
});
