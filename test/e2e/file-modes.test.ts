/**
 * What programs write is for their user alone, whatever the umask: stores, logs, snapshots,
 * backups, and directories of earlier releases.
 */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fromLatin1, KVService } from "@quorate/proto";
import { withCluster } from "../support/cluster.ts";
import { quorate } from "../support/executables.ts";
import { clientOf, ourTool, restoreFlags } from "../support/snapshots.ts";
import { until } from "../support/until.ts";

// Children inherit it: without modes of their own, all would be open to everybody.
process.umask(0);

/** The paths below `dir`, itself included, that others than the owner may do something with. */
function openPaths(dir: string): string[] {
  const all = [
    dir,
    ...readdirSync(dir, { recursive: true, encoding: "utf8" }).map((name) => join(dir, name)),
  ];
  return all.filter((path) => {
    const stat = statSync(path);
    return (stat.mode & 0o777) !== (stat.isDirectory() ? 0o700 : 0o600);
  });
}

test("a member's data, what is saved from it, and what is restored are readable by no other user", async () => {
  await withCluster(
    { executable: quorate, size: 1, flags: ["--snapshot-count=10", "--log-outputs=stderr"] },
    async (cluster) => {
      const member = cluster.members[0];
      const { dataDir } = member.options;
      const write = async () => {
        const client = clientOf(cluster);
        for (let i = 0; i < 40; i++)
          await client.call(KVService.methods.Put, {
            key: fromLatin1(`k${i}`),
            value: new Uint8Array(1000),
          });
        client.close();
      };
      await write();
      await until("the log has been cut", () =>
        readdirSync(join(dataDir, "member/snap")).some((name) => name.endsWith(".snap")),
      );
      assert.deepEqual(openPaths(dataDir), []);

      const saved = join(cluster.dir, "saved.db");
      const ctl = await ourTool(
        "quoratectl",
        `--endpoints=${cluster.endpoints[0]}`,
        "snapshot",
        "save",
        saved,
      );
      assert.equal(ctl.code, 0, ctl.stderr);
      assert.equal(statSync(saved).mode & 0o777, 0o600);
      const backup = join(cluster.dir, "backup");
      const run = await ourTool(
        "quoratectl",
        `--endpoints=${cluster.endpoints[0]}`,
        "backup",
        "run",
        "--to",
        backup,
        "--once",
      );
      assert.equal(run.code, 0, run.stderr);
      assert.deepEqual(openPaths(backup), []);

      // Of an earlier release, or made by an operator: the member's own directories are closed, the
      // data directory is warned of.
      assert.equal((await member.terminate()).code, 0);
      for (const path of ["", "member", "member/wal", "member/snap", "member/store"])
        chmodSync(join(dataDir, path), 0o755);
      member.start();
      await member.waitReady();
      assert.equal(statSync(dataDir).mode & 0o777, 0o755);
      assert.equal(statSync(join(dataDir, "member")).mode & 0o777, 0o700);
      assert.match(
        member.log(),
        /check file permission.*but the permission is \\"0755\\"\. The recommended permission is \\"0700\\"/,
      );
      assert.match(member.log(), /closed a \w+ of the member to other users.*"mode-before":"0755"/);
      await write();

      await member.kill();
      rmSync(dataDir, { recursive: true });
      const restored = await ourTool(
        "quorateutl",
        "snapshot",
        "restore",
        saved,
        ...restoreFlags(member),
      );
      assert.equal(restored.code, 0, restored.stderr);
      assert.deepEqual(openPaths(dataDir), []);
    },
  );
});

test("a data directory that others made is used, and a log in a directory of its own is closed too", async () => {
  const walDir = join(process.env["TMPDIR"] ?? "/tmp", `quorate-wal-${process.pid}`);
  mkdirSync(walDir, { mode: 0o777 });
  try {
    await withCluster(
      { executable: quorate, size: 1, flags: [`--wal-dir=${walDir}/wal`] },
      async (cluster) => {
        assert.deepEqual(openPaths(cluster.members[0].options.dataDir), []);
        assert.deepEqual(openPaths(join(walDir, "wal")), []);
      },
    );
  } finally {
    rmSync(walDir, { recursive: true });
  }
});
