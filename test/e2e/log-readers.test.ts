/**
 * What reads a member's log stops, or is gone: the member serves on, holds and counts lines within
 * a bound, and ends in order. By a pipe as in a container, and by a socket as journald's.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connect } from "@quorate/client/node";
import { request } from "undici";
import { endsWith } from "../support/children.ts";
import { quorate } from "../support/executables.ts";
import { freePorts } from "../support/ports.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";

/** More lines than a pipe or a socket holds by itself. */
const PUTS = 4000;

interface Watched {
  readonly member: ChildProcess;
  readonly reader: ChildProcess;
  readonly exited: Promise<number | null>;
  log(): string;
  puts(count: number): Promise<void>;
  metric(name: string): Promise<number>;
}

async function start(t: TestContext, kind: "pipe" | "socket"): Promise<Watched> {
  const dir = scratchDirectory("quorate-readers-", t);
  const [file, fifo] = [join(dir, "log"), join(dir, "fifo")];
  const out = openSync(file, "w");
  if (kind === "pipe") execFileSync("mkfifo", [fifo]);
  const reader = endsWith(
    spawn("cat", kind === "pipe" ? [fifo] : [], { stdio: ["pipe", out, "inherit"] }),
    t,
  );
  closeSync(out);
  const end = kind === "pipe" ? openSync(fifo, "w") : reader.stdin!;
  reader.stdin!.on("error", () => {});
  const [client, peer] = await freePorts(2);
  const url = `http://127.0.0.1:${client}`;
  const member = endsWith(
    spawn(
      quorate.command[0],
      [
        ...quorate.command.slice(1),
        `--data-dir=${join(dir, "data")}`,
        "--name=m0",
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        `--listen-peer-urls=http://127.0.0.1:${peer}`,
        `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
        `--initial-cluster=m0=http://127.0.0.1:${peer}`,
        // Nearly each put is a line.
        "--warning-apply-duration=1ns",
      ],
      { stdio: ["ignore", end, end] },
    ),
    t,
  );
  if (typeof end === "number") closeSync(end);
  else end.destroy();
  const exited = new Promise<number | null>((resolve) => member.once("exit", resolve));
  const log = (): string => readFileSync(file, "utf8");
  await until("the member serves", () => {
    if (member.exitCode !== null) throw new Error(log());
    return /ready to serve client requests/.test(log());
  });
  const puts = async (count: number): Promise<void> => {
    const kv = connect({ endpoints: [url], timeoutMs: 120_000 });
    let next = 0;
    const work = async (): Promise<void> => {
      while (next++ < count) await kv.put("k", String(next));
    };
    await Promise.all(Array.from({ length: 20 }, work));
    await kv.close();
  };
  const metric = async (name: string): Promise<number> => {
    const text = await (await request(`${url}/metrics`)).body.text();
    const found = new RegExp(`^${name} (\\S+)$`, "m").exec(text);
    assert.ok(found, `no ${name}`);
    return Number(found[1]);
  };
  return { member, reader, exited, log, puts, metric };
}

for (const kind of ["pipe", "socket"] as const) {
  test(`${kind}: a reader that stops does not stop the member, and gets the lines later`, async (t) => {
    const { member, reader, exited, log, puts, metric } = await start(t, kind);
    reader.kill("SIGSTOP");
    await puts(PUTS);
    const waiting = await metric("quorate_log_queue_bytes");
    assert.ok(waiting > 0 && waiting <= 1024 * 1024, `${waiting} bytes wait`);
    reader.kill("SIGCONT");
    await until("all lines are read", async () => (await metric("quorate_log_queue_bytes")) === 0);
    const dropped = await metric("quorate_log_dropped_lines_total");
    assert.equal(/lines of the log were dropped/.test(log()), dropped > 0);
    for (const line of log().trimEnd().split("\n")) JSON.parse(line);
    member.kill("SIGTERM");
    assert.equal(await exited, 0);
    await until("the reader has ended", () => reader.exitCode !== null);
    assert.match(log(), /received signal; shutting down/);
  });

  test(`${kind}: a member ends in order while its reader stands still`, async (t) => {
    const { member, reader, exited, puts, metric } = await start(t, kind);
    reader.kill("SIGSTOP");
    await puts(PUTS);
    assert.ok((await metric("quorate_log_queue_bytes")) > 0);
    member.kill("SIGTERM");
    assert.equal(await exited, 0);
    reader.kill("SIGCONT");
  });

  test(`${kind}: a member serves on, and ends in order, when its reader is gone`, async (t) => {
    const { member, reader, exited, puts, metric } = await start(t, kind);
    reader.kill("SIGKILL");
    await until("the reader has ended", () => reader.signalCode !== null);
    await puts(PUTS);
    assert.ok((await metric("quorate_log_queue_bytes")) > 0);
    member.kill("SIGTERM");
    assert.equal(await exited, 0);
  });
}
