/** What must hold of a cluster after it was hurt. */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import {
  fromLatin1,
  KeyValue,
  KVService,
  MaintenanceService,
  type StatusResponse,
  toLatin1,
} from "@quorate/proto";
import { TestClient } from "./client.ts";
import type { TestCluster } from "./cluster.ts";
import type { TestMember } from "./member.ts";

const { Range } = KVService.methods;
const { HashKV, Status } = MaintenanceService.methods;
const pageKeys = 5000;
const callLimitMs = 20_000;

/** Runs `body` with a client of the member's. */
export async function withClient<T>(
  cluster: TestCluster,
  member: TestMember,
  body: (client: TestClient) => Promise<T>,
): Promise<T> {
  const client = new TestClient(member.clientAddress, cluster.identity);
  try {
    return await body(client);
  } finally {
    client.close();
  }
}

/** What a member says of itself. */
export function statusOf(cluster: TestCluster, member: TestMember): Promise<StatusResponse> {
  return withClient(cluster, member, (client) => client.call(Status, {}, callLimitMs));
}

/** The member that leads. Asks the members until one says that it does; throws after `limitMs`. */
export async function leaderOf(cluster: TestCluster, limitMs = 120_000): Promise<TestMember> {
  const endMs = performance.now() + limitMs;
  while (performance.now() < endMs) {
    for (const member of cluster.members.filter((one) => one.isRunning)) {
      const status = await statusOf(cluster, member).catch(() => undefined);
      if (status !== undefined && status.leader !== 0n && status.leader === status.header!.memberId)
        return member;
    }
    await delay(20);
  }
  throw new Error(`there is no leader after ${limitMs} ms`);
}

/**
 * All pairs below `prefix` as the member's own state has them, once it has applied all that was
 * committed before this call.
 */
export async function pairsOf(
  cluster: TestCluster,
  member: TestMember,
  prefix: string,
): Promise<Map<string, string>> {
  return withClient(cluster, member, async (client) => {
    // A linearizable read first: after its answer the member's own state is no older than this
    // call.
    const first = await client.call(Range, { key: fromLatin1(prefix) }, callLimitMs);
    const revision = first.header!.revision;
    const rangeEnd = fromLatin1(
      prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1),
    );
    const pairs = new Map<string, string>();
    let from = prefix;
    for (;;) {
      const page = await client.call(
        Range,
        { key: fromLatin1(from), rangeEnd, revision, limit: pageKeys, serializable: true },
        callLimitMs,
      );
      for (const bytes of page.kvs) {
        const { key, value } = KeyValue.decode(bytes);
        pairs.set(toLatin1(key), toLatin1(value));
        from = `${toLatin1(key)}\0`;
      }
      if (!page.more) return pairs;
    }
  });
}

/**
 * Asserts that every member has every acknowledged pair, and that all have the same hash. No client
 * may write meanwhile.
 */
export async function assertNothingLost(
  cluster: TestCluster,
  prefix: string,
  acknowledged: ReadonlyMap<string, string>,
): Promise<void> {
  for (const member of cluster.members) {
    const pairs = await pairsOf(cluster, member, prefix);
    const lost = [...acknowledged].filter(([key, value]) => pairs.get(key) !== value);
    assert.equal(
      lost.length,
      0,
      `${member.name} lacks ${lost.length} of ${acknowledged.size} acknowledged writes, such as ${lost[0]}`,
    );
  }
  await assertEqualHashes(cluster);
}

/**
 * Asserts that all members give the same HashKV at one revision, the newest. No client may write
 * meanwhile.
 */
export async function assertEqualHashes(cluster: TestCluster): Promise<void> {
  const hashes = await Promise.all(
    cluster.members.map((member) =>
      withClient(cluster, member, async (client) => {
        const { header } = await client.call(Range, { key: fromLatin1("x") }, callLimitMs);
        const { hash, compactRevision } = await client.call(
          HashKV,
          { revision: header!.revision },
          callLimitMs,
        );
        return `hash ${hash}, revision ${header!.revision}, compacted ${compactRevision}`;
      }),
    ),
  );
  assert.equal(
    new Set(hashes).size,
    1,
    `hashes differ:\n${cluster.members.map((one, index) => `${one.name}: ${hashes[index]}`).join("\n")}`,
  );
}
