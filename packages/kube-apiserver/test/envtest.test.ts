/** The files for KUBEBUILDER_ASSETS: both servers by name, and none that outlives its parent. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { freePorts } from "../../../test/support/ports.ts";
import { until } from "../../../test/support/until.ts";
import { envtestAssets } from "./envtest-assets.ts";

const home = mkdtempSync(join(tmpdir(), "quorate-envtest-"));
after(() => rmSync(home, { recursive: true, force: true }));

const quorate = join(import.meta.dirname, "../../../bin/quorate.js");

test("`quorate envtest` makes one file with both names, once", () => {
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [quorate, "envtest", "--dir", home, ...args], {
      encoding: "utf8",
    });
  const path = run("--path").trimEnd();
  assert.equal(run(), `export KUBEBUILDER_ASSETS='${path}'\n`);
  const [server, etcd] = ["kube-apiserver", "etcd"].map((name) => statSync(join(path, name)));
  assert.equal(server.ino, etcd.ino);
  assert.equal(run("--path").trimEnd(), path);
  assert.equal(statSync(join(path, "etcd")).ino, etcd.ino);
  assert.deepEqual(readdirSync(home).length, 1);
  const version = spawnSync(join(path, "etcd"), ["--version"], { encoding: "utf8" });
  assert.match(version.stdout, /^etcd Version: /m);
  const api = spawnSync(join(path, "kube-apiserver"), ["--version"], { encoding: "utf8" });
  assert.match(api.stdout, /^Kubernetes v1\.\d+\.\d+/);
  const help = spawnSync(join(path, "kube-apiserver"), ["--help"], { encoding: "utf8" });
  assert.match(help.stdout, /--etcd-servers/);
});

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
};

test("both servers end when the process that started them is killed", {
  skip: process.platform === "linux" ? false : "it reads /proc",
}, async () => {
  const assets = envtestAssets(home);
  const [client, peer, secure] = await freePorts(3);
  const [clientUrl, peerUrl] = [client, peer].map((port) => `http://127.0.0.1:${port}`);
  const etcd = [
    join(assets, "etcd"),
    `--data-dir=${join(home, "data")}`,
    `--listen-client-urls=${clientUrl}`,
    `--advertise-client-urls=${clientUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    "--unsafe-no-fsync=true",
  ];
  const server = [
    join(assets, "kube-apiserver"),
    `--etcd-servers=${clientUrl}`,
    `--cert-dir=${join(home, "certs")}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${secure}`,
    // kube-apiserver's, without effect here.
    "--allow-privileged=true",
    "--feature-gates=A=true",
  ];
  const suite = `
    const { spawn } = require("node:child_process");
    for (const [program, ...args] of ${JSON.stringify([etcd, server])}) {
      const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
      console.log(child.pid);
      child.stderr.on("data", (text) => process.stderr.write(text));
    }`;
  const parent = spawn(process.execPath, ["-e", suite], { stdio: ["ignore", "pipe", "pipe"] });
  let [printed, log] = ["", ""];
  parent.stdout.on("data", (text) => {
    printed += text;
  });
  parent.stderr.on("data", (text) => {
    log += text;
  });
  await until("the API server serves", () => /ready to serve client requests.*https:/.test(log));
  assert.match(log, /option has no effect.*allow-privileged/);
  assert.match(log, /option has no effect.*feature-gates=A/);
  const pids = printed.trim().split("\n").map(Number);
  assert.deepEqual(pids.map(alive), [true, true]);
  parent.kill("SIGKILL");
  await until("both have ended", () => !pids.some(alive));
});
