/** The programs of Kubernetes, where they are installed, and servers for kubectl. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { findProgram } from "../../../../../test/support/executables.ts";
import { kubeApiFlags, writeKubeApiFiles } from "../../support/kube-flags.ts";

/** KUBECTL names another one than that on PATH. */
export const kubectl: string | undefined = process.env["KUBECTL"] ?? findProgram("kubectl");

/** The minor release of a kubectl, such as 36; undefined if it does not print one. */
export function minorOf(program: string): number | undefined {
  const { stdout } = spawnSync(program, ["version", "--client", "-o", "json"], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: tmpdir() },
  });
  try {
    const { clientVersion } = JSON.parse(stdout) as {
      clientVersion: { minor: string; gitVersion: string };
    };
    // A kubectl that was built without its version is the one that the transcript is of.
    if (clientVersion.gitVersion.includes("$Format")) return 36;
    return Number.parseInt(clientVersion.minor, 10);
  } catch {
    return undefined;
  }
}

/** A server with a kubeconfig. */
export interface Served extends AsyncDisposable {
  readonly kubeconfig: string;
}

/** This repository's API server. */
export async function serveOurs(): Promise<Served> {
  const api = await startApiServer();
  return { kubeconfig: api.kubeconfigPath, [Symbol.asyncDispose]: () => api.stop() };
}

const READY_LIMIT_MS = 60_000;

/** Kubernetes' own API server on etcd: KUBE_APISERVER and ETCD, or those on PATH. */
export async function serveKubernetes(program: string): Promise<Served> {
  const directory = mkdtempSync(join(tmpdir(), "kube-apiserver-"));
  const kubeconfig = join(directory, "kubeconfig");
  const [etcdPort, peerPort, port] = [21379, 21380, 21443];
  writeKubeApiFiles(directory, "kubernetes-admin", "token");
  writeFileSync(kubeconfig, kubeconfigOf(port));
  const etcd = process.env["ETCD"] ?? findProgram("etcd") ?? "etcd";
  const children = [
    spawn(etcd, etcdArgs(directory, etcdPort, peerPort), { stdio: "ignore" }),
    spawn(program, serverArgs(directory, etcdPort, port), { stdio: "ignore" }),
  ];
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) {
      const ended = new Promise((resolve) => child.once("close", resolve));
      if (child.kill("SIGKILL")) await ended;
    }
    rmSync(directory, { recursive: true });
  };
  try {
    await ready(kubeconfig);
  } catch (error) {
    await stop();
    throw error;
  }
  return { kubeconfig, [Symbol.asyncDispose]: stop };
}

function etcdArgs(directory: string, port: number, peerPort: number): string[] {
  const url = `http://127.0.0.1:${port}`;
  const peers = `http://127.0.0.1:${peerPort}`;
  return [
    "--data-dir",
    join(directory, "etcd"),
    "--listen-client-urls",
    url,
    "--advertise-client-urls",
    url,
    "--listen-peer-urls",
    peers,
  ];
}

function serverArgs(directory: string, etcdPort: number, port: number): string[] {
  return [
    ...kubeApiFlags(directory, `http://127.0.0.1:${etcdPort}`, port),
    // Machines without a network have no other address.
    "--advertise-address=10.1.1.1",
    "--endpoint-reconciler-type=none",
  ];
}

function kubeconfigOf(port: number): string {
  return `apiVersion: v1
kind: Config
clusters:
- name: reference
  cluster: {server: "https://127.0.0.1:${port}", insecure-skip-tls-verify: true}
users:
- name: admin
  user: {token: token}
contexts:
- name: reference
  context: {cluster: reference, user: admin}
current-context: reference
`;
}

async function ready(kubeconfig: string): Promise<void> {
  const end = performance.now() + READY_LIMIT_MS;
  const args = ["--kubeconfig", kubeconfig, "get", "namespaces", "default"];
  while (spawnSync(kubectl!, args, { stdio: "ignore" }).status !== 0) {
    if (performance.now() > end) throw new Error("kube-apiserver is not ready");
    await delay(500);
  }
}
