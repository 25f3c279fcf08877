/**
 * The executables against our own members, over mutual TLS, and quorateutl on what a stopped member
 * leaves behind.
 */
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { absentPath } from "../support/absent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";

const bin = join(import.meta.dirname, "../../bin");

interface Output {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(program: string, args: readonly string[], input = ""): Promise<Output> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [join(bin, program), ...args],
      (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr }),
    );
    child.stdin!.end(input);
  });
}

let cluster: TestCluster;
before(async () => {
  cluster = await startCluster({ size: 1, tls: true });
});
after(async () => {
  await cluster?.destroy();
});

const absent = absentPath();

const ctl = (args: readonly string[], input = ""): Promise<Output> => {
  const { ca, client, clientKey } = cluster.certs!;
  return run(
    "quoratectl.js",
    [
      `--endpoints=${cluster.endpoints[0]}`,
      `--cacert=${ca}`,
      `--cert=${client}`,
      `--key=${clientKey}`,
      ...args,
    ],
    input,
  );
};

test("quoratectl works over mutual TLS", async () => {
  assert.deepEqual(await ctl(["put", "a", "1"]), { code: 0, stdout: "OK\n", stderr: "" });
  assert.equal((await ctl(["put", "b"], "from stdin")).stdout, "OK\n");
  assert.equal((await ctl(["get", "", "--prefix"])).stdout, "a\n1\nb\nfrom stdin\n");
  assert.match((await ctl(["member", "list"])).stdout, /^[0-9a-f]+, started, m0, https:/);
  assert.match(
    (await ctl(["endpoint", "status", "-w", "table"])).stdout,
    /│ https:\/\/127\.0\.0\.1:\d+ │/,
  );
  assert.equal((await ctl(["txn"], "\nput t 1\n\n\n")).stdout, "SUCCESS\n\nOK\n");
  const missing = await run("quoratectl.js", [`--cacert=${absent}`, "get", "a"]);
  assert.deepEqual(
    [missing.code, missing.stderr],
    [128, `Error: open ${absent}: no such file or directory\n`],
  );
});

test("the programs print their versions and help", async () => {
  for (const name of ["quoratectl", "quorateutl"]) {
    const version = await run(`${name}.js`, ["version"]);
    assert.match(
      version.stdout,
      new RegExp(`^${name} version: \\d+\\.\\d+\\.\\d+\nAPI version: 3\\.7\n$`),
    );
    assert.match((await run(`${name}.js`, ["--help"])).stdout, new RegExp(`^${name}: `));
  }
});

