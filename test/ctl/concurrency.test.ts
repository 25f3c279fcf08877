/**
 * quoratectl lease, lock and elect against a member: what they print, what they hold, and that they
 * let go of it.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { quoratectl } from "@quorate/ctl";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { LiveRun, type ProgramResult, runInProcess } from "../support/ctl-io.ts";
import { quorate } from "../support/executables.ts";

let cluster: TestCluster;
/** Nothing takes as long, on a machine that has much else to do. */
const PATIENT = "--command-timeout=60s";
const line = (args: readonly string[]): readonly string[] => [
  `--endpoints=${cluster.endpoints.join(",")}`,
  PATIENT,
  ...args,
];
const ctl = (...args: readonly string[]): Promise<ProgramResult> =>
  runInProcess(quoratectl, line(args));
const live = (...args: readonly string[]): LiveRun => new LiveRun(quoratectl, line(args));

async function printed(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await ctl(...args);
  assert.deepEqual([code, stderr], [0, ""], args.join(" "));
  return stdout;
}

async function failure(...args: readonly string[]): Promise<readonly [number, string]> {
  const { code, stdout, stderr } = await ctl(...args);
  assert.equal(stdout, "");
  return [code, stderr];
}

before(async () => {
  cluster = await startCluster({ executable: quorate, size: 1 });
});
after(() => cluster?.destroy());

describe("lease", () => {
  test("a life of a lease", async () => {
    const granted = /^lease ([0-9a-f]{16}) granted with TTL\(60s\)\n$/.exec(
      await printed("lease", "grant", "60"),
    );
    const id = granted![1];
    await printed("put", "k1", "v", `--lease=${id}`);
    assert.equal(await printed("lease", "list"), `found 1 leases\n${id}\n`);
    assert.match(
      await printed("lease", "timetolive", id, "--keys"),
      new RegExp(
        `^lease ${id} granted with TTL\\(60s\\), remaining\\(5[0-9]s\\), attached keys\\(\\[k1\\]\\)\\n$`,
      ),
    );
    assert.equal(
      await printed("lease", "keep-alive", "--once", id),
      `lease ${id} keepalived with TTL(60)\n`,
    );
    const json = JSON.parse(await printed("lease", "timetolive", id, "-w", "json")) as Record<
      string,
      unknown
    >;
    assert.deepEqual(Object.keys(json), [
      "cluster_id",
      "member_id",
      "revision",
      "raft_term",
      "id",
      "ttl",
      "granted-ttl",
      "keys",
    ]);
    assert.deepEqual([json["granted-ttl"], json["keys"]], [60, null]);
    assert.match(
      await printed("lease", "list", "-w", "fields", "--hex"),
      new RegExp(`\\n"ID" : ${id}\\n$`),
    );
    const kept = live("lease", "keep-alive", id);
    await kept.until((out) => out === `lease ${id} keepalived with TTL(60)\n`);
    assert.equal((await kept.stop()).code, 130);
    assert.equal(await printed("lease", "revoke", id), `lease ${id} revoked\n`);
    assert.equal(await printed("get", "k1"), "");
    assert.equal(await printed("lease", "timetolive", id), `lease ${id} already expired\n`);
    assert.equal(await printed("lease", "keep-alive", id), `lease ${id} expired or revoked.\n`);
  });

  test("mistakes end with etcdctl's codes", async () => {
    assert.deepEqual(await failure("lease", "grant"), [
      128,
      "Error: lease grant command needs TTL argument\n",
    ]);
    assert.deepEqual(await failure("lease", "grant", "x"), [
      128,
      'Error: bad TTL (strconv.ParseInt: parsing "x": invalid syntax)\n',
    ]);
    assert.deepEqual(await failure("lease", "revoke", "77"), [
      1,
      "Error: failed to revoke lease (etcdserver: requested lease not found)\n",
    ]);
    assert.deepEqual(await failure("lease", "keep-alive", "--once", "77"), [
      2,
      "Error: etcdserver: requested lease not found\n",
    ]);
    assert.deepEqual(await failure("lease", "list", "-w", "table"), [
      4,
      "Error: table not supported as output format\n",
    ]);
  });
});

