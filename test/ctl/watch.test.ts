/**
 * quoratectl watch against a cluster of three members: what it prints, what it runs, interactive
 * mode, and members that go away.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { quoratectl } from "@quorate/ctl";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { LiveRun, type ProgramResult, type ProgramWorld, runInProcess } from "../support/ctl-io.ts";
import { quorate } from "../support/executables.ts";
import { until } from "../support/until.ts";

let cluster: TestCluster;
const endpoints = (): string => `--endpoints=${cluster.endpoints.join(",")}`;
/** Nothing takes as long, on a machine that has much else to do. */
const PATIENT = "--command-timeout=60s";
const ctl = (...args: readonly string[]): Promise<ProgramResult> =>
  runInProcess(quoratectl, [endpoints(), PATIENT, ...args]);
const live = (args: readonly string[], world?: ProgramWorld): LiveRun =>
  new LiveRun(quoratectl, [endpoints(), ...args], world);

async function put(key: string, value: string): Promise<number> {
  const { stdout } = await ctl("put", key, value, "-w", "json");
  return (JSON.parse(stdout) as { header: { revision: number } }).header.revision;
}

before(async () => {
  cluster = await startCluster({ executable: quorate, size: 3 });
});
after(() => cluster?.destroy());

describe("what it prints", () => {
  test("puts and deletions of a prefix from a revision on, with what was there before", async () => {
    const revision = await put("p/a", "1");
    await put("p/a", "2");
    await ctl("del", "p/a");
    await put("other", "x");
    await put("p/b", "3");
    const watch = live(["watch", "p/", "--prefix", "--rev", String(revision), "--prev-kv"]);
    await watch.until((out) => out.endsWith("p/b\n3\n"));
    const { code, stdout } = await watch.stop();
    assert.equal(stdout, "PUT\np/a\n1\nPUT\np/a\n1\np/a\n2\nDELETE\np/a\n2\np/a\n\nPUT\np/b\n3\n");
    assert.equal(code, 130);
  });

  test("the other forms", async () => {
    const revision = await put("f", "1");
    const shown = async (...flags: string[]): Promise<string> => {
      const watch = live(["watch", "f", "g", "--rev", String(revision), ...flags]);
      await watch.until((out) => out.length > 0);
      const { code, stdout } = await watch.stop("SIGTERM");
      assert.equal(code, 143);
      return stdout.replace(
        /("(?:cluster_id|member_id|raft_term|ClusterID|MemberID|RaftTerm)" ?: ?)\w+/g,
        "$1N",
      );
    };
    const record = `"kv":{"key":"Zg==","create_revision":${revision},"mod_revision":${revision},"version":1,"value":"MQ=="}`;
    assert.equal(
      await shown("-w", "json"),
      `{"Header":{"cluster_id":N,"member_id":N,"revision":${revision},"raft_term":N},"Events":[{${record}}],"CompactRevision":0,` +
        '"Canceled":false,"Created":false,"CancelReason":""}\n',
    );
    const fields = (lease: string): string =>
      `"ClusterID" : N\n"MemberID" : N\n"Revision" : ${revision}\n"RaftTerm" : N\n"Type" : PUT\n"Key" : "f"\n` +
      `"CreateRevision" : ${revision}\n"ModRevision" : ${revision}\n"Version" : 1\n"Value" : "1"\n"Lease" : ${lease}\n`;
    assert.equal(await shown("-w", "fields"), fields("0"));
    assert.equal(await shown("-w", "fields", "--hex"), fields("0000000000000000"));
    assert.equal(await shown("--hex"), "PUT\n\\x66\n\\x31\n");
  });

  test("history that is compacted away ends it with code 5", async () => {
    const revision = await put("c", "1");
    await put("c", "2");
    await ctl("compaction", String(revision + 1));
    const { code, stdout, stderr } = await ctl("watch", "c", "--rev", String(revision));
    assert.deepEqual(
      { code, stdout, stderr },
      {
        code: 5,
        stdout: "",
        stderr:
          "watch was canceled (etcdserver: mvcc: required revision has been compacted)\nError: watch is canceled by the server\n",
      },
    );
  });
});

