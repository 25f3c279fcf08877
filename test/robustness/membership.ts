/** Changes of the membership of a running cluster, tried until they are taken. */
import { setTimeout as delay } from "node:timers/promises";
import { ClusterService, MaintenanceService, type Member } from "@quorate/proto";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";
import { TestClient } from "../support/client.ts";
import type { Node, RunningCluster } from "./members.ts";
import type { Program } from "./mixture.ts";

const RETRY_MS = 200;
const CALL_LIMIT_MS = 5000;
const { MemberAdd, MemberList, MemberPromote, MemberRemove } = ClusterService.methods;

/** Where the learner would be that never comes: the port of the service `discard`. */
const NOBODY_URL = "https://127.0.0.1:9";

/** Asks one member after the other until one says yes; throws its last words after the limit. */
async function tried<T>(
  running: Pick<RunningCluster, "nodes" | "cluster">,
  limitMs: number,
  ask: (client: TestClient) => Promise<T>,
): Promise<T> {
  const endMs = performance.now() + limitMs;
  for (let turn = 0; ; turn++) {
    const up = running.nodes.filter((node) => node.isUp);
    const node = up[turn % Math.max(1, up.length)];
    const client = node && new TestClient(node.test.clientAddress, running.cluster.identity);
    try {
      if (client !== undefined) return await ask(client);
      throw new Error("no member is up");
    } catch (error) {
      if (performance.now() > endMs) throw error;
    } finally {
      client?.close();
    }
    await delay(RETRY_MS);
  }
}

async function membersOf(client: TestClient): Promise<readonly Member[]> {
  const { members } = await client.call(MemberList, { linearizable: true }, CALL_LIMIT_MS);
  return members;
}

/** Adds a learner that never comes, if that is taken soon. */
export async function addNobody(running: RunningCluster, limitMs: number): Promise<void> {
  const request = { peerURLs: [NOBODY_URL], isLearner: true };
  await tried(running, limitMs, (client) => client.call(MemberAdd, request, CALL_LIMIT_MS)).catch(
    () => {},
  );
}

/** Removes the learner that never came, if there is one. */
export async function removeNobody(running: RunningCluster, limitMs: number): Promise<void> {
  await tried(running, limitMs, async (client) => {
    for (const { ID, peerURLs } of await membersOf(client))
      if (peerURLs.includes(NOBODY_URL)) await client.call(MemberRemove, { ID }, CALL_LIMIT_MS);
  });
}

/**
 * A member leaves the cluster, and one of another program comes in its place, with nothing but its
 * addresses: it joins as a learner, catches up and is promoted.
 */
export async function replaceMember(
  running: RunningCluster,
  node: Node,
  program: Program,
  limitMs: number,
): Promise<void> {
  const { peerUrl } = node.test.options;
  const others = { nodes: running.nodes.filter((one) => one !== node), cluster: running.cluster };
  await tried(others, limitMs, async (client) => {
    const members = await membersOf(client);
    const old = members.find(({ peerURLs }) => peerURLs.includes(peerUrl));
    if (old !== undefined) await client.call(MemberRemove, { ID: old.ID }, CALL_LIMIT_MS);
  });
  await node.kill();
  await tried(others, limitMs, async (client) => {
    const members = await membersOf(client);
    if (members.some(({ peerURLs }) => peerURLs.includes(peerUrl))) return;
    const request = { peerURLs: [peerUrl], isLearner: true };
    await client.call(MemberAdd, request, CALL_LIMIT_MS);
  });
  const members = await tried(others, limitMs, membersOf);
  const initial = members.map(
    ({ peerURLs: [url] }) =>
      `${running.nodes.find((one) => one.test.options.peerUrl === url)?.name}=${url}`,
  );
  running.become(node, program, [
    `--initial-cluster=${initial.join(",")}`,
    "--initial-cluster-state=existing",
  ]);
  node.start();
  await tried(others, limitMs, async (client) => {
    const members = await membersOf(client);
    const learner = members.find(({ peerURLs }) => peerURLs.includes(peerUrl))!;
    if (learner.isLearner) await client.call(MemberPromote, { ID: learner.ID }, CALL_LIMIT_MS);
  });
  await node.test.waitReady(limitMs);
}

/** Makes a member lead, if the one that leads does so soon; without word if not. */
export async function moveLeader(leader: Node, to: Node, identity: ClientIdentity): Promise<void> {
  const from = new TestClient(leader.test.clientAddress, identity);
  const target = new TestClient(to.test.clientAddress, identity);
  const { MoveLeader, Status } = MaintenanceService.methods;
  try {
    const { header } = await target.call(Status, {}, CALL_LIMIT_MS);
    await from.call(MoveLeader, { targetID: header!.memberId }, CALL_LIMIT_MS);
  } catch {
    // It does not lead any more, or the other one cannot.
  } finally {
    from.close();
    target.close();
  }
}
