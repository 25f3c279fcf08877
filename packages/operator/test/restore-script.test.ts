/**
 * The script with which a pod tests whether a backup can be restored: once with the real programs,
 * and every end that it can come to with programs that only print.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { endsWith } from "../../../test/support/children.ts";
import { withCluster } from "../../../test/support/cluster.ts";
import { freePorts } from "../../../test/support/ports.ts";
import { runQuoratectl, tlsClientFlags } from "../../../test/support/quoratectl.ts";
import { writePrograms } from "../../../test/support/sandbox.ts";
import type { QuorateBackup, QuorateCluster } from "../src/base/kinds.ts";
import { restoreTestPod } from "../src/cluster/pods-beside.ts";

const kind = (name: string, spec: object) => ({
  apiVersion: "quorate.dev/v1alpha1",
  kind: "X",
  metadata: { name, namespace: "ns", uid: `uid-of-${name}` },
  spec,
});
const cluster = kind("db", { size: 1, image: "i", storage: { size: "1Gi" } }) as QuorateCluster;
const backup = kind("daily", { cluster: "db", claim: "c", path: "p" }) as QuorateBackup;

interface Container {
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
}

/** A pod's container as a process: its directories are in one of the test's. */
class Pod {
  readonly dir: string;

  constructor(t: TestContext) {
    this.dir = mkdtempSync(join(tmpdir(), "quorate-restore-test-"));
    t.after(() => rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 }));
    for (const name of ["bin", "volume", "said", "tls", "backup/p"])
      mkdirSync(join(this.dir, name), { recursive: true });
  }

  program(name: string, script: string): void {
    writeFileSync(join(this.dir, "bin", name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  /** Resolves with the exit code and the last words. */
  async run(
    t: TestContext,
    { ports = [2379, 2380], env = {} }: { ports?: readonly number[]; env?: object } = {},
  ): Promise<[code: number, words: string]> {
    const { containers } = restoreTestPod(cluster, backup).spec as { containers: Container[] };
    const [container] = containers as [Container];
    const here = (text: string): string =>
      [
        ["/opt/quorate/bin", join(this.dir, "bin")],
        ["/var/lib/quorate", join(this.dir, "volume")],
        ["/run/quorate", join(this.dir, "said")],
        ["/etc/quorate/member-tls", join(this.dir, "tls")],
        ["/backup/", join(this.dir, "backup/")],
        ["127.0.0.1:2379", `127.0.0.1:${ports[0]}`],
        ["127.0.0.1:2380", `127.0.0.1:${ports[1]}`],
      ].reduce((made, [from, to]) => made.replaceAll(from!, to!), text);
    const variables = container.env.map(({ name, value }) => [name, here(value)]);
    const [program, ...words] = [...container.command, ...container.args].map(here);
    const child = endsWith(
      spawn(program!, words, {
        env: { PATH: process.env["PATH"], ...Object.fromEntries(variables), ...env },
        stdio: ["ignore", "ignore", "pipe"],
      }),
      t,
    );
    let errors = "";
    child.stderr!.setEncoding("utf8").on("data", (text: string) => (errors += text));
    const code = await new Promise<number>((resolve) =>
      child.once("close", (exit) => resolve(exit ?? -1)),
    );
    t.diagnostic(errors.slice(-500));
    return [code, readFileSync(join(this.dir, "said/last-words"), "utf8").trim()];
  }
}

test("a snapshot is restored, and has the cluster's hash", async (t) => {
  const pod = new Pod(t);
  writePrograms(join(pod.dir, "bin"));
  await withCluster({ size: 1, tls: true }, async (source) => {
    const { ca, server, serverKey, client, clientKey } = source.certs!;
    const files = { "ca.crt": ca, "tls.crt": server, "tls.key": serverKey };
    for (const [name, path] of Object.entries(files))
      copyFileSync(path, join(pod.dir, "tls", name));
    const flags = tlsClientFlags(source);
    const ctl = async (...args: string[]): Promise<void> => {
      const { code, stderr } = await runQuoratectl(source.endpoints, [...flags, ...args]);
      assert.equal(code, 0, stderr);
    };
    for (const value of ["1", "2", "3"]) await ctl("put", "a", value);
    await ctl("snapshot", "save", join(pod.dir, "backup/p/one.db"));
    // Hashes leave out what a compaction removes: the restored member has to compact as well.
    await ctl("put", "a", "4");
    await ctl("compaction", "3");
    const env = {
      ETCDCTL_ENDPOINTS: source.endpoints.join(),
      ETCDCTL_CACERT: ca,
      ETCDCTL_CERT: client,
      ETCDCTL_KEY: clientKey,
    };
    const [code, words] = await pod.run(t, { ports: await freePorts(2), env });
    assert.match(words, /^revision 4 is restored, with the cluster's hash \d+$/);
    assert.equal(code, 0);
  });
});

/** quoratectl of a member here, and of the cluster there. */
const answers = (ours: string, theirs: string): string => `case "$*" in
  compaction*) exit 0 ;;
  *"hashkv"*) ;;
  *) exit 1 ;;
esac
case "$ETCDCTL_ENDPOINTS" in
  *127.0.0.1*) ${ours} ;;
  *) ${theirs} ;;
esac`;
const hash = (value: number): string =>
  `echo '[{"Endpoint":"x","HashKV":{"hash":${value},"compact_revision":-1,"hash_revision":7}}]'`;

for (const [what, { member = "exec sleep 60", ours = hash(5), theirs = hash(5), code, says }] of [
  ["the same hash", { code: 0, says: "revision 7 is restored, with the cluster's hash 5" }],
  [
    "another hash",
    {
      theirs: hash(6),
      code: 1,
      says: "at revision 7 the restored keys have hash 5, the cluster's 6",
    },
  ],
  [
    "a revision that the cluster has compacted",
    {
      theirs: "echo 'Error: mvcc: required revision has been compacted' >&2; exit 1",
      code: 0,
      says: "revision 7 is restored; the cluster has compacted it, so that nothing is compared",
    },
  ],
  [
    "a cluster that is away",
    {
      theirs: "echo 'Error: context deadline exceeded' >&2; exit 1",
      code: 1,
      says: "revision 7 is restored; the cluster does not say its hash: Error: context deadline exceeded",
    },
  ],
  [
    "a member that does not start",
    {
      member: "exit 1",
      ours: "exit 1",
      code: 1,
      says: "the member that was filled does not start",
    },
  ],
] as const satisfies readonly (readonly [
  string,
  { member?: string; ours?: string; theirs?: string; code: number; says: string },
])[])
  test(`what is said of ${what}`, async (t) => {
    const pod = new Pod(t);
    writeFileSync(join(pod.dir, "backup/p/one.db"), "");
    pod.program("quorateutl", "exit 0");
    pod.program("quorate", member);
    pod.program("quoratectl", answers(ours, theirs));
    assert.deepEqual(await pod.run(t), [code, says]);
  });
