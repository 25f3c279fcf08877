/** A kube-apiserver of its own (on PATH), for comparisons. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { kubeApiFlags, writeKubeApiFiles } from "../support/kube-flags.ts";
import { type ApiAccess, exchange } from "./rest/exchange.ts";

const START_LIMIT_MS = 240_000;
const ADMIN_TOKEN = "admin-token";

/**
 * Runs `body` with a new kube-apiserver; its user "admin" is in system:masters. Rejects where it
 * does not start.
 * @param etcd URL of an empty etcd or member
 * @param more flags, made once the directory of its files exists
 */
export async function withKubeApiserver<T>(
  etcd: string,
  body: (access: ApiAccess, dir: string) => Promise<T>,
  more: (dir: string) => readonly string[] = () => [],
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "kube-apiserver-"));
  writeKubeApiFiles(dir, "admin", ADMIN_TOKEN);
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const flags = [...kubeApiFlags(dir, etcd, port), "--advertise-address=127.0.0.1", ...more(dir)];
  const child = spawn("kube-apiserver", flags, { stdio: "ignore" });
  const ended = new Promise<never>((_, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`kube-apiserver has ended: ${code}`)));
  });
  ended.catch(() => {});
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const access = { url: `https://127.0.0.1:${port}`, headers };
  try {
    await Promise.race([ended, ready(access)]);
    return await Promise.race([ended, body(access, dir)]);
  } finally {
    child.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  }
}

async function ready(access: ApiAccess): Promise<void> {
  const endMs = performance.now() + START_LIMIT_MS;
  while (performance.now() < endMs) {
    const health = { method: "GET", path: "/readyz" };
    const answer = await exchange(access, health).catch(() => undefined);
    if (answer?.status === 200) return;
    await delay(300);
  }
  throw new Error("kube-apiserver is not ready");
}
