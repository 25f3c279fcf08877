/** API servers in processes of their own, ours and Kubernetes', each on a member of ours. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, fetch } from "undici";
import { cpuSeconds } from "../../../../bench/usage.ts";
import { startCluster } from "../../../../test/support/cluster.ts";
import { findProgram } from "../../../../test/support/executables.ts";
import { freePorts } from "../../../../test/support/ports.ts";
import { kubeApiFlags, sharedKubeApiFlags, writeKubeApiFiles } from "../support/kube-flags.ts";

/** "quorate, own member" has its store in the same process, the others have a member's. */
export type ApiProgram = "quorate" | "quorate, own member" | "kube-apiserver";

/** The token of a user in the group system:masters. */
export const TOKEN = "bench-token";
const READY_LIMIT_MS = 180_000;
const STOP_LIMIT_MS = 15_000;

export interface ApiServer {
  readonly url: string;
  readonly pid: number;
  /** From the start of the process until /readyz responds with 200. */
  readonly startMs: number;
  readonly startCpuSeconds: number;
  close(): Promise<void>;
}

/** Where `quorate` is installed as by a release. */
export interface Installed {
  readonly binDir: string;
  /** Of the compiled code that the programs keep. */
  readonly cacheDir: string;
}

/** Whether the program is there. */
export function isInstalled(program: ApiProgram): boolean {
  return program !== "kube-apiserver" || findProgram(program) !== undefined;
}

function commandOf(program: ApiProgram, { binDir }: Installed): readonly string[] {
  if (program === "kube-apiserver") return [findProgram(program)!];
  return [join(binDir, "quorate"), "apiserver"];
}

function flagsOf(program: ApiProgram, dir: string, endpoint: string, port: number): string[] {
  const admission = "--disable-admission-plugins=ServiceAccount";
  if (program === "kube-apiserver")
    return [
      ...kubeApiFlags(dir, endpoint, port),
      "--advertise-address=127.0.0.1",
      admission,
      "--profiling=false",
    ];
  const shared = sharedKubeApiFlags(dir, endpoint, port);
  const own = program === "quorate" ? shared : shared.filter((it) => !it.startsWith("--etcd-"));
  return [...own, admission, `--data-dir=${join(dir, "data")}`];
}

/** Starts a member and the API server on it. Rejects where it is not ready in three minutes. */
export async function startApiProgram(
  program: ApiProgram,
  installed: Installed,
): Promise<ApiServer> {
  const cluster = await startCluster({ size: 1, flags: ["--quota-backend-bytes=8589934592"] });
  const dir = mkdtempSync(join(tmpdir(), "quorate-bench-api-"));
  writeKubeApiFiles(dir, "bench", TOKEN);
  const [port] = await freePorts(1);
  const flags = flagsOf(program, dir, cluster.members[0].clientUrl, port);
  const [command, ...first] = commandOf(program, installed);
  const startedMs = performance.now();
  const child: ChildProcess = spawn(command, [...first, ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, XDG_CACHE_HOME: installed.cacheDir },
  });
  let log = "";
  child.stderr!.on("data", (text: Buffer) => {
    log = (log + text.toString()).slice(-4000);
  });
  const exit = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const close = async (): Promise<void> => {
    child.kill("SIGTERM");
    const force = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
    await exit;
    clearTimeout(force);
    await cluster.destroy();
    rmSync(dir, { recursive: true, force: true });
  };
  const url = `https://127.0.0.1:${port}`;
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  const isReady = async (): Promise<boolean> => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const response = await fetch(`${url}/readyz`, { dispatcher, headers }).catch(() => undefined);
    await response?.text();
    return response?.status === 200;
  };
  while (!(await isReady())) {
    if (child.exitCode !== null || performance.now() - startedMs > READY_LIMIT_MS) {
      await close();
      throw new Error(`${program} is not ready:\n${log}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const startMs = performance.now() - startedMs;
  await dispatcher.close();
  return { url, pid: child.pid!, startMs, startCpuSeconds: cpuSeconds([child.pid!]), close };
}
