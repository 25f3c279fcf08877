/**
 * The logs of three members that ended for good on one request (a LeaseRevoke whose body is the
 * single byte 08), as version 0.1 of commit 9aa1983 wrote them; the segments are cut down to 8 KiB.
 * Ten puts, a lease 7 with the key "leased", and then the revocation.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { MEMBER_CALLER } from "@quorate/member";
import { AlarmRequest, InternalRaftRequest, LeaseRevokeRequest, raftpb } from "@quorate/proto";
import { Wal } from "@quorate/wal";
import { get, type Node, put, World } from "./support/world.ts";

const SEGMENT = "0000000000000000-0000000000000000.wal";

/** The poisoned segment of a member, as it lies beside this file. */
function segmentOf(name: string): Buffer {
  return readFileSync(new URL(`fixtures/poisoned-log/${name}/${SEGMENT}`, import.meta.url));
}

const WAL_DIR = "/data/member/wal";

function poison(world: World): void {
  for (const { name, disk } of world.nodes) disk.install(`${WAL_DIR}/${SEGMENT}`, segmentOf(name));
}

/** The entries that a member's disk holds. */
async function entriesOf(world: World, { disk }: Node): Promise<readonly raftpb.Entry[]> {
  const opened = Wal.open(
    disk,
    WAL_DIR,
    { index: 0, term: 0, confState: undefined },
    { clock: world.clock },
  );
  await opened.wal.close();
  return opened.entries;
}

test("a log that was poisoned by one request starts, on all members, and goes on", async () => {
  const world = new World(3);
  poison(world);
  const requests = (await entriesOf(world, world.nodes[0]))
    .filter(({ type, data }) => type === raftpb.EntryType.EntryNormal && data.length > 0)
    .map(({ data }) => InternalRaftRequest.decode(data));
  const [revoke] = requests.filter(({ leaseRevoke }) => leaseRevoke !== undefined);
  assert.deepEqual([...revoke.leaseRevoke!], [8], "the fixture is not poisoned any more");

  await world.startAll();
  const members = world.nodes.map(({ member }) => member!);
  for (const member of members) {
    assert.equal(await world.settled(get(member, "key9")), "value 9");
    assert.equal(await world.settled(get(member, "leased")), "yes");
    assert.ok(member.store.lessor.exists(7n));
    assert.equal(member.metrics.malformedEntries.value, 1);
  }
  await world.settled(put(members[1], "after", "the poison"));
  await world.run(50);
  const hashes = await Promise.all(
    members.map((member) => world.settled(member.store.mvcc.hashKV(0))),
  );
  for (const { hash, revision } of hashes) assert.deepEqual([hash, revision], [hashes[0].hash, 13]);
  const leader = world.leader()!.member!;
  const { error } = await world.settled(
    leader.propose(MEMBER_CALLER, "leaseRevoke", LeaseRevokeRequest.encode({ ID: 7n })),
  );
  assert.equal(error, undefined);
  await world.stopAll();
  // And once more, from the store as it stands now.
  await world.startAll();
  assert.equal(await world.settled(get(world.nodes[2].member!, "after")), "the poison");
  await world.stopAll();
});

test("alarms and revocations that do not decode are refused before they are proposed", async () => {
  const world = new World(1);
  await world.startAll();
  const member = world.nodes[0].member!;
  const before = member.commitIndex;
  await assert.rejects(
    member.propose(MEMBER_CALLER, "leaseRevoke", Uint8Array.of(8)),
    /truncated varint/,
  );
  await assert.rejects(
    member.propose(MEMBER_CALLER, "alarm", AlarmRequest.encode({ action: 1, alarm: 9 as 1 })),
    /unknown alarm type 9/,
  );
  await world.run(100);
  assert.equal(member.commitIndex, before);
  await world.stopAll();
});
