/**
 * README.md, executed: its blocks marked "sh run" and "sh serve", in order, in this very checkout.
 * Where that would touch a running cluster, data or ports, the test is skipped and says
 * what stands in the way.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { isPortFree, portHolder } from "../../scripts/cluster/processes.ts";
import { findProgram } from "../support/executables.ts";
import { blocksOf } from "./guide.ts";
import { Terminal } from "./terminal.ts";

const root = join(import.meta.dirname, "../..");
const readme = readFileSync(join(root, "README.md"), "utf8");
/** What the README's commands make or listen on. */
const paths = [".quorate", "solo.quorate"];
const ports = [2379, 2380, 3379, 3380, 4379, 4380, 5379, 5380];

async function obstacle(): Promise<string | false> {
  const path = paths.find((one) => existsSync(join(root, one)));
  if (path !== undefined)
    return `${path} exists, and the README's commands would change it (scripts/clean.sh removes .quorate)`;
  for (const port of ports)
    if (!(await isPortFree(port)))
      return `port ${port} is in use by ${portHolder(port)?.command ?? "another process"}`;
  return false;
}

/** Commands use the Node that npm finds first; this process's own directory of it leads. */
const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"]}` };

test("the README's commands do what it says", { skip: await obstacle() }, async (t) => {
  const blocks = blocksOf(readme);
  assert.deepEqual(
    blocks.map((block) => block.kind),
    ["run", "run", "serve", "run"],
  );
  const [session, restart, member, greeting] = blocks.map((block) => block.command) as [
    string,
    string,
    string,
    string,
  ];
  const terminal = new Terminal(root, env);
  try {
    const said = await terminal.run(session);
    for (const id of ["1701f7e3861531d4", "6a58b5afdcebd95d", "84a1a2f39cda4029"])
      assert.match(said, new RegExp(`│ ${id} │ started │ infra`));
    assert.match(
      said,
      /^greeting\nhello again\ngreeting\nhello\n\{"header":\{"cluster_id":\d+.*"revision":3,/m,
    );
    assert.match(said, /"create_revision":2,"mod_revision":3,"version":2,/);
    const hashes = [...said.matchAll(/^│ https:\/\/127\.0\.0\.1:\d+ │ +(\d+) │ +3 │$/gm)].map(
      (match) => match[1],
    );
    assert.equal(hashes.length, 3, said);
    assert.equal(new Set(hashes).size, 1, said);

    if (findProgram("etcdctl") === undefined)
      t.diagnostic("etcdctl is not installed; only quoratectl was run");
    else {
      const again = await terminal.run(
        ["member list -w table", "get greeting -w json", "endpoint status -w json"]
          .map((rest) => `ETCDCTL_API=3 etcdctl ${rest}`)
          .join("\n"),
      );
      for (const id of ["1701f7e3861531d4", "6a58b5afdcebd95d", "84a1a2f39cda4029"])
        assert.match(again, new RegExp(`[|│] ${id} [|│] started [|│]`));
      // The cluster's id, c36a1e619c38211b, in decimal.
      assert.ok(again.includes(`"cluster_id":${0xc36a1e619c38211bn}`), again);
    }

    const restarted = await terminal.run(restart);
    assert.match(restarted, /^OK$/m);
    assert.match(
      restarted,
      /starting infra0[\s\S]*infra1 is running already|infra1 is running already[\s\S]*starting infra0/,
    );
    assert.ok(!existsSync(join(root, ".quorate/data")));

    const server = await terminal.serve(member);
    const hello = await terminal.run(greeting);
    assert.match(hello, /^OK\nhello\n\{"health":"true"/);
    process.kill(-server.child.pid!, "SIGINT");
    assert.equal(await server.exit, 0);
  } finally {
    await terminal.run("./scripts/clean.sh");
    await terminal.close();
    for (const path of paths) rmSync(join(root, path), { recursive: true, force: true });
  }
});
