/** Runs Debian's etcdctl against a cluster under test. */
import { execFile } from "node:child_process";
import type { TestCluster } from "./cluster.ts";

/** What etcdctl printed and how it left. */
export interface EtcdctlResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** Nothing takes as long, on a machine that has much else to do. */
const limitMs = 60_000;

/**
 * An etcdctl that talks to all members of `cluster`, or to those of `endpoints`. It never throws
 * for a failing command.
 */
export function etcdctlFor(cluster: TestCluster, endpoints: readonly string[] = cluster.endpoints) {
  const { certs } = cluster;
  const common = [
    `--endpoints=${endpoints.join(",")}`,
    // What it takes of itself, 5 s and 2 s, is too little for busy machines.
    "--command-timeout=30s",
    "--dial-timeout=20s",
    ...(certs === undefined
      ? []
      : [`--cacert=${certs.ca}`, `--cert=${certs.client}`, `--key=${certs.clientKey}`]),
  ];
  return (args: readonly string[], input?: string): Promise<EtcdctlResult> =>
    new Promise((resolve) => {
      const child = execFile(
        "etcdctl",
        [...common, ...args],
        { env: { ...process.env, ETCDCTL_API: "3" }, timeout: limitMs },
        (error, stdout, stderr) =>
          resolve({
            stdout,
            stderr,
            code: error === null ? 0 : typeof error.code === "number" ? error.code : -1,
          }),
      );
      // One that refuses its command line does not read on.
      child.stdin!.on("error", () => {});
      child.stdin!.end(input ?? "");
    });
}
