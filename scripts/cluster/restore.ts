/**
 * The round that every operator should have done once before it is needed: save a snapshot of the
 * local cluster, take all of its data away, restore every member from the file, start them, and
 * read back what was there. The old data come back if anything goes wrong.
 *
 *     DIR/snapshots/TIME.db     what was saved
 *     DIR/data.before-restore   the old data, until the new cluster has been read
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runningPid, type Say, startCluster, stopCluster } from "./control.ts";
import { type ClusterPlan, dataDir, type MemberPlan, peerUrl } from "./layout.ts";
import { callOf } from "./programs.ts";
import { ctl, ToolError, tool } from "./tools.ts";

/** The hash of all keys up to a revision, as a member reports it. */
async function hashAt(plan: ClusterPlan, member: MemberPlan, revision: number): Promise<number> {
  const [answer] = JSON.parse(
    await ctl(plan, member, "endpoint", "hashkv", `--rev=${revision}`, "-w", "json"),
  ) as [{ HashKV: { hash: number } }];
  return answer.HashKV.hash;
}

/**
 * Does the round, or with `file` the part of it from the file on. True when every member has what
 * the file has.
 */
export async function restoreCluster(
  plan: ClusterPlan,
  file: string | undefined,
  say: Say,
): Promise<boolean> {
  const aside = join(plan.dir, "data.before-restore");
  if (existsSync(aside)) {
    say(
      `${aside} is there: an earlier restore did not end; move it to ${join(plan.dir, "data")} or remove it`,
    );
    return false;
  }
  try {
    const path = file ?? (await save(plan, say));
    const { revision, totalKey } = JSON.parse(
      await tool("quorateutl", ["snapshot", "status", path, "-w", "json"]),
    ) as Status;
    say(`${path} has ${totalKey} keys at revision ${revision}`);
    const expected =
      file === undefined ? await hashAt(plan, firstRunning(plan)!, revision) : undefined;
    if (!(await stopCluster(plan, say))) return false;
    const data = join(plan.dir, "data");
    if (existsSync(data)) renameSync(data, aside);
    if (await restoreAll(plan, path, revision, expected, say)) {
      rmSync(aside, { recursive: true, force: true });
      say("every member has what was saved");
      return true;
    }
    await putBack(plan, aside, say);
    return false;
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    say(error.message);
    if (existsSync(aside)) await putBack(plan, aside, say);
    return false;
  }
}

interface Status {
  readonly revision: number;
  readonly totalKey: number;
}

function firstRunning(plan: ClusterPlan): MemberPlan | undefined {
  return plan.members.find((member) => runningPid(plan, member) !== undefined);
}

async function save(plan: ClusterPlan, say: Say): Promise<string> {
  const member = firstRunning(plan);
  if (member === undefined)
    throw new ToolError(
      `no member is running: start the cluster first (${callOf("start")}), or name a snapshot file`,
    );
  const dir = join(plan.dir, "snapshots");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = join(dir, `${new Date().toISOString().replace(/[:.]/g, "-")}.db`);
  await ctl(plan, member, "snapshot", "save", path);
  say(`saved ${path} from ${member.name}`);
  return path;
}

async function restoreAll(
  plan: ClusterPlan,
  path: string,
  revision: number,
  expected: number | undefined,
  say: Say,
): Promise<boolean> {
  for (const member of plan.members) {
    const said = await tool("quorateutl", [
      "snapshot",
      "restore",
      path,
      `--name=${member.name}`,
      `--data-dir=${dataDir(plan, member)}`,
      `--initial-cluster=${plan.members.map((one) => `${one.name}=${peerUrl(one)}`).join(",")}`,
      `--initial-cluster-token=${plan.token}`,
      `--initial-advertise-peer-urls=${peerUrl(member)}`,
    ]);
    say(said.trim());
  }
  if (!(await startCluster(plan, say))) return false;
  let good = true;
  for (const member of plan.members) {
    const hash = await hashAt(plan, member, revision);
    const count = (
      await ctl(plan, member, "get", "", "--prefix", "--count-only", "-w", "fields")
    ).match(/"Count" : (\d+)/)?.[1];
    say(
      `${member.name} has ${count} keys, hash ${hash}${expected === undefined || hash === expected ? "" : `; it should be ${expected}`}`,
    );
    good &&= expected === undefined || hash === expected;
  }
  return good;
}

async function putBack(plan: ClusterPlan, aside: string, say: Say): Promise<void> {
  await stopCluster(plan, say);
  if (!existsSync(aside)) return;
  const data = join(plan.dir, "data");
  rmSync(data, { recursive: true, force: true });
  renameSync(aside, data);
  say(`the old data are back in their place; ${callOf("start")} starts the cluster as it was`);
}
