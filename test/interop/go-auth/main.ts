/**
 * The command `./dev clients go-auth`: a program of Go's clientv3 with users and roles. It logs
 * in, renews its token after a new password, after the token's end and after a restart of the
 * member, and sees PermissionDenied in calls, locks and a running watch. Needs Go and its module
 * proxy; the first build takes a minute.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { AuthService } from "@quorate/proto";
import { readArguments } from "../../../scripts/dev/command-line.ts";
import { AuthClient, enableAuth, PASSWORD } from "../../support/auth.ts";
import { startCluster } from "../../support/cluster.ts";

/** A token that is not used for so long ends. */
const TTL_SECONDS = 2;

readArguments("./dev clients go-auth: Go's clientv3 with users and roles on a member", {});
const directory = mkdtempSync(join(tmpdir(), "go-auth-"));
const program = join(directory, "go-auth");
const env = { ...process.env, GOFLAGS: "-p=1" };
execFileSync("go", ["build", "-o", program, "."], { cwd: import.meta.dirname, env });
const flags = ["--bcrypt-cost=4", `--auth-token-ttl=${TTL_SECONDS}`];
const cluster = await startCluster({ size: 1, flags });
const [member] = cluster.members;
try {
  const admin = new AuthClient(member.clientAddress);
  await enableAuth(admin, { ann: [["app/", "app0", "readwrite"]] });
  const steps: Readonly<Record<string, () => Promise<unknown>>> = {
    passwd: async () => {
      await admin.login("root");
      const request = { name: "ann", password: PASSWORD };
      await admin.call(AuthService.methods.UserChangePassword, request);
    },
    expire: () => wait((TTL_SECONDS + 1) * 1000),
    restart: async () => {
      await member.kill();
      member.start();
      await member.waitReady();
    },
    revoke: async () => {
      await admin.login("root");
      await admin.call(AuthService.methods.UserRevokeRole, { name: "ann", role: "ann" });
    },
  };
  const child = spawn(program, [member.clientAddress, PASSWORD], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  let hasWatchEnded = false;
  for await (const line of createInterface(child.stdout)) {
    console.log(line);
    if (line === "the watch ended") hasWatchEnded = true;
    const name = /^do (\w+)$/.exec(line)?.[1];
    if (name === undefined) continue;
    await steps[name]();
    child.stdin.write("\n");
  }
  assert.deepEqual(await closed, [0, null]);
  assert.ok(hasWatchEnded);
  admin.close();
} finally {
  await cluster.destroy();
  rmSync(directory, { recursive: true });
}
