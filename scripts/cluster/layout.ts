/**
 * The local cluster on paper: who its members are, where their files lie, and with which flags they
 * start.
 *
 *   DIR/certs/          certificates (see scripts/certs.ts)
 *   DIR/data/NAME/      a member's data directory
 *   DIR/logs/NAME.log   what it wrote to standard output and error
 *   DIR/pids/NAME.pid   its process id
 *   DIR/env             variables of etcdctl and quoratectl (see client-env.ts)
 *
 * DIR is .quorate in the repository, and .quorate in the home directory where quorate-cluster is
 * installed.
 */
import { join } from "node:path";
import { certificateFiles, tlsFlags } from "../certs.ts";
import { commandOf } from "./programs.ts";

/** One member: its name and the ports it listens on, on 127.0.0.1. */
export interface MemberPlan {
  readonly name: string;
  readonly clientPort: number;
  readonly peerPort: number;
}

/** A cluster of such members, below one directory. */
export interface ClusterPlan {
  /** Absolute. */
  readonly dir: string;
  readonly token: string;
  readonly members: readonly MemberPlan[];
  /** The program and its first arguments; the flags follow. */
  readonly command: readonly string[];
}

/** The cluster that scripts/start-all.sh starts, with its files in `dir` (absolute). */
export function localCluster(
  dir: string,
  command: readonly string[] = commandOf("quorate"),
): ClusterPlan {
  return {
    dir,
    token: "etcd-cluster-1",
    members: [
      { name: "infra0", clientPort: 3379, peerPort: 3380 },
      { name: "infra1", clientPort: 4379, peerPort: 4380 },
      { name: "infra2", clientPort: 5379, peerPort: 5380 },
    ],
    command,
  };
}

export const certsDir = (plan: ClusterPlan): string => join(plan.dir, "certs");
export const dataDir = (plan: ClusterPlan, member: MemberPlan): string =>
  join(plan.dir, "data", member.name);
export const logFile = (plan: ClusterPlan, member: MemberPlan): string =>
  join(plan.dir, "logs", `${member.name}.log`);
export const pidFile = (plan: ClusterPlan, member: MemberPlan): string =>
  join(plan.dir, "pids", `${member.name}.pid`);
export const clientUrl = (member: MemberPlan): string => `https://127.0.0.1:${member.clientPort}`;
export const peerUrl = (member: MemberPlan): string => `https://127.0.0.1:${member.peerPort}`;

/**
 * The flags of one member, in etcd's names.
 * @param state of the cluster, for a member without data: it makes one with the others, or joins
 *   the one that they are
 */
export function memberFlags(
  plan: ClusterPlan,
  member: MemberPlan,
  state: "new" | "existing",
): string[] {
  return [
    `--name=${member.name}`,
    `--data-dir=${dataDir(plan, member)}`,
    `--listen-client-urls=${clientUrl(member)}`,
    `--advertise-client-urls=${clientUrl(member)}`,
    `--listen-peer-urls=${peerUrl(member)}`,
    `--initial-advertise-peer-urls=${peerUrl(member)}`,
    `--initial-cluster=${plan.members.map((one) => `${one.name}=${peerUrl(one)}`).join(",")}`,
    `--initial-cluster-token=${plan.token}`,
    `--initial-cluster-state=${state}`,
    ...tlsFlags(certificateFiles(certsDir(plan))),
  ];
}