test("a reader that has had enough ends the program without a word, as a signal would", async () => {
  const child = spawn(process.execPath, [join(bin, "quoratectl.js"), "--help"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  child.stdout.destroy();
  let stderr = "";
  child.stderr.on("data", (piece: Buffer) => {
    stderr += piece.toString();
  });
  const [code] = await once(child, "close");
  assert.deepEqual([code, stderr], [141, ""]);
});

test("output that cannot be written ends the program with a line that says why", {
  skip: !existsSync("/dev/full"),
}, () => {
  const full = openSync("/dev/full", "w");
  const reported = spawnSync(process.execPath, [join(bin, "quoratectl.js"), "--help"], {
    stdio: ["ignore", full, "pipe"],
    encoding: "utf8",
  });
  closeSync(full);
  assert.deepEqual(
    [reported.status, reported.stderr],
    [1, "Error: cannot write to standard output: no space left on device\n"],
  );
});

test("a snapshot is not saved in the place of a directory or a device", async () => {
  const { code, stderr } = await ctl(["snapshot", "save", "/dev/null"]);
  assert.deepEqual(
    [code, stderr],
    [5, "Error: could not write /dev/null: it is no regular file; name a file\n"],
  );
  assert.match(
    (await ctl(["snapshot", "save", cluster.dir])).stderr,
    /could not write \S+: it is a directory; name a file/,
  );
});

test("quorateutl reads what a stopped member leaves behind", async () => {
  const member = cluster.members[0];
  const hash = (await ctl(["endpoint", "hashkv"])).stdout.trim().split(", ");
  const status = JSON.parse((await ctl(["endpoint", "status", "-w", "json"])).stdout)[0].Status as {
    raftIndex: number;
  };
  // A running member holds its store.
  const busy = await run("quorateutl.js", ["status", member.options.dataDir]);
  assert.equal(busy.code, 1);
  assert.match(busy.stderr, /^Error: .*\n$/);
  await member.terminate();

  const utl = (...args: string[]): Promise<Output> => run("quorateutl.js", args);
  const { dataDir } = member.options;
  const wal = JSON.parse((await utl("wal", "verify", dataDir, "-w", "json")).stdout) as {
    lastIndex: number;
    tornBytes: number;
    memberID: string;
  };
  assert.ok(wal.lastIndex >= status.raftIndex);
  assert.equal(wal.tornBytes, 0);
  assert.match(wal.memberID, /^[0-9a-f]+$/);
  assert.match(
    (await utl("wal", "verify", join(dataDir, "member/wal"), "-w", "fields")).stdout,
    /^"Files" : 1\n"Records" : \d+\n"Last index" : \d+\n/,
  );
  // SIGTERM syncs the store, so it stands where the running member stood.
  assert.equal((await utl("hashkv", dataDir)).stdout.trim().split(", ")[0], hash[1]);
  assert.match(
    (await utl("hashkv", dataDir, "-w", "table")).stdout,
    /│ {4}HASH {4}│ HASH REVISION │ COMPACT REVISION │/,
  );
  assert.match((await utl("status", dataDir)).stdout, /^\d+, \d+, 4, -1, 3, [\d.]+ k?B\n$/);
  assert.match((await utl("backend", "verify", dataDir)).stdout, /^\d+, \d+, \d+\n$/);
  assert.equal(
    (await utl("hashkv", dataDir, "--rev=100")).stderr,
    "Error: etcdserver: mvcc: required revision is a future revision\n",
  );
});

test("one byte of a table that has changed keeps a member from starting, and backend verify names the block", async () => {
  const { dataDir } = cluster.members[0].options;
  const db = join(dataDir, "member/store/db");
  // Opened and closed, so that what was in LevelDB's own log is a table.
  assert.equal((await run("quorateutl.js", ["backend", "verify", dataDir])).code, 0);
  const table = join(db, readdirSync(db).find((name) => name.endsWith(".ldb"))!);
  const bytes = readFileSync(table);
  writeFileSync(table, bytes.with(20, bytes[20] ^ 1));
  const where = `${table}: damaged at byte 0: the checksum of a block does not match; the member does not start`;
  const verified = await run("quorateutl.js", ["backend", "verify", dataDir]);
  assert.equal(verified.code, 1);
  assert.ok(verified.stderr.startsWith(`Error: ${where}`), verified.stderr);
  const any = "http://127.0.0.1:0";
  const urls = [
    `--listen-client-urls=${any}`,
    `--advertise-client-urls=${any}`,
    `--listen-peer-urls=${any}`,
  ];
  const started = await run("quorate.js", ["--name=m0", `--data-dir=${dataDir}`, ...urls]);
  assert.equal(started.code, 1);
  assert.ok(started.stderr.includes(where), started.stderr);
  writeFileSync(table, bytes);
  assert.equal((await run("quorateutl.js", ["backend", "verify", dataDir])).code, 0);
});

test("quorateutl defrag frees what was removed, and changes nothing else; migrate has nothing to do, and says so", async () => {
  const { dataDir } = cluster.members[0].options;
  const utl = (...args: string[]): Promise<Output> => run("quorateutl.js", args);
  const hash = (await utl("hashkv", dataDir)).stdout;
  const defragmented = await utl("defrag", `--data-dir=${dataDir}/`);
  assert.deepEqual([defragmented.code, defragmented.stdout], [0, ""]);
  const { level, ts, msg, path, ...sizes } = JSON.parse(defragmented.stderr);
  assert.deepEqual(
    [level, msg, path],
    ["info", "finished defragmenting directory", dataDir],
    "what etcdutl logs",
  );
  assert.ok(Math.abs(Date.parse(ts) - Date.now()) < 600_000);
  assert.deepEqual(Object.keys(sizes), [
    "current-db-size-bytes-diff",
    "current-db-size-bytes",
    "current-db-size",
  ]);
  assert.equal((await utl("hashkv", dataDir)).stdout, hash);
  assert.deepEqual(await utl("defrag", `--data-dir=${absent}`), {
    code: 1,
    stdout: "",
    stderr: `Error: Failed to defragment etcd data[${absent}] (stat ${absent}/member/store/db: no such file or directory)\n`,
  });
  assert.match((await utl("defrag")).stderr, /^Error: required flag\(s\) "data-dir" not set\n/);

  const migrate = (target: string): Promise<Output> =>
    utl("migrate", `--data-dir=${dataDir}`, `--target-version=${target}`);
  assert.deepEqual(await migrate("3.7"), {
    code: 0,
    stdout: "",
    stderr: "storage version up-to-date: 3.7\n",
  });
  assert.match(
    (await migrate("3.6")).stderr,
    /^Error: the store in .* is of release 3\.7 and has no other layout; .* snapshot save/,
  );
  const wrong = async (target: string): Promise<[number, string]> => {
    const { code, stderr } = await migrate(target);
    return [code, stderr];
  };
  assert.deepEqual(await wrong("3"), [
    128,
    'Error: wrong target version format, expected "X.Y", got "3"\n',
  ]);
  assert.deepEqual(await wrong("3.4"), [
    128,
    'Error: target version "3.4" not supported. Minimal "3.5"\n',
  ]);
  assert.deepEqual(await wrong("3.x"), [
    128,
    "Error: failed to parse target version: 3.x.0 is not a version\n",
  ]);
});

test("quorateutl names the place of damage, and refuses directories that are none of ours", async () => {
  const { dataDir } = cluster.members[0].options;
  const copy = join(cluster.dir, "damaged");
  cpSync(join(dataDir, "member/wal"), copy, { recursive: true });
  const segment = join(copy, readdirSync(copy).find((name) => name.endsWith(".wal"))!);
  const bytes = readFileSync(segment);
  bytes[100] ^= 0x55;
  writeFileSync(segment, bytes);
  const damaged = await run("quorateutl.js", ["wal", "verify", copy]);
  assert.equal(damaged.code, 1);
  assert.match(damaged.stderr, new RegExp(`^Error: ${segment}: damaged at byte \\d+: `));

  const foreign = join(cluster.dir, "foreign");
  mkdirSync(join(foreign, "member/snap"), { recursive: true });
  writeFileSync(join(foreign, "member/snap/db"), "");
  for (const command of ["status", "hashkv"]) {
    assert.equal(
      (await run("quorateutl.js", [command, foreign])).stderr,
      `Error: ${foreign} is a data directory of etcd itself; use etcdutl for it\n`,
    );
  }
  assert.match((await run("quorateutl.js", ["status", cluster.dir])).stderr, /has no store/);
  const { stderr } = await run("quorateutl.js", ["wal", "verify", absent]);
  assert.ok(stderr.startsWith(`Error: ${absent} is not a `), stderr);
  const refused = await run("quorateutl.js", ["wal", "verify"]);
  assert.deepEqual([refused.code, refused.stdout], [128, ""]);
  assert.match(refused.stderr, /^Error: wal verify needs one argument, a \w+\n$/);
});