describe("command lines", () => {
  const refused = async (
    args: readonly string[],
    env: Record<string, string> = {},
  ): Promise<string> => {
    const { code, stdout, stderr } = await runInProcess(
      quoratectl,
      [endpoints(), "watch", ...args],
      { env },
    );
    assert.deepEqual([code, stdout], [128, ""]);
    return stderr.replace(/^Error: (.*)\n$/s, "$1");
  };

  test("what cannot be watched is refused", async () => {
    assert.equal(await refused([]), "bad number of arguments");
    assert.equal(await refused(["--", "echo"]), "bad number of arguments");
    assert.equal(
      await refused(["a", "--"]),
      "bad number of arguments (found separator --, but no commands)",
    );
    assert.equal(
      await refused(["a", "b", "--prefix"]),
      "`range_end` and `--prefix` are mutually exclusive",
    );
    const conflict = "bad number of arguments (found conflicting environment key)";
    assert.equal(await refused(["a"], { ETCDCTL_WATCH_KEY: "k" }), conflict);
    assert.equal(await refused(["a", "--", "echo"], { ETCDCTL_WATCH_KEY: "k" }), conflict);
    assert.equal(
      await refused(["a"], { ETCDCTL_WATCH_RANGE_END: "z" }),
      'ETCDCTL_WATCH_KEY is empty but got ETCDCTL_WATCH_RANGE_END="z"',
    );
  });

  test("a program runs for each event, with the event in its environment; the keys come from variables", async () => {
    const revision = await put("x/1", 'a "b"');
    await put("x/2", "\n");
    const script =
      'printf "%s %s %s %s|" "$ETCD_WATCH_REVISION" "$ETCD_WATCH_EVENT_TYPE" "$ETCD_WATCH_KEY" "$ETCD_WATCH_VALUE"';
    const watch = live(["watch", "--rev", String(revision), "--", "sh", "-c", script], {
      env: { ETCDCTL_WATCH_KEY: "x/", ETCDCTL_WATCH_RANGE_END: "x0" },
    });
    await watch.until((out) => out.split("|").length === 3);
    const runs = (await watch.stop()).stdout.replace(/PUT\nx\/\d\n.*\n\n?/g, "");
    assert.match(runs, /^\d+ "PUT" "x\/1" "a \\"b\\""\|\d+ "PUT" "x\/2" "\\n"\|$/);
  });

  test("a program that fails ends the watch with code 1", async () => {
    const revision = await put("y", "1");
    const { code, stderr } = await ctl(
      "watch",
      "y",
      "--rev",
      String(revision),
      "--",
      "sh",
      "-c",
      "exit 3",
    );
    assert.deepEqual([code, stderr], [1, 'command ["sh" "-c" "exit 3"] error (exit status 3)\n']);
  });
});

describe("interactive mode", () => {
  test("watches, progress and mistakes, one a line", async (t) => {
    const revision = await put("i/1", "1");
    const more = Promise.withResolvers<string>();
    const hasRun = Promise.withResolvers<void>();
    const end = new AbortController();
    t.after(() => end.abort());
    const watch = live(["watch", "-i"], {
      stdin: (async function* () {
        yield Buffer.from(`nonsense\n\nwatch\nwatch i/ --prefix --rev=${revision} --prev-kv\n`);
        yield Buffer.from(await more.promise);
        // Progress may be reported between a change and what the program that runs for it prints.
        await hasRun.promise;
        // A member answers only when all watches of the stream have caught up, as etcd's: a client
        // without a response retries.
        while (!end.signal.aborted) {
          yield Buffer.from("progress\n");
          await delay(100);
        }
      })(),
    });
    await watch.until((out) => out === "PUT\ni/1\n1\n");
    more.resolve(`watch 'i/1' i/2 --rev ${revision} -- echo ran\n`);
    await watch.until((out) => out === "PUT\ni/1\n1\nPUT\ni/1\n1\nran\n");
    hasRun.resolve();
    await watch.until((out) => /progress notify: \d+\n/.test(out));
    end.abort();
    const { code, stderr } = await watch.result;
    assert.deepEqual(
      { code, stderr },
      {
        code: 3,
        stderr:
          "Invalid command nonsense (only support watch)\nInvalid command:  (watch and progress supported)\n" +
          "Invalid command watch (command type or key is not provided)\nError: error reading watch request line: EOF\n",
      },
    );
  });

  test("a line that cannot be read ends it with code 128", async () => {
    const { code, stderr } = await runInProcess(quoratectl, [endpoints(), "watch", "-i"], {
      input: "watch --nope k\n",
    });
    assert.deepEqual([code, stderr], [128, "Error: unknown flag: --nope\n"]);
  });
});

test("members are killed one after the other: the watch goes on, and every change is printed once and in order", async (t) => {
  const revision = await put("r", "0");
  const watch = live(["watch", "r", "--rev", String(revision)]);
  t.after(() => watch.stop());
  await watch.until((out) => out === "PUT\nr\n0\n");
  let expected = "PUT\nr\n0\n";
  for (const [index, member] of cluster.members.entries()) {
    await member.kill();
    // A write that is under way while the leader is lost may fail.
    await until("the others agree", async () => (await ctl("get", "r")).code === 0);
    for (const value of [`${index} killed`, `${index} down`]) {
      await put("r", value);
      expected += `PUT\nr\n${value}\n`;
    }
    await watch.until((out) => out.length >= expected.length);
    member.start();
    await member.waitReady();
  }
  assert.equal((await watch.stop()).stdout, expected);
  assert.match(
    watch.stderr,
    /^(?:Warning: http:[^\n]*; the watch continues at the next endpoint that responds\n)+$/,
  );
});
