/**
 * Snapshots in tests: saving them, putting them back into a cluster's members, and comparing what
 * clusters hold.
 */
import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  ClusterService,
  fromLatin1,
  KVService,
  LeaseService,
  MaintenanceService,
} from "@quorate/proto";
import { CallError, TestClient } from "./client.ts";
import type { TestCluster } from "./cluster.ts";
import { findProgram } from "./executables.ts";
import { nextStep } from "./history.ts";
import type { TestMember } from "./member.ts";
import type { SeededRandom } from "./random.ts";

const bin = join(import.meta.dirname, "../../bin");

/** What a program printed and how it left. */
export interface Output {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** No program here takes as long; one that does is killed. */
const PROGRAM_LIMIT_MS = 120_000;

/** Runs a program; never rejects for one that fails. */
export function runProgram(
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Output> {
  const options = {
    env: { ...process.env, ...env },
    maxBuffer: 64 << 20,
    timeout: PROGRAM_LIMIT_MS,
    killSignal: "SIGKILL",
  } as const;
  return new Promise((resolve) => {
    execFile(command[0], command.slice(1), options, (error, stdout, stderr) =>
      resolve({
        code: error === null ? 0 : typeof error.code === "number" ? error.code : -1,
        stdout,
        stderr,
      }),
    );
  });
}

/** Our own tools: quoratectl, quorateutl. */
export const ourTool = (
  name: "quoratectl" | "quorateutl",
  ...args: readonly string[]
): Promise<Output> => runProgram([process.execPath, join(bin, `${name}.js`), ...args]);

/** What restores etcd's members here: etcdutl, or the etcdctl of 3.5 and before. */
export const etcdRestores: readonly string[] = [findProgram("etcdutl") ?? "etcdctl"];
export const ETCDCTL_3: Readonly<Record<string, string>> = { ETCDCTL_API: "3" };

/** The flags of a member that a restore needs as well. */
export function restoreFlags(member: TestMember): string[] {
  const wanted = [
    "name",
    "data-dir",
    "initial-cluster",
    "initial-cluster-token",
    "initial-advertise-peer-urls",
  ];
  return member.options.flags.filter((flag) =>
    wanted.some((name) => flag.startsWith(`--${name}=`)),
  );
}

/**
 * Stops all members of a cluster, removes what they had, creates their data again with `restore`,
 * and starts them.
 */
export async function startRestored(
  cluster: TestCluster,
  restore: (flags: readonly string[]) => Promise<Output>,
): Promise<void> {
  await Promise.all(cluster.members.map((member) => member.kill()));
  for (const member of cluster.members) {
    rmSync(member.options.dataDir, { recursive: true, force: true });
    const { code, stderr } = await restore(restoreFlags(member));
    if (code !== 0) throw new Error(`restoring ${member.name}: ${stderr}`);
  }
  for (const member of cluster.members) member.start();
  await Promise.all(cluster.members.map((_, index) => answers(cluster, index)));
}

/**
 * Waits until a member answers a linearizable read. Its health would say no while an alarm is
 * raised.
 */
async function answers(cluster: TestCluster, index: number): Promise<void> {
  const endMs = performance.now() + 60_000;
  const client = clientOf(cluster, index);
  try {
    for (;;) {
      try {
        await revisionOf(client);
        return;
      } catch (error) {
        if (performance.now() > endMs || !cluster.members[index].isRunning) throw error;
      }
      await delay(50);
    }
  } finally {
    client.close();
  }
}

/** A client of one member. */
export function clientOf(cluster: TestCluster, index = 0): TestClient {
  return new TestClient(cluster.members[index].clientAddress, cluster.identity);
}

/**
 * Sends a random history: requests of all kinds, compactions, keys on leases, leases that are
 * revoked. Returns the newest revision.
 */
export async function sendHistory(
  client: TestClient,
  random: SeededRandom,
  steps: number,
): Promise<number> {
  let current = 1;
  let compacted = 0;
  const leases: bigint[] = [];
  for (let i = 0; i < steps; i++) {
    try {
      if (random.oneIn(20)) {
        const { ID } = await client.call(LeaseService.methods.LeaseGrant, {
          TTL: 3600 + random.below(3600),
          ID: BigInt(1000 + i),
        });
        leases.push(ID);
      } else if (leases.length > 0 && random.oneIn(8)) {
        const key = fromLatin1(`leased/${random.below(12)}`);
        await client.call(KVService.methods.Put, {
          key,
          value: fromLatin1(`v${i}`),
          lease: random.pick(leases),
        });
      } else if (leases.length > 3 && random.oneIn(25)) {
        const [ID] = leases.splice(random.below(leases.length), 1);
        await client.call(LeaseService.methods.LeaseRevoke, { ID: ID });
      } else {
        const { method, request } = nextStep(random, { current, compacted });
        await client.call(method, request);
        if (method === KVService.methods.Compact)
          compacted = (request as { revision: number }).revision;
      }
    } catch (error) {
      // A share of the history is refused: that is part of it.
      if (!(error instanceof CallError)) throw error;
    }
    current = await revisionOf(client);
  }
  return current;
}

export async function revisionOf(client: TestClient): Promise<number> {
  const { header } = await client.call(KVService.methods.Range, {
    key: fromLatin1("a"),
    countOnly: true,
  });
  return header!.revision;
}

/**
 * All that clients see of a cluster: keys at the newest revision and at others, leases with their
 * keys, alarms, and the hash.
 */
export async function visibleState(
  client: TestClient,
  revisions: readonly number[],
): Promise<unknown> {
  const all = { key: fromLatin1("\0"), rangeEnd: fromLatin1("\0") };
  const atRevisions: unknown[] = [];
  for (const revision of [0, ...revisions]) {
    try {
      const { kvs, header } = await client.call(KVService.methods.Range, { ...all, revision });
      atRevisions.push({ revision: header!.revision, kvs });
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      atRevisions.push(error.details);
    }
  }
  const { leases } = await client.call(LeaseService.methods.LeaseLeases, {});
  const granted: unknown[] = [];
  for (const { ID } of [...leases].sort((a, b) => (a.ID < b.ID ? -1 : 1))) {
    const { grantedTTL, keys } = await client.call(LeaseService.methods.LeaseTimeToLive, {
      ID,
      keys: true,
    });
    granted.push({
      ID,
      grantedTTL,
      keys: keys.map((key) => Buffer.from(key).toString("latin1")).sort(),
    });
  }
  const { alarms } = await client.call(MaintenanceService.methods.Alarm, {});
  const { hash } = await client.call(MaintenanceService.methods.HashKV, {});
  return { atRevisions, granted, alarms, hash };
}

/** The peer URLs of a cluster's members, as it reports them. */
export async function peerUrls(client: TestClient): Promise<string[]> {
  const { members } = await client.call(ClusterService.methods.MemberList, {});
  return members.flatMap((member) => member.peerURLs).sort();
}
