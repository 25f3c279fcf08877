/**
 * quoratectl against etcd: the same commands through it and through etcdctl must print the same
 * bytes and end with the same code.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, suite, test } from "node:test";
import { quoratectl } from "@quorate/ctl";
import { AlarmRequest_AlarmAction, AlarmType, MaintenanceService } from "@quorate/proto";
import { TestClient } from "../support/client.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { runInProcess } from "../support/ctl-io.ts";
import { etcd, skipWithoutEtcd, skipWithoutEtcdctl } from "../support/executables.ts";

interface Output {
  readonly code: number;
  /** A char a byte. */
  readonly stdout: string;
  /** The lines with errors; what else libraries log does not count. */
  readonly errors: readonly string[];
}

function errorLines(stderr: string): string[] {
  return stderr.split("\n").filter((line) => /^(?:Error:|Failed to|Warning: Keys)/.test(line));
}

/**
 * Debian's etcdctl is of release 3.4, which knows fewer flags and prints some answers otherwise;
 * what is compared is the same in all.
 */
function etcdctl(endpoint: string, args: readonly string[], input: string): Promise<Output> {
  return new Promise((resolve) => {
    const child = execFile(
      "etcdctl",
      [`--endpoints=${endpoint}`, ...args],
      { env: { PATH: process.env["PATH"], ETCDCTL_API: "3" }, encoding: "latin1" },
      (error, stdout, stderr) =>
        resolve({
          code: typeof error?.code === "number" ? error.code : 0,
          stdout,
          errors: errorLines(stderr),
        }),
    );
    // One that refuses its command line does not read on.
    child.stdin!.on("error", () => {});
    child.stdin!.end(Buffer.from(input, "latin1"));
  });
}

async function ours(
  endpoint: string,
  args: readonly string[],
  input: string,
  env: Record<string, string> = {},
): Promise<Output & { stderr: string }> {
  const result = await runInProcess(quoratectl, [`--endpoints=${endpoint}`, ...args], {
    input: Buffer.from(input, "latin1"),
    env,
    sleep: async () => {},
  });
  return {
    ...result,
    stdout: result.stdoutBytes.toString("latin1"),
    errors: errorLines(result.stderr),
  };
}

