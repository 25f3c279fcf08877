/** The units pass systemd's own check, and a member reports its state to a service manager. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { quorate, skipWithout } from "../support/executables.ts";
import { TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { scratchDirectory } from "../support/scratch.ts";
import { until } from "../support/until.ts";

const units = join(import.meta.dirname, "../../deploy/systemd");

function scratch(t: { after(task: () => void): void }): string {
  const dir = scratchDirectory("quorate-systemd-", t);
  return dir;
}

test("systemd-analyze verify has nothing to say of the units", {
  skip: skipWithout("systemd-analyze", "Debian: apt-get install systemd"),
}, (t) => {
  const root = scratch(t);
  // The units name programs of an installed release; the check wants to see some.
  const names = readdirSync(units).filter(
    (name) => name.endsWith(".service") || name.endsWith(".timer"),
  );
  assert.deepEqual(names.sort(), [
    "quorate-backup.service",
    "quorate-backup.timer",
    "quorate.service",
  ]);
  for (const name of names) {
    const text = readFileSync(join(units, name), "utf8").replaceAll(
      /\/opt\/quorate\/bin\/(\w+)/g,
      join(import.meta.dirname, "../../bin/$1.js"),
    );
    writeFileSync(join(root, name), text);
  }
  const { status, stdout, stderr } = spawnSync(
    "systemd-analyze",
    ["verify", "--man=no", ...names.map((name) => join(root, name))],
    {
      encoding: "utf8",
    },
  );
  assert.equal(`${stdout}${stderr}`, "");
  assert.equal(status, 0);
});

test("the environment file starts a member: every variable in it is known", () => {
  const help = execFileSync(process.execPath, [quorate.command[1], "--help"], {
    encoding: "utf8",
  });
  for (const line of readFileSync(join(units, "quorate.env"), "utf8").split("\n")) {
    const name = /^ETCD_([A-Z_]+)=/.exec(line)?.[1];
    if (name === undefined) continue;
    const flag = `--${name.toLowerCase().replaceAll("_", "-")}`;
    assert.match(help, new RegExp(`${flag}\\b`), flag);
  }
});

test("a member says that it is ready, feeds the watchdog, and reports reloads and its end", async (t) => {
  const dir = scratch(t);
  const heard = join(dir, "heard");
  const bin = join(dir, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "systemd-notify"), `#!/bin/sh\necho "$*" >> ${heard}\n`);
  chmodSync(join(bin, "systemd-notify"), 0o755);
  const [clientPort, peerPort] = await freePorts(2);
  const clientUrl = `http://127.0.0.1:${clientPort}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const member = new TestMember({
    name: "solo",
    command: quorate.command,
    flags: [
      "--name",
      "solo",
      "--data-dir",
      join(dir, "data"),
      "--initial-cluster",
      `solo=${peerUrl}`,
      "--listen-client-urls",
      clientUrl,
      "--advertise-client-urls",
      clientUrl,
      "--listen-peer-urls",
      peerUrl,
      "--initial-advertise-peer-urls",
      peerUrl,
    ],
    env: {
      NOTIFY_SOCKET: join(dir, "socket"),
      WATCHDOG_USEC: "400000",
      PATH: `${bin}:${process.env["PATH"]}`,
    },
    clientUrl,
    peerUrl,
    dataDir: join(dir, "data"),
    logFile: join(dir, "member.log"),
    identity: {},
  });
  t.after(() => member.kill());
  const count = (words: string): number =>
    existsSync(heard) ? readFileSync(heard, "utf8").split(words).length - 1 : 0;
  member.start();
  await until("ready", () => count(`--pid=${member.pid} READY=1`) === 1);
  await until("fed twice", () => count("WATCHDOG=1") >= 2);
  member.signal("SIGHUP");
  await until(
    "reloaded",
    () => count("RELOADING=1 MONOTONIC_USEC=") === 1 && count("READY=1") === 2,
  );
  assert.deepEqual(await member.terminate(), { code: 0, signal: null });
  await until("stopping", () => count("STOPPING=1") === 1);
});