describe("lock", () => {
  test("the second has it when the first is stopped, and nothing is left behind", async () => {
    const first = live("lock", "l");
    await first.until((out) => /^l\/[0-9a-f]+\n\n$/.test(out));
    const second = live("lock", "l");
    const third = live("lock", "l");
    await waiting("l/", 3);
    assert.equal(second.stdout, "");
    // Who gives up waiting leaves the line.
    const { code, stderr } = await third.stop();
    assert.deepEqual([code, stderr], [1, "Error: context canceled\n"]);
    assert.equal((await first.stop("SIGTERM")).code, 0);
    await second.until((out) => out !== "");
    assert.notEqual(second.stdout, first.stdout);
    assert.equal((await second.stop()).code, 0);
    assert.equal(await printed("get", "l/", "--prefix"), "");
    assert.equal(await printed("lease", "list"), "found 0 leases\n");
  });

  test("a program runs with the lock, and its exit code is the command's", async () => {
    const script = "echo $ETCD_LOCK_KEY $ETCD_LOCK_REV; exit 3";
    const { code, stdout, stderr } = await ctl("lock", "m", "--", "sh", "-c", script);
    assert.match(stdout, /^m\/[0-9a-f]+ \d+\n$/);
    assert.deepEqual([code, stderr], [3, "Error: exit status 3\n"]);
    assert.equal((await ctl("lock", "m", "true")).code, 0);
    assert.equal(await printed("get", "m/", "--prefix"), "");
  });

  test("a process that is asked to end ends the program and releases the lock", async () => {
    const child = spawn(process.execPath, [
      join(import.meta.dirname, "../../bin/quoratectl.js"),
      ...line(["lock", "n", "--", "sh", "-c", "echo in; exec sleep 60"]),
    ]);
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    try {
      await new Promise((resolve) => child.stdout.once("data", resolve));
      child.kill("SIGTERM");
      assert.equal(await ended, 255);
    } finally {
      child.kill("SIGKILL");
    }
    assert.equal(await printed("get", "n/", "--prefix"), "");
  });

  test("when the session is lost, so is the lock", async () => {
    const lock = live("lock", "o", "--ttl=9");
    await lock.until((out) => out !== "");
    await printed("lease", "revoke", lock.stdout.slice(2).trim());
    const { code, stderr } = await lock.result;
    assert.deepEqual([code, stderr], [1, "Error: session expired\n"]);
  });

  test("mistakes", async () => {
    assert.deepEqual(await failure("lock"), [
      128,
      "Error: lock takes a lock name argument and an optional command to execute\n",
    ]);
    assert.deepEqual(await failure("lock", "x", "--ttl=0"), [
      128,
      "Error: --ttl must be a number of seconds above 0, not 0\n",
    ]);
    assert.deepEqual(await failure("lock", "x", "no-such-program-here"), [
      1,
      "Error: spawn no-such-program-here ENOENT\n",
    ]);
  });
});

/** Resolves when there are so many keys below a prefix. */
async function waiting(prefix: string, count: number): Promise<void> {
  const watch = live("watch", prefix, "--prefix", "--rev=1");
  await watch.until((out) => out.split("PUT\n").length > count);
  await watch.stop();
}

describe("elect", () => {
  test("leaders follow one another, and a listener sees each", async () => {
    const listener = live("elect", "-l", "e");
    const first = live("elect", "e", "a");
    await first.until((out) => /^e\/[0-9a-f]+\na\n$/.test(out));
    const second = live("elect", "e", "b");
    await waiting("e/", 2);
    assert.equal(second.stdout, "");
    await listener.until((out) => out === first.stdout);
    assert.equal((await first.stop()).code, 0);
    await second.until((out) => /^e\/[0-9a-f]+\nb\n$/.test(out));
    await listener.until((out) => out === first.stdout + second.stdout);
    assert.equal((await second.stop()).code, 0);
    assert.equal((await listener.stop()).code, 0);
    assert.equal(await printed("get", "e/", "--prefix"), "");
  });

  test("mistakes", async () => {
    const usage =
      "Error: elect takes one election name argument and an optional proposal argument\n";
    assert.deepEqual(await failure("elect"), [128, usage]);
    assert.deepEqual(await failure("elect", "e"), [
      128,
      "Error: no proposal argument but -l not set\n",
    ]);
    assert.deepEqual(await failure("elect", "e", "v", "-l"), [
      128,
      "Error: proposal given but -l is set\n",
    ]);
  });
});
