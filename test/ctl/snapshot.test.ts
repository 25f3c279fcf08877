/**
 * quoratectl snapshot and quorateutl snapshot against a member: what they print, make and leave,
 * and all that they refuse.
 */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Program } from "@quorate/cli";
import { quoratectl, quorateutl } from "@quorate/ctl";
import { nodeDisk } from "@quorate/host/node";
import { verifyWal } from "@quorate/wal";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { runInProcess } from "../support/ctl-io.ts";
import { quorate } from "../support/executables.ts";
import { SeededRandom } from "../support/random.ts";
import { clientOf, sendHistory, startRestored, visibleState } from "../support/snapshots.ts";

let cluster: TestCluster;
let dir: string;
let file: string;

interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/**
 * Runs a program in this process. @param terminal whether the output is a terminal @param stop asks
 * it to end
 */
async function run(
  program: Program,
  args: readonly string[],
  terminal = false,
  stop?: AbortSignal,
): Promise<Result> {
  const { code, stdout, stderr } = await runInProcess(program, args, {
    stderrIsTerminal: terminal,
    onStop(call) {
      stop?.addEventListener("abort", () => call("SIGINT"));
      return () => {};
    },
  });
  return { code, out: stdout, err: stderr };
}

const utl = (...args: readonly string[]): Promise<Result> => run(quorateutl, args);
const ctl = (...args: readonly string[]): Promise<Result> =>
  run(quoratectl, [`--endpoints=${cluster.endpoints[0]}`, ...args]);

before(async () => {
  cluster = await startCluster({ executable: quorate, size: 1 });
  dir = cluster.dir;
  file = join(dir, "snap.db");
  const client = clientOf(cluster);
  await sendHistory(client, new SeededRandom(4), 150);
  client.close();
});
after(() => cluster?.destroy());

describe("snapshot save", () => {
  test("says where and of which version; the file is private and nothing else is left", async () => {
    writeFileSync(file, "an older one");
    assert.deepEqual(await ctl("snapshot", "save", file), {
      code: 0,
      out: `Snapshot saved at ${file}\nServer version 3.7.0\n`,
      err: "",
    });
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.ok(!existsSync(`${file}.part`));
  });

  test("shows how far it is on a terminal", async () => {
    const { err } = await run(
      quoratectl,
      [`--endpoints=${cluster.endpoints[0]}`, "snapshot", "save", file],
      true,
    );
    assert.match(
      err,
      /^\rsaving snapshot [█░]{30} +\d+% of [\d.]+ k?B [\s\S]*█{30} 100% of [\d.]+ k?B \n$/,
    );
  });

  test("what fails leaves the file that was there", async () => {
    const kept = join(dir, "kept.db");
    writeFileSync(kept, "an older one");
    const unreachable = await run(quoratectl, [
      "--endpoints=127.0.0.1:1",
      "--dial-timeout=300ms",
      "snapshot",
      "save",
      kept,
    ]);
    assert.equal(unreachable.code, 5);
    assert.match(unreachable.err, /^Error: /);
    assert.equal(readFileSync(kept, "utf8"), "an older one");
    assert.ok(!existsSync(`${kept}.part`));
    const nowhere = await ctl("snapshot", "save", join(dir, "no/such/dir.db"));
    assert.equal(nowhere.code, 5);
    assert.match(
      nowhere.err,
      /^Error: could not open .*dir\.db\.part \(open .*dir\.db\.part: no such file or directory\)\n$/,
    );
  });

  test("one member, one file", async () => {
    const [one] = cluster.endpoints;
    assert.deepEqual(
      await run(quoratectl, [`--endpoints=${one},${one}`, "snapshot", "save", file]),
      {
        code: 5,
        out: "",
        err: `Error: snapshot must be requested to one selected node, not multiple [${one} ${one}]\n`,
      },
    );
    assert.equal((await ctl("snapshot", "save")).code, 128);
  });
});

