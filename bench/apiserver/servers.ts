/** API servers in processes of their own, ours and Kubernetes', each on a member of ours. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, fetch } from "undici";
import { startCluster } from "../../test/support/cluster.ts";
import { findProgram, quorate } from "../../test/support/executables.ts";
import {
  kubeApiFlags,
  sharedKubeApiFlags,
  writeKubeApiFiles,
} from "../../test/support/kube-apiserver.ts";
import { freePorts } from "../../test/support/ports.ts";
import { cpuSeconds } from "../usage.ts";

export type ApiProgram = "quorate" | "kube-apiserver";

/** The token of a user in the group system:masters. */
export const TOKEN = "bench-token";
const READY_LIMIT_MS = 180_000;

export interface ApiServer {
  readonly url: string;
  readonly pid: number;
  /** From the start of the process until /readyz responds with 200. */
  readonly startMs: number;
  readonly startCpuSeconds: number;
  close(): Promise<void>;
}

/** The command of a program; undefined where it is not on PATH. */
function commandOf(program: ApiProgram): readonly string[] | undefined {
  if (program === "quorate") return [...quorate.command, "apiserver"];
  const path = findProgram("kube-apiserver");
  return path === undefined ? undefined : [path];
}

/** Whether the program is there. */
export function isInstalled(program: ApiProgram): boolean {
  return commandOf(program) !== undefined;
}

function flagsOf(program: ApiProgram, dir: string, endpoint: string, port: number): string[] {
  if (program === "quorate")
    return [...sharedKubeApiFlags(dir, endpoint, port), `--data-dir=${join(dir, "data")}`];
  return [
    ...kubeApiFlags(dir, endpoint, port),
    "--advertise-address=127.0.0.1",
    "--disable-admission-plugins=ServiceAccount",
    "--profiling=false",
  ];
}

/** Starts a member and the API server on it. Rejects where it is not ready in three minutes. */
export async function startApiProgram(program: ApiProgram): Promise<ApiServer> {
  const cluster = await startCluster({ size: 1, flags: ["--quota-backend-bytes=8589934592"] });
  const dir = mkdtempSync(join(tmpdir(), "quorate-bench-api-"));
  writeKubeApiFiles(dir, "bench", TOKEN);
  const [port] = await freePorts(1);
  const flags = flagsOf(program, dir, cluster.members[0].clientUrl, port);
  const [command, ...first] = commandOf(program)!;
  const startedMs = performance.now();
  const child: ChildProcess = spawn(command, [...first, ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr!.on("data", (text: Buffer) => {
    log = (log + text.toString()).slice(-4000);
  });
  const exit = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const close = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exit;
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
