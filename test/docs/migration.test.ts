/** docs/migration.md, executed: its blocks marked "sh run" and "sh serve", in order, in an empty folder and on free ports. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { skipWithoutEtcd, skipWithoutEtcdctl } from "../support/executables.ts";
import { freePorts } from "../support/ports.ts";

const root = join(import.meta.dirname, "../..");
const text = readFileSync(join(root, "docs/migration.md"), "utf8");
const limitMs = 60_000;

test("the commands of the migration guide do what it says, there and back", { skip: skipWithoutEtcd || skipWithoutEtcdctl }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-migration-"));
  const servers: { child: ChildProcess; exit: Promise<unknown> }[] = [];
  try {
    // Our programs under their names, as an installation puts them on PATH.
    mkdirSync(join(dir, "bin"));
    for (const name of ["quorate", "quoratectl", "quorateutl"]) {
      writeFileSync(join(dir, "bin", name), `#!/bin/sh\nexec ${process.execPath} ${join(root, "bin", `${name}.js`)} "$@"\n`);
      chmodSync(join(dir, "bin", name), 0o755);
    }
    const env = { ...process.env, ETCDCTL_API: "3", PATH: `${join(dir, "bin")}:${process.env["PATH"]}` };
    const documented = [...new Set([...text.matchAll(/127\.0\.0\.1:(\d+)/g)].map((match) => match[1]!))];
    const ports = await freePorts(documented.length);
    const blocks = [...text.matchAll(/^```sh (run|serve)\n(.*?)^```$/gms)].map((match) => ({
      kind: match[1]!,
      command: match[2]!.replace(/127\.0\.0\.1:(\d+)/g, (_, port: string) => `127.0.0.1:${ports[documented.indexOf(port)]}`),
    }));
    const outputs: string[] = [];
    for (const { kind, command } of blocks) {
      if (kind === "serve") {
        servers.push(await serve(command, dir, env));
        continue;
      }
      outputs.push(
        await new Promise<string>((resolve, reject) => {
          execFile("bash", ["-euo", "pipefail", "-c", command], { cwd: dir, env, timeout: limitMs }, (error, stdout, stderr) =>
            error === null ? resolve(stdout) : reject(new Error(`${command}\n${error.message}\n${stdout}\n${stderr}`)),
          );
        }),
      );
    }
    const hashes = outputs.flatMap((output) => [...output.matchAll(/^http:\S+, (\d+), \d+$/gm)].map((match) => match[1]));
    assert.equal(hashes.length, 4, outputs.join("\n"));
    assert.equal(hashes[1], hashes[0], "Quorate has the hash that etcd had");
    assert.equal(hashes[3], hashes[2], "etcd has the hash that Quorate had");
    assert.match(outputs.join(""), /Restored from-etcd\.db into m1\.quorate: revision 3, 1 keys; member [0-9a-f]+ \(m1\) of 1\n/);
    assert.match(outputs.join(""), /^greeting\nhello\nOK$/m);
    assert.equal(outputs.at(-1)!.split("\n").slice(-3).join("\n"), "greeting\nhello from Quorate\n");
  } finally {
    for (const { child } of servers) process.kill(-child.pid!, "SIGKILL");
    await Promise.all(servers.map(({ exit }) => exit));
    rmSync(dir, { recursive: true, force: true });
  }
});

/** Starts a block that stays; resolves when it says that it serves. */
async function serve(command: string, cwd: string, env: NodeJS.ProcessEnv): Promise<{ child: ChildProcess; exit: Promise<unknown> }> {
  const child = spawn("bash", ["-c", command], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const exit = new Promise((resolve) => child.on("exit", resolve));
  let output = "";
  const timer = setTimeout(() => process.kill(-child.pid!, "SIGKILL"), limitMs);
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes("ready to serve client requests")) resolve();
      });
    }
    void exit.then(() => reject(new Error(`${command}ended:\n${output}`)));
  });
  clearTimeout(timer);
  return { child, exit };
}