describe("snapshot status", () => {
  test("in every form of etcdutl", async () => {
    const json = JSON.parse((await utl("snapshot", "status", file, "-w", "json")).out) as Record<
      string,
      number | string
    >;
    assert.deepEqual(Object.keys(json), ["hash", "revision", "totalKey", "totalSize", "version"]);
    const { hash, revision, totalKey, totalSize } = json as Record<string, number>;
    const hex = hash.toString(16);
    assert.match(
      (await utl("snapshot", "status", file)).out,
      new RegExp(`^${hex}, ${revision}, ${totalKey}, [\\d.]+ k?B, 3\\.7\\.0\n$`),
    );
    assert.equal(
      (await utl("snapshot", "status", file, "-w", "fields")).out,
      `"Hash" : ${hash}\n"Revision" : ${revision}\n"Keys" : ${totalKey}\n"Size" : ${totalSize}\n"Version" : 3.7.0\n`,
    );
    assert.match(
      (await utl("snapshot", "status", file, "-w", "table")).out,
      /│ +HASH +│ REVISION │ TOTAL KEYS │ TOTAL SIZE │ VERSION │/,
    );
    assert.equal((await utl("snapshot", "status", file, "-w", "xml")).code, 4);
  });
});

describe("snapshot restore", () => {
  const cut = (name: string, bytes: Uint8Array): string => {
    writeFileSync(join(dir, name), bytes);
    return join(dir, name);
  };
  const refused = async (
    pattern: RegExp,
    code: number,
    path: string,
    ...flags: readonly string[]
  ): Promise<void> => {
    const out = join(dir, "refused.quorate");
    rmSync(out, { recursive: true, force: true });
    const result = await utl("snapshot", "restore", path, `--data-dir=${out}`, ...flags);
    assert.match(result.err, pattern);
    assert.equal(result.code, code);
    assert.ok(!existsSync(out), "what was begun is gone");
  };

  test("files that are damaged, cut short, or something else are refused with what is wrong", async () => {
    const good = readFileSync(file);
    const last = good.length - 32;
    const changed = Buffer.from(good);
    changed[last - 4096 + 20] ^= 1;
    const half = good.subarray(0, 4096 * 5 + 32);
    await refused(
      /^Error: expected sha256 [0-9a-f]{64}, got [0-9a-f]{64}: .*: its bytes were changed, or the checksum at byte \d+\. Use another/,
      1,
      cut("a", changed),
    );
    await refused(
      /: damaged at byte \d+: .*Use another snapshot/,
      1,
      cut("a", changed),
      "--skip-hash-check",
    );
    await refused(/: its bytes were changed/, 1, cut("b", half));
    await refused(
      /: damaged at byte \d+: the file is truncated: it has \d+ of \d+ bytes/,
      1,
      cut("b", half),
      "--skip-hash-check",
    );
    await refused(
      /snapshot missing hash but --skip-hash-check=false/,
      1,
      cut("c", good.subarray(0, last)),
    );
    await refused(
      /it is no bbolt database/,
      1,
      cut("d", Buffer.alloc(8192, "text")),
      "--skip-hash-check",
    );
    await refused(/only 0 bytes/, 1, cut("e", Buffer.alloc(0)), "--skip-hash-check");
    await refused(/open .*nothing: no such file/, 1, join(dir, "nothing"));
  });

  test("flags that contradict each other are refused with etcd's words", async () => {
    await refused(
      /--mark-compacted required if --revision-bump > 0/,
      128,
      file,
      "--bump-revision=5",
    );
    await refused(
      /--mark-compacted required if --revision-bump > 0/,
      128,
      file,
      "--mark-compacted",
    );
    await refused(/--bump-revision must not be negative/, 128, file, "--bump-revision=-5");
    await refused(
      /couldn't find local name "x" in the initial cluster configuration/,
      1,
      file,
      "--name=x",
    );
    await refused(
      /URL scheme must be http, https, unix, or unixs: ftp:/,
      1,
      file,
      "--initial-cluster=default=ftp://a:1",
    );
    await refused(
      /URL address does not have the form "host:port": http:\/\/a/,
      1,
      file,
      "--initial-cluster=default=http://a",
    );
    await refused(
      /has duplicate url/,
      1,
      file,
      "--initial-cluster=default=http://localhost:2380,b=http://localhost:2380",
    );
    await refused(
      /--initial-cluster has default=http:\/\/10\.0\.0\.1:1 but missing from --initial-advertise-peer-urls=http:\/\/10\.0\.0\.2:2/,
      1,
      file,
      "--initial-cluster=default=http://10.0.0.1:1",
      "--initial-advertise-peer-urls=http://10.0.0.2:2",
    );
    assert.equal(
      (await utl("snapshot", "restore")).err,
      "Error: snapshot restore requires exactly one argument\n",
    );
  });

  test("data that are there are left alone", async () => {
    const there = join(dir, "there.quorate");
    mkdirSync(there);
    writeFileSync(join(there, "mine"), "");
    const result = await utl("snapshot", "restore", file, `--data-dir=${there}`);
    assert.deepEqual(
      [result.code, result.err],
      [1, `Error: data-dir ${JSON.stringify(there)} not empty or could not be read\n`],
    );
    assert.deepEqual(readdirSync(there), ["mine"]);
    const wal = await utl(
      "snapshot",
      "restore",
      file,
      `--data-dir=${join(dir, "new")}`,
      `--wal-dir=${there}`,
    );
    assert.deepEqual([wal.code, wal.err], [1, `Error: wal-dir ${JSON.stringify(there)} exists\n`]);
    assert.ok(!existsSync(join(dir, "new")));
  });

  test("makes a member that starts, in an empty directory and with its log elsewhere", async () => {
    const client = clientOf(cluster);
    const expected = await visibleState(client, [5, 40]);
    client.close();
    const walDir = join(dir, "log/wal");
    const [member] = cluster.members;
    await startRestored(cluster, (flags) => {
      mkdirSync(member.options.dataDir);
      return run(quorateutl, ["snapshot", "restore", file, ...flags], true).then(
        ({ code, out, err }) => {
          assert.match(err, /checking {3}.*100%[\s\S]*restoring {2}.*100%/);
          return { code, stdout: out, stderr: err };
        },
      );
    });
    const again = clientOf(cluster);
    assert.deepEqual(await visibleState(again, [5, 40]), expected);
    again.close();

    const elsewhere = join(dir, "elsewhere.quorate");
    const made = await utl(
      "snapshot",
      "restore",
      file,
      `--data-dir=${elsewhere}/`,
      `--wal-dir=${walDir}`,
    );
    assert.equal(made.code, 0, made.err);
    const log = made.err
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      log.map(({ msg }) => msg),
      ["restoring snapshot", "added member", "restored snapshot"],
      "what etcdutl logs",
    );
    assert.deepEqual(
      [log[0].path, log[0]["wal-dir"], log[0]["data-dir"]],
      [file, walDir, elsewhere],
    );
    assert.deepEqual(
      [log[1]["added-peer-id"], log[1]["added-peer-peer-urls"]],
      ["8e9e05c52164694d", ["http://localhost:2380"]],
    );
    assert.match(
      made.out,
      /^Restored .*snap\.db into .*elsewhere\.quorate: revision \d+, \d+ keys; member 8e9e05c52164694d \(default\) of 1\n$/,
    );
    assert.ok(!existsSync(`${elsewhere}/member/wal`));
    const { lastIndex, hardState, snapshots } = verifyWal(nodeDisk, walDir);
    assert.deepEqual([lastIndex, hardState?.commit, snapshots.at(-1)?.index], [1, 1, 1]);
  });
});

