/**
 * The restore round with three real members over mutual TLS: save, destroy, restore, read back; and
 * what it does when that fails.
 * @slow
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fromLatin1, KVService } from "@quorate/proto";
import { certificateFiles } from "../../scripts/certs.ts";
import { startCluster, stopCluster } from "../../scripts/cluster/control.ts";
import { type ClusterPlan, localCluster } from "../../scripts/cluster/layout.ts";
import { restoreCluster } from "../../scripts/cluster/restore.ts";
import { TestClient } from "../support/client.ts";
import { freePorts } from "../support/ports.ts";

const root = join(import.meta.dirname, "../..");
const dir = mkdtempSync(join(tmpdir(), "quorate-restore-"));
const ports = await freePorts(6);
const plan: ClusterPlan = {
  ...localCluster(join(dir, ".quorate")),
  members: [0, 1, 2].map((i) => ({
    name: `m${i}`,
    clientPort: ports[2 * i],
    peerPort: ports[2 * i + 1],
  })),
};
const said: string[] = [];
const say = (line: string): void => void said.push(line);
const words = (): string => said.splice(0).join("\n");

after(async () => {
  await stopCluster(plan, () => {});
  rmSync(dir, { recursive: true, force: true });
});

function client(member: number): TestClient {
  const files = certificateFiles(join(plan.dir, "certs"));
  const read = (path: string): string => readFileSync(path, "utf8");
  const identity = { ca: read(files.ca), cert: read(files.client), key: read(files.clientKey) };
  return new TestClient(`127.0.0.1:${plan.members[member].clientPort}`, identity);
}

async function count(member: number): Promise<{ keys: number; revision: number }> {
  const one = client(member);
  const all = { key: new Uint8Array(1), rangeEnd: new Uint8Array(1), countOnly: true };
  const { count: keys, header } = await one.call(KVService.methods.Range, all);
  one.close();
  return { keys, revision: header!.revision };
}

test("the round of three members, from a file, and a file that is damaged", async () => {
  assert.equal(await restoreCluster(plan, undefined, say), false);
  assert.match(words(), /no member is running: start the cluster first/);

  assert.equal(await startCluster(plan, say), true, said.join("\n"));
  const writer = client(0);
  for (let i = 0; i < 40; i++)
    await writer.call(KVService.methods.Put, {
      key: fromLatin1(`k${i % 25}`),
      value: fromLatin1(`${i}`),
    });
  words();
  // As after the README's first session, whose variables are still there.
  process.env["ETCDCTL_CACERT"] = "elsewhere.pem";
  assert.equal(await restoreCluster(plan, undefined, say), true, said.join("\n"));
  delete process.env["ETCDCTL_CACERT"];
  const reported = words();
  assert.match(reported, /has 25 keys at revision 41\n/);
  assert.match(reported, /(?:m\d has 25 keys, hash \d+\n){3}every member has what was saved$/);
  for (const member of [0, 1, 2]) assert.deepEqual(await count(member), { keys: 25, revision: 41 });
  assert.deepEqual(readdirSync(plan.dir).sort(), ["certs", "data", "logs", "pids", "snapshots"]);
  const [name] = readdirSync(join(plan.dir, "snapshots"));
  const file = join(plan.dir, "snapshots", name);

  // Back to the file, after more was written.
  await writer.call(KVService.methods.Put, { key: fromLatin1("later"), value: fromLatin1("1") });
  assert.deepEqual(await count(1), { keys: 26, revision: 42 });
  assert.equal(await restoreCluster(plan, file, say), true, said.join("\n"));
  for (const member of [0, 1, 2]) assert.deepEqual(await count(member), { keys: 25, revision: 41 });
  words();

  // A file that cannot be restored from changes nothing: not even the members are stopped.
  const bytes = readFileSync(file);
  bytes[5000] ^= 1;
  const bad = join(dir, "bad.db");
  writeFileSync(bad, bytes);
  assert.equal(await restoreCluster(plan, bad, say), false);
  assert.match(
    words(),
    /quorateutl snapshot status .*bad\.db .*Error: expected sha256 .*its bytes were changed/,
  );
  assert.deepEqual(await count(2), { keys: 25, revision: 41 });
  assert.ok(!existsSync(join(plan.dir, "data.before-restore")));
  writer.close();
});

test("--help says what it does and touches nothing", () => {
  const help = execFileSync(join(root, "scripts/restore.sh"), ["--help"]).toString();
  assert.match(help, /^usage: scripts\/restore\.sh \[SNAPSHOT\]\n[\s\S]*the old data are put back/);
});
