/** quoratectl make-mirror and check against members. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { quoratectl } from "@quorate/ctl";
import { absentPath } from "../support/absent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { LiveRun, type ProgramResult, runInProcess } from "../support/ctl-io.ts";
import { quorate } from "../support/executables.ts";
import { until } from "../support/until.ts";

let source: TestCluster;
/** Over TLS, to be reached with other certificates than the source. */
let destination: TestCluster;
before(async () => {
  [source, destination] = await Promise.all([
    startCluster({ executable: quorate, size: 1 }),
    startCluster({ executable: quorate, size: 1, tls: true }),
  ]);
});
after(async () => {
  await Promise.all([source?.destroy(), destination?.destroy()]);
});

/** Nothing takes as long, on a machine that has much else to do. */
const PATIENT = "--command-timeout=60s";
const ctl = (...args: readonly string[]): Promise<ProgramResult> =>
  runInProcess(quoratectl, [`--endpoints=${source.endpoints[0]}`, PATIENT, ...args]);

/** What the destination holds below a prefix, keys and values. */
async function mirrored(prefix = ""): Promise<string> {
  const { ca, client, clientKey } = destination.certs!;
  const tls = [`--cacert=${ca}`, `--cert=${client}`, `--key=${clientKey}`];
  const args = [
    `--endpoints=${destination.endpoints[0]}`,
    PATIENT,
    ...tls,
    "get",
    prefix,
    "--prefix",
  ];
  const { stdout, code, stderr } = await runInProcess(quoratectl, args);
  assert.equal(code, 0, stderr);
  return stdout.trimEnd().replaceAll("\n", " ");
}

function mirror(...args: readonly string[]): LiveRun {
  const { ca, client, clientKey } = destination.certs!;
  const tls = [`--dest-cacert=${ca}`, `--dest-cert=${client}`, `--dest-key=${clientKey}`];
  return new LiveRun(quoratectl, [
    `--endpoints=${source.endpoints[0]}`,
    "make-mirror",
    destination.endpoints[0],
    ...tls,
    ...args,
  ]);
}

async function mirroredBecomes(prefix: string, expected: string): Promise<void> {
  let seen = "";
  await until(
    `the destination holds ${expected}`,
    async () => (seen = await mirrored(prefix)) === expected,
  ).catch((error) => {
    throw new Error(`${(error as Error).message}; it holds ${seen}`);
  });
}

async function txn(...operations: readonly string[]): Promise<void> {
  const { code, stderr } = await runInProcess(
    quoratectl,
    [`--endpoints=${source.endpoints[0]}`, PATIENT, "txn"],
    {
      input: `\n${operations.map((one) => `${one}\n`).join("")}\n\n`,
    },
  );
  assert.equal(code, 0, stderr);
}

