/** The local cluster for etcdctl, quoratectl and client libraries: a file that a shell sources. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { certificateFiles } from "../certs.ts";
import { type ClusterPlan, certsDir, clientUrl } from "./layout.ts";

/** DIR/env, of the cluster in DIR. */
export const clientEnvFile = (plan: ClusterPlan): string => join(plan.dir, "env");

/** Writes the ETCDCTL_* variables of the cluster, with absolute paths. Throws an Error of fs. */
export function writeClientEnv(plan: ClusterPlan): void {
  const { ca, client, clientKey } = certificateFiles(certsDir(plan));
  const variables = {
    ETCDCTL_ENDPOINTS: plan.members.map(clientUrl).join(","),
    ETCDCTL_CACERT: ca,
    ETCDCTL_CERT: client,
    ETCDCTL_KEY: clientKey,
  };
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quoted(value)}`);
  writeFileSync(clientEnvFile(plan), `${lines.join("\n")}\n`, { mode: 0o600 });
}

/** A word as a shell takes it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