describe("backup", () => {
  test("what cannot be is refused", async () => {
    const refusals: readonly [Promise<Result>, number, RegExp][] = [
      [ctl("backup", "run"), 128, /backup run needs --to/],
      [ctl("backup", "run", `--to=${dir}`, "more"), 128, /takes no arguments/],
      [
        ctl("backup", "run", `--to=${dir}/b`, "--retain=1h", "--interval=0"),
        128,
        /--retain needs periodic base snapshots/,
      ],
      [
        ctl("backup", "run", `--to=${dir}/b`, "--interval=-1h"),
        128,
        /--interval must not be negative/,
      ],
      [utl("backup", "list", join(dir, "none")), 1, /none is not a \w+/],
      [utl("backup", "verify", join(dir, "there.quorate")), 1, /it has no base snapshot/],
      [
        utl("backup", "restore", join(dir, "there.quorate"), "--at=x", `--data-dir=${dir}/r`),
        1,
        /it has no base snapshot/,
      ],
    ];
    for (const [result, code, pattern] of refusals) {
      assert.match((await result).err, pattern);
      assert.equal((await result).code, code);
    }
  });

  test("a second run in the same directory is refused, and times are points as well", async () => {
    const to = join(dir, "backup");
    const first = await ctl("backup", "run", `--to=${to}`, "--once");
    assert.equal(first.code, 0, first.err);
    const lock = nodeDisk.lock(`${to}/lock`);
    const second = await ctl("backup", "run", `--to=${to}`, "--once");
    lock.release();
    assert.equal(second.code, 1);
    assert.match(second.err, /^Error: .*lock/);
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const restored = await utl(
      "backup",
      "restore",
      to,
      `--at=${tomorrow}`,
      `--data-dir=${join(dir, "t")}`,
    );
    assert.equal(restored.code, 0, restored.err);
    const early = await utl(
      "backup",
      "restore",
      to,
      "--at=2001-01-01T00:00:00Z",
      `--data-dir=${join(dir, "u")}`,
    );
    assert.match(early.err, /it begins at 20\d\d-.*, after 2001-01-01T00:00:00Z/);
    const wrong = await utl(
      "backup",
      "restore",
      to,
      "--at=yesterday",
      `--data-dir=${join(dir, "u")}`,
    );
    assert.match(
      wrong.err,
      /--at must be a revision or a time such as 2026-01-31T12:00:00Z, and is "yesterday"/,
    );
    for (const form of ["simple", "json", "table", "fields"])
      assert.equal((await utl("backup", "list", to, "-w", form)).code, 0);
  });

  test("base snapshots are taken from time to time, and what is older than what is to be kept goes", async () => {
    const to = join(dir, "pruned");
    const stop = new AbortController();
    const running = run(
      quoratectl,
      [
        `--endpoints=${cluster.endpoints[0]}`,
        "backup",
        "run",
        `--to=${to}`,
        "--interval=1s",
        "--retain=2s",
      ],
      false,
      stop.signal,
    );
    const client = clientOf(cluster);
    const endMs = performance.now() + 60_000;
    const bases = (): string[] =>
      existsSync(to) ? readdirSync(to).filter((name) => name.startsWith("base-")) : [];
    const seen = new Set<string>();
    try {
      // Until a base that was seen is gone.
      while ([...seen].every((name) => bases().includes(name))) {
        assert.ok(performance.now() < endMs, `no base is removed: ${[...seen].join(" ")}`);
        for (const name of bases()) seen.add(name);
        await sendHistory(client, new SeededRandom(9), 2);
        await delay(100);
      }
    } finally {
      client.close();
      stop.abort();
    }
    const { code, out, err } = await running;
    assert.equal(code, 0, err);
    assert.match(out, /removed \d+ files older than the time to retain/);
    const verified = await utl("backup", "verify", to);
    assert.equal(verified.code, 0, verified.err);
    assert.doesNotMatch(verified.out, /GAP/);
  });
});