describe("make-mirror", () => {
  test("copies what there is, then follows puts, deletions and transactions, under another prefix", async () => {
    for (const key of ["a/1", "a/2", "a/3", "b/1"]) await ctl("put", key, `first ${key}`);
    const run = mirror("--prefix=a/", "--dest-prefix=copy/", "--max-txn-ops=2");
    await mirroredBecomes("", "copy/1 first a/1 copy/2 first a/2 copy/3 first a/3");
    await ctl("del", "a/2");
    await txn("put a/4 four", "put a/5 five", "put a/6 six", "del a/1", "put b/2 no");
    await mirroredBecomes("copy/", "copy/3 first a/3 copy/4 four copy/5 five copy/6 six");
    const { code, stderr } = await run.stop();
    assert.deepEqual([code, stderr], [130, ""]);
  });

  test("goes on over a restart of the source", async () => {
    const run = mirror("--prefix=r/", "--no-dest-prefix");
    await ctl("put", "r/x", "1");
    await mirroredBecomes("x", "x 1");
    await source.members[0].kill();
    source.members[0].start();
    await source.members[0].waitReady();
    await ctl("put", "r/x", "2");
    await mirroredBecomes("x", "x 2");
    assert.equal((await run.stop("SIGTERM")).code, 143);
  });

  test("from a revision on it copies nothing of before, and ends where that is compacted", async () => {
    await ctl("put", "v/1", "old");
    const { stdout } = await ctl("put", "v/2", "new", "-w", "json");
    const { revision } = (JSON.parse(stdout) as { header: { revision: number } }).header;
    const run = mirror("--prefix=v/", `--rev=${revision}`);
    await mirroredBecomes("v/", "v/2 new");
    await run.stop();
    await ctl("put", "v/2", "newer");
    await ctl("compaction", String(revision + 1));
    const { code, stderr } = await mirror("--prefix=v/", `--rev=${revision}`).result;
    assert.deepEqual(
      [code, stderr],
      [1, "Error: etcdserver: mvcc: required revision has been compacted\n"],
    );
  });

  test("mistakes", async () => {
    const refused = async (...args: readonly string[]): Promise<string> => {
      const { code, stderr } = await ctl("make-mirror", ...args);
      assert.equal(code, 128);
      return stderr;
    };
    assert.equal(await refused(), "Error: make-mirror takes one destination argument\n");
    assert.equal(
      await refused("x:1", "--dest-prefix=a", "--no-dest-prefix"),
      "Error: `--dest-prefix` and `--no-dest-prefix` cannot be set at the same time, choose one\n",
    );
    assert.equal(
      await refused("x:1", "--max-txn-ops=0"),
      "Error: --max-txn-ops must be 1 at least, not 0\n",
    );
    const absent = absentPath();
    const unread = await refused("x:1", `--dest-cacert=${absent}`);
    assert.ok(unread.startsWith(`Error: open ${absent}: `) && /no such file/.test(unread), unread);
  });
});

describe("check", () => {
  test("perf prints its verdict, and leaves no key", async () => {
    // A minute of its clock is three seconds here.
    const faster = 20;
    const { code, stdout, stderr } = await runInProcess(
      quoratectl,
      [`--endpoints=${source.endpoints[0]}`, "check", "perf", "--auto-compact", "--auto-defrag"],
      {
        nowNs: () => process.hrtime.bigint() * BigInt(faster),
        sleep: (delayMs) => delay(delayMs / faster),
        stderrIsTerminal: true,
      },
    );
    const endpoint = source.endpoints[0];
    assert.match(
      stdout,
      new RegExp(
        `^Compacting with revision \\d+\nCompacted with revision \\d+\nDefragmenting "${endpoint}"\nDefragmented `,
      ),
    );
    const verdict = stdout.split("\n").slice(4);
    assert.match(verdict[0], /^(?:PASS: Throughput is|FAIL: Throughput too low:) \d+ writes\/s$/);
    assert.match(
      verdict[1],
      /^(?:PASS: Slowest request took|Slowest request took too long:) \d+\.\d{6}s$/,
    );
    assert.match(verdict[2], /^(?:PASS: Stddev is|Stddev too high:) \d+\.\d{6}s$/);
    const passes = verdict.slice(0, 3).every((line) => line.startsWith("PASS"));
    assert.deepEqual([verdict.slice(3), code], [[passes ? "PASS" : "FAIL", ""], passes ? 0 : 1]);
    assert.match(stderr, /checking █{30} 100% of 60 s/);
    assert.equal((await ctl("get", "/etcdctl-check-perf/", "--prefix")).stdout, "");
  });

  test("datascale prints the memory that keys take", async () => {
    const { code, stdout, stderr } = await ctl("check", "datascale");
    assert.equal(code, 0, stderr);
    assert.match(
      stdout,
      /^Start data scale check for work load \[10000 key-value pairs, 1024 bytes per key-value, 50 concurrent clients\]\.\nPASS: /,
    );
    assert.match(stdout, /PASS: Approximate system memory used : -?\d+\.\d\d MB\.\n$/);
  });

  test("mistakes", async () => {
    await ctl("put", "/mine/x", "1");
    const { code, stderr } = await ctl("check", "perf", "--prefix=/mine/");
    assert.deepEqual(
      [code, stderr],
      [
        3,
        "Error: prefix \"/mine/\" has keys. Delete with 'quoratectl del --prefix /mine/' first\n",
      ],
    );
    const unknown = await ctl("check", "datascale", "--load=huge");
    assert.deepEqual([unknown.code, unknown.stderr], [4, "Error: unknown load option huge\n"]);
  });
});
