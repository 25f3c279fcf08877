/**
 * quoratectl top against a real member: one frame in a pipe, and the live view on a real terminal,
 * which it leaves as it was.
 */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, suite, type TestContext, test } from "node:test";
import { connect } from "@quorate/client/node";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { skipWithout } from "../support/executables.ts";
import { runQuoratectl } from "../support/quoratectl.ts";
import { until } from "../support/until.ts";

const skipWithoutScript = skipWithout("script", "Debian: apt-get install bsdutils");

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";

suite("top", () => {
  let cluster: TestCluster;
  before(async () => {
    cluster = await startCluster({ size: 1 });
  });
  after(() => cluster?.destroy());

  test("--once prints one frame with what was done meanwhile", async () => {
    const client = connect({ endpoints: cluster.endpoints });
    let over = false;
    const writing = (async () => {
      while (!over) await client.put("k", "v");
    })();
    try {
      const { code, stdout, stderr } = await runQuoratectl(cluster.endpoints, ["top", "--once"]);
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(
        stdout,
        /^quoratectl top {2}1 member {2}m0 leads in term \d+ {2}revision [\d,]+ {2}\d{4}-/,
      );
      assert.match(stdout, /\n[1-9][\d,.]* puts\/s /);
      // Latencies of requests and of the log's disk were counted, and the process is known.
      const time = "[\\d.]+ m?s";
      const row = `m0 +leader +[\\d,]+ +[\\d,.]+ +[\\d,.]+ +${time} +${time} +${time} +\\d+% +\\d+ MB +\\d+% +[1-9]\\d* +0 +3\\.7\\.0`;
      assert.match(stdout, new RegExp(`\n${row}\n`));
      assert.match(stdout, /UPTIME\nm0 +\d+ MB +\d+% +\d+\w\n/);
    } finally {
      over = true;
      await writing;
      client.close();
    }
  });

  /** The program on a terminal of its own; what it has drawn so far is in `drawn`. */
  function onTerminal(t: TestContext): { child: ChildProcess; drawn: () => string } {
    const program = join(import.meta.dirname, "../../bin/quoratectl.js");
    const top = `${process.execPath} ${program} top --endpoints=${cluster.endpoints[0]} --interval=200ms`;
    // The shell stays until it has a line to read: script may drop what its last process wrote just
    // before it ended.
    const command = `stty columns 100 rows 30; ${top}; code=$?; read line; exit $code`;
    const child = spawn("script", ["-qfec", command, "/dev/null"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, TERM: "xterm" },
    });
    t.after(() => child.kill("SIGKILL"));
    let drawn = "";
    child.stdout.on("data", (piece: Buffer) => {
      drawn += piece.toString();
    });
    return { child, drawn: () => drawn };
  }

  for (const [name, end] of [
    ["q", (child: ChildProcess) => child.stdin!.write("q")],
    ["control-C", (child: ChildProcess) => child.stdin!.write("\u0003")],
  ] as const) {
    test(`on a terminal it is live until ${name}, and leaves it as it was`, {
      skip: skipWithoutScript,
    }, async (t) => {
      const { child, drawn } = onTerminal(t);
      await until("members are drawn, twice", () => drawn().split("m0 leads in term").length > 2);
      end(child);
      await until("it has left its screen", () => drawn().endsWith(LEAVE));
      // A line is a line again, so the terminal is no longer in raw mode.
      child.stdin!.write("\n");
      const [code] = await once(child, "close");
      assert.equal(code, 0);
      assert.ok(drawn().startsWith(ENTER), JSON.stringify(drawn().slice(0, 60)));
      assert.ok(drawn().includes("m0 leads in term"));
    });
  }
});