suite("against etcd", { skip: skipWithoutEtcd || skipWithoutEtcdctl }, () => {
  let cluster: TestCluster;
  let endpoint: string;
  before(async () => {
    cluster = await startCluster({ executable: etcd!, size: 1 });
    endpoint = cluster.members[0].clientAddress;
    for (const [key, value] of [
      ["foo", "bar"],
      ["foo", 'b<a>&"z"\t☃\u00ad'],
      ["p/1", "1"],
      ["p/3", "2"],
      ["p/2", "3"],
    ] as const) {
      assert.equal((await ours(endpoint, ["put", key, value], "")).stdout, "OK\n");
    }
    assert.equal((await ours(endpoint, ["put", "raw"], "\xff\xfe\x00\x80abc\n")).stdout, "OK\n");
  });
  after(async () => {
    await cluster?.destroy();
  });

  const same = async (args: readonly string[], input = ""): Promise<void> => {
    const { code, stdout, errors } = await ours(endpoint, args, input);
    const theirs = await etcdctl(endpoint, args, input);
    // Before 3.7, etcdctl writes an alarm with a blank at the end.
    const text = theirs.stdout.replace(/(?<=^memberID:\d+ alarm:\w+) $/gm, "");
    assert.deepEqual({ code, stdout, errors }, { ...theirs, stdout: text }, args.join(" "));
  };

  test("get, in every form", async () => {
    const gets = [
      ["foo"],
      ["raw"],
      ["nokey"],
      ["", "--prefix"],
      ["", "--from-key"],
      ["p/", "--prefix", "--limit", "2"],
      ["p/", "--prefix", "--order=DESCEND"],
      ["p/", "--prefix", "--sort-by=VALUE", "--order", "descend"],
      ["p/", "--prefix", "--sort-by", "modify", "--keys-only"],
      ["p/1", "p/3"],
      ["foo", "--consistency=s"],
      ["foo", "--rev", "2"],
    ];
    for (const args of gets)
      for (const form of ["simple", "json", "fields", "protobuf"])
        await same(["get", ...args, "-w", form]);
    await same(["get", "p/", "--prefix", "--hex"]);
    await same(["get", "p/", "--prefix", "--print-value-only"]);
    assert.match(
      (await ours(endpoint, ["get", "p/", "--prefix", "--count-only", "-w=fields"], "")).stdout,
      /\n"Count" : 3\n$/,
    );
  });

  test("--decode k8s shows objects of Kubernetes as YAML, and of all else what it is", async () => {
    const object = '{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"w"}}';
    await ours(endpoint, ["put", "k8s/widget"], object);
    await ours(endpoint, ["put", "k8s/\x1b\n"], "k8s:enc:kms:v2:vault:\xff");
    const decode = (...args: string[]) => ours(endpoint, ["get", "--decode", "k8s", ...args], "");
    const yaml =
      /^apiVersion: example.org\/v1\nkind: Widget\nmetadata:\n {2}name: w\n {2}resourceVersion: "\d+"\n$/;
    assert.match((await decode("k8s/widget", "--print-value-only")).stdout, yaml);
    const { stdout } = await decode("k8s/", "--prefix");
    const [encrypted, shown, ...more] = stdout.split("---\n");
    assert.equal(
      encrypted,
      '# "k8s/\\x1b\\n"\n# encrypted by the KMS plugin "vault" (v2), 22 bytes\n',
    );
    assert.ok(shown?.startsWith('# "k8s/widget"\n'), stdout);
    assert.match(shown!.slice(shown!.indexOf("\n") + 1), yaml);
    assert.deepEqual(more, []);
    assert.match((await decode("foo")).stdout, /^# "foo"\n# no object of Kubernetes, \d+ bytes/);
    for (const args of [["-w=json"], ["--keys-only"]])
      assert.match((await decode("foo", ...args)).stderr, /--decode is only for/);
    assert.match(
      (await ours(endpoint, ["get", "--decode", "x", "foo"], "")).stderr,
      /--decode is "x", not k8s/,
    );
  });

  test("put and del, with what was there before", async () => {
    for (const form of ["simple", "json", "fields"]) {
      // Revisions go on between the two programs; all else must agree.
      const agree = async (args: readonly string[], input = ""): Promise<void> => {
        const [a, b] = [
          await ours(endpoint, [...args, "-w", form], input),
          await etcdctl(endpoint, [...args, "-w", form], input),
        ];
        const steady = (text: string): string =>
          text.replace(/((?:revision|Revision|version|Version)" ?: ?)\d+/g, "$1N");
        assert.equal(a.code, b.code);
        assert.equal(steady(a.stdout), steady(b.stdout), args.join(" "));
      };
      await ours(endpoint, ["put", "u", "old"], "");
      await agree(["put", "u", "old", "--prev-kv"]);
      await agree(["put", "u"], "old");
      await agree(["put", "--", "-u", "-v"]);
      await agree(["put", "u", "--ignore-value", "--prev-kv"]);
      await agree(["del", "absent"]);
      await agree(["del", "absent", "--prefix"]);
    }
    await ours(endpoint, ["put", "v", "1"], "");
    assert.equal((await ours(endpoint, ["del", "v", "--prev-kv"], "")).stdout, "1\nv\n1\n");
    assert.deepEqual((await ours(endpoint, ["del", "x", "y"], "")).errors, [
      'Warning: Keys between "x" and "y" will be deleted. Please interrupt the command within next 2 seconds to cancel. ' +
        "You can provide `--range` flag to avoid the delay.",
    ]);
  });

  test("txn reads comparisons and requests", async () => {
    const txns = [
      'mod("foo") > "0"\n\nget foo\nget p/ --prefix --order DESCEND\n\nget nokey\n\n',
      'val("foo") = "nope"\n\nget foo\n\nget raw\n\n',
      'create("none") = "0"\nver("foo") != "9"\n\nget foo\n\n\n',
      "\nget foo\n\n\n",
    ];
    for (const txn of txns)
      for (const form of ["simple", "fields", "protobuf"]) await same(["txn", "-w", form], txn);
    await same(["txn", "-i"], txns[0]);
    // Release 3.4 knows neither comparisons of leases nor quotes around whole words.
    const newer = await ours(
      endpoint,
      ["txn"],
      'lease("foo") = "0"\n\nget "p\\x2f1"\nget \'p/2\'\n\n\n',
    );
    assert.equal(newer.stdout, "SUCCESS\n\np/1\n1\n\np/2\n3\n");
    const json = await ours(endpoint, ["txn", "-w", "json"], txns[1]);
    assert.match(
      json.stdout,
      /"responses":\[\{"Response":\{"response_range":\{"header":\{"revision":\d+\},"kvs":\[\{"key":"cmF3"/,
    );
  });

  test("mistakes in a txn end it with code 3", async () => {
    for (const txn of [
      'ver("foo")>"0"\n\n\n\n',
      'foo("a") = "1"\n\n\n\n',
      'mod("a") = "x"\n\n\n\n',
      "\nfrob a\n\n\n",
      "\nget\n\n\n",
      "\nget foo --nope\n\n\n",
      'mod("foo") > "0"',
    ]) {
      await same(["txn"], txn);
    }
    assert.deepEqual((await ours(endpoint, ["txn"], 'mod("a") ~ "1"\n\n\n\n')).errors, [
      'Error: malformed comparison: mod("a") ~ "1" (unknown operator ~)',
    ]);
  });

  test("members and endpoints", async () => {
    for (const form of ["simple", "json"]) await same(["member", "list", "-w", form]);
    await same(["endpoint", "status", "-w", "json"]);
    await same(["endpoint", "hashkv", "-w", "json"]);
    const health = await ours(endpoint, ["endpoint", "health", "--cluster"], "");
    assert.match(
      health.stdout,
      /^http:\/\/127\.0\.0\.1:\d+ is healthy: successfully committed proposal: took = [^\n]+s\n$/,
    );
  });

  test("mistakes on the command line end with etcdctl's codes and texts", async () => {
    const mistakes = [
      ["get"],
      ["put"],
      ["put", "k"],
      ["del"],
      ["del", "a", "b", "c"],
      ["get", "a", "b", "--prefix"],
      ["get", "a", "--from-key", "--prefix"],
      ["get", "a", "--order", "x"],
      ["get", "a", "--sort-by", "x"],
      ["get", "a", "--consistency", "x"],
      ["get", "a", "-w", "bad"],
      ["get", "a", "--print-value-only", "-w", "json"],
      ["get", "a", "--rev", "100000"],
      ["get", "a", "-w", "table"],
      ["put", "a", "b", "--lease", "zz"],
      ["put", "a", "b", "--lease", "7"],
      ["put", "", "b"],
      ["put", "a", "b", "--ignore-value"],
      ["put", "absent", "--ignore-value"],
      ["compaction"],
      ["compaction", "x"],
      ["compaction", "100000"],
      ["txn", "x"],
    ];
    for (const args of mistakes) await same(args);
  });

  test("compaction", async () => {
    assert.equal(
      (await ours(endpoint, ["compaction", "3", "--physical"], "")).stdout,
      "compacted revision 3\n",
    );
    await same(["compaction", "2"]);
    await same(["get", "foo", "--rev", "2"]);
  });

  test("alarms and defragmentation", async () => {
    // In the form "fields" etcdctl 3.4 stumbles over etcd 3.4's answer, which has no header.
    const forms = ["simple", "json", "protobuf", "table"];
    for (const form of forms) await same(["alarm", "list", "-w", form]);
    const client = new TestClient(endpoint);
    const raise = async (): Promise<void> => {
      await client.call(MaintenanceService.methods.Alarm, {
        action: AlarmRequest_AlarmAction.ACTIVATE,
        memberID: 7n,
        alarm: AlarmType.NOSPACE,
      });
    };
    await raise();
    for (const form of forms) await same(["alarm", "list", "-w", form]);
    await same(["put", "foo", "refused"]);
    await same(["alarm", "list", "x"]);
    await same(["alarm", "disarm", "x"]);
    const disarmed = await ours(endpoint, ["alarm", "disarm"], "");
    await raise();
    assert.equal(
      disarmed.stdout,
      (await etcdctl(endpoint, ["alarm", "disarm"], "")).stdout.replace(/ $/gm, ""),
    );
    await same(["alarm", "list"]);
    client.close();
    const shown = (text: string): string => text.replace(/ took .*$/m, "");
    const theirs = await etcdctl(endpoint, ["defrag"], "");
    assert.match(
      (await ours(endpoint, ["defrag"], "")).stdout,
      /^Finished defragmenting etcd member\[127\.0\.0\.1:\d+\]\. took [\d.]+[µm]?s\n$/,
    );
    assert.match(shown(theirs.stdout), /^Finished defragmenting etcd member\[127\.0\.0\.1:\d+\]/);
  });

  test("variables stand for flags", async () => {
    const { stdout } = await ours(endpoint, ["get", "foo"], "", {
      ETCDCTL_WRITE_OUT: "fields",
      ETCDCTL_API: "3",
    });
    assert.match(stdout, /^"ClusterID" : /);
  });

  test("an endpoint that does not answer costs the command's time and no more", async () => {
    const startMs = performance.now();
    const late = await ours("127.0.0.1:1", ["get", "a", "--command-timeout=1s"], "");
    assert.deepEqual([late.code, late.errors], [1, ["Error: context deadline exceeded"]]);
    assert.match(late.stderr, /^Warning: 127\.0\.0\.1:1: connection refused\n/);
    assert.ok(performance.now() - startMs < 30_000);
    const status = await ours(
      "127.0.0.1:1",
      ["endpoint", "status", "--command-timeout=1s", "-w", "json"],
      "",
    );
    assert.deepEqual(
      [status.code, status.stdout, status.errors],
      [
        1,
        "null\n",
        ["Failed to get the status of endpoint 127.0.0.1:1 (context deadline exceeded)"],
      ],
    );
    const health = await ours("127.0.0.1:1", ["endpoint", "health", "--command-timeout=1s"], "");
    assert.equal(health.code, 1);
    assert.match(
      health.stderr,
      /127\.0\.0\.1:1 is unhealthy: failed to commit proposal: context deadline exceeded\nError: unhealthy cluster\n$/,
    );
  });
});
