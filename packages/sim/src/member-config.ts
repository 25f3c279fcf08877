/** The flags that a member of a run is started with. */
import { loadConfig, type ServerConfig } from "@quorate/server";
import type { SimOptions } from "./base/options.ts";
import { urlOf } from "./peer-urls.ts";
import { batchOpsOf } from "./step-limits.ts";

/**
 * The configuration of a member, of the flags that the options come to.
 * @param cluster the value of --initial-cluster
 */
export async function configOf(
  options: SimOptions,
  name: string,
  url: string,
  cluster: string,
  state: "new" | "existing",
  isForced = false,
): Promise<ServerConfig> {
  const argv = [
    "--name",
    name,
    "--listen-peer-urls",
    url,
    "--initial-advertise-peer-urls",
    url,
    "--initial-cluster",
    cluster,
    "--initial-cluster-state",
    state,
    "--data-dir",
    "/data",
    "--heartbeat-interval",
    `${options.heartbeatMs}`,
    "--election-timeout",
    `${options.electionMs}`,
    `--pre-vote=${options.preVote}`,
    `--initial-election-tick-advance=${options.electionAdvance}`,
    "--snapshot-count",
    `${options.snapshotCount}`,
    "--snapshot-catchup-entries",
    `${options.catchUpEntries}`,
    "--max-wals",
    `${options.maxWals}`,
    "--backend-batch-interval",
    `${options.batchIntervalMs}ms`,
    "--backend-batch-limit",
    `${batchOpsOf(options)}`,
    "--compaction-batch-limit",
    `${options.compactionBatch}`,
    ...(options.quotaBytes > 0 ? ["--quota-backend-bytes", `${options.quotaBytes}`] : []),
    `--strict-reconfig-check=${options.strictReconfiguration}`,
    "--max-learners",
    `${options.maxLearners}`,
    `--auto-promote=${options.autoPromote}`,
    `--force-new-cluster=${isForced}`,
    "--watch-progress-notify-interval",
    `${options.progressNotifyMs}ms`,
    `--quota-auto-disarm=${options.quotaAutoDisarm}`,
    // A member among those of etcd does not do it, whatever it was told.
    `--self-heal=${options.selfHeal || options.etcdMembers > 0}`,
    "--corrupt-check-time",
    `${options.corruptCheckMs}ms`,
    "--compact-hash-check-time",
    `${options.compactHashCheckMs || 60_000}ms`,
    "--feature-gates",
    `CompactHashCheck=${options.compactHashCheckMs > 0},InitialCorruptCheck=${options.initialCorruptCheck}`,
  ];
  // A look at the disk ten times a second would be most of what happens in a quarter of an hour.
  if (options.theme === "leases") argv.push("--slow-fsync-handover", "0");
  // Nothing is opened: the names of certificates come with the simulator's calls.
  const certificates = ["cert-file", "key-file", "trusted-ca-file"].flatMap((flag) => [
    `--${flag}`,
    "/nowhere.pem",
  ]);
  if (options.users)
    argv.push(
      ...certificates,
      "--client-cert-auth",
      "--bcrypt-cost",
      "4",
      "--auth-token-ttl",
      `${options.tokenTtlSeconds}`,
    );
  const invocation = await loadConfig(argv, {}, () => "");
  if (invocation.kind !== "run") throw new Error("the flags start no member");
  return invocation.config;
}

/** Those of the members that form the cluster. */
export function configsOf(options: SimOptions): Promise<ServerConfig[]> {
  const names = Array.from({ length: options.members }, (_, i) => `m${i}`);
  const cluster = names.map((name, i) => `${name}=${urlOf(i)}`).join(",");
  return Promise.all(names.map((name, i) => configOf(options, name, urlOf(i), cluster, "new")));
}
