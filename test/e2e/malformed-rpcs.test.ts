/**
 * Every method of every service, walked from its descriptor over a real socket, with requests that
 * are cut, spoilt, endless or random: each has an error or a response, and the three members live
 * on and hold the same.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AlarmRequest_AlarmAction,
  ClusterService,
  fromLatin1,
  fromUtf8,
  KVService,
  LeaseService,
  MaintenanceService,
  WatchService,
} from "@quorate/proto";
import { METHODS, type Outcome, rawCall, type Walked } from "../fuzz/calls.ts";
import { MessageMaker, nested } from "../fuzz/messages.ts";
import { assertEqualHashes } from "../support/checks.ts";
import { type CallError, openChannel, TestClient } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { SeededRandom, seedOf } from "../support/random.ts";

const SEED = seedOf(20261122);
/** Calls at a time. */
const PARALLEL = 24;
/** For methods that wait: they have refused what is malformed long before, or take it. */
const WAIT_MS = 700;
const ANSWER_MS = 60_000;
const INTERNAL = 13;
const UNIMPLEMENTED = 12;
const DEADLINE = 4;

/** All bodies that a method is sent. */
function bodiesFor(method: Walked, maker: MessageMaker): Uint8Array[] {
  const valid = Array.from({ length: 3 }, () => maker.valid(method.requestTypeName));
  const [longest] = [...valid].sort((a, b) => b.length - a.length);
  const cuts = Array.from({ length: Math.min(longest.length, 40) }, (_, length) =>
    longest.subarray(0, length),
  );
  const spoilt = Array.from({ length: 25 }, () => maker.malformed(method.requestTypeName));
  return [...valid, ...cuts, ...spoilt, nested(method.requestTypeName, 100_000)];
}

/** What a call may come to: an answer, or an error of the member itself. */
function isSound(method: Walked, { code, details }: Outcome): boolean {
  if (code === DEADLINE) return method.waits;
  // Of a member that is there, only its own words.
  if (code === 14) return details.startsWith("etcdserver: ");
  return true;
}

async function walk(cluster: TestCluster, method: Walked, maker: MessageMaker): Promise<void> {
  const clients = cluster.members.map((member) =>
    openChannel(member.clientAddress, cluster.identity),
  );
  try {
    // Refused at once, also by a method that waits.
    const refused = await rawCall(clients[0], method, [Uint8Array.of(8)], ANSWER_MS);
    assert.ok(
      [INTERNAL, UNIMPLEMENTED].includes(refused.code),
      `${method.path}: the byte 08 results in ${JSON.stringify(refused)}`,
    );
    const bodies = bodiesFor(method, maker);
    const limitMs = method.waits ? WAIT_MS : ANSWER_MS;
    const outcomes: Outcome[] = [];
    for (let at = 0; at < bodies.length; at += PARALLEL) {
      const some = bodies.slice(at, at + PARALLEL);
      outcomes.push(
        ...(await Promise.all(
          some.map((body, i) =>
            rawCall(clients[(at + i) % clients.length], method, [body], limitMs),
          ),
        )),
      );
    }
    outcomes.forEach((outcome, i) => {
      assert.ok(
        isSound(method, outcome),
        `${method.path}: ${Buffer.from(bodies[i]).toString("hex").slice(0, 200)}: ${JSON.stringify(outcome)}`,
      );
    });
  } finally {
    for (const client of clients) client.close();
  }
  for (const member of cluster.members)
    assert.ok(member.isRunning, `${method.path} ended ${member.name}\n${member.logTail(5)}`);
}

/** Takes back what valid requests among the others may have raised. */
async function disarm(client: TestClient): Promise<void> {
  const { alarms } = await client.call(MaintenanceService.methods.Alarm, {
    action: AlarmRequest_AlarmAction.GET,
  });
  for (const { memberID, alarm } of alarms) {
    await client.call(MaintenanceService.methods.Alarm, {
      action: AlarmRequest_AlarmAction.DEACTIVATE,
      memberID,
      alarm,
    });
  }
}

test(`every method of every service, malformed (seed ${SEED})`, async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const random = new SeededRandom(SEED);
    const maker = new MessageMaker(random, {
      keys: ["a", "b", "k/1", "k/2", "\xff"],
      ids: [1n, 7n, 77n],
    });
    const client = new TestClient(cluster.members[0].clientAddress, cluster.identity);
    try {
      for (const method of METHODS) {
        await walk(cluster, method, maker);
        await disarm(client);
        await client.call(KVService.methods.Put, {
          key: fromUtf8("living"),
          value: fromUtf8(method.path),
        });
      }
      await endLeases(client);
      await assertEqualHashes(cluster);
    } finally {
      client.close();
    }
    // What was applied is applied again.
    await Promise.all(cluster.members.map((member) => member.kill()));
    for (const member of cluster.members) member.start();
    await cluster.waitReady();
    await assertEqualHashes(cluster);
  });
});

/**
 * Ends the leases that valid requests among the others have made: none must end while hashes are
 * compared.
 */
async function endLeases(client: TestClient): Promise<void> {
  const { LeaseLeases, LeaseRevoke } = LeaseService.methods;
  for (;;) {
    const { leases } = await client.call(LeaseLeases, {});
    if (leases.length === 0) return;
    // One may end by itself meanwhile.
    await Promise.all(leases.map(({ ID }) => client.call(LeaseRevoke, { ID }).catch(() => {})));
  }
}

const key = fromLatin1("k");

test("requests that decode and are hostile in what they say are refused in plain words", async () => {
  await withCluster({ size: 1 }, async ({ members: [member], identity }) => {
    const client = new TestClient(member.clientAddress, identity);
    const fails = (call: Promise<unknown>, code: number, text: RegExp) =>
      assert.rejects(call, (error: CallError) => {
        assert.match(error.details, text);
        assert.equal(error.code, code, error.details);
        return true;
      });
    try {
      const { LeaseGrant, LeaseRevoke, LeaseTimeToLive } = LeaseService.methods;
      // A time below the least is raised to it, one above the most is refused.
      assert.ok((await client.call(LeaseGrant, { ID: 5n, TTL: -(2 ** 50) })).TTL > 0);
      await fails(
        client.call(LeaseGrant, { ID: 6n, TTL: Number.MAX_SAFE_INTEGER }),
        11,
        /too large lease TTL/,
      );
      await fails(client.call(LeaseRevoke, { ID: -1n }), 5, /requested lease not found/);
      assert.equal((await client.call(LeaseTimeToLive, { ID: -1n, keys: true })).TTL, -1);
      const { Range, Put, Txn, Compact } = KVService.methods;
      await client.call(Put, { key, value: key });
      assert.equal((await client.call(Range, { key, limit: -5 })).count, 1);
      await fails(
        client.call(Range, { key, revision: Number.MAX_SAFE_INTEGER }),
        11,
        /future revision/,
      );
      await fails(client.call(Range, { key, sortOrder: 99 as 0 }), 3, /invalid sort option/);
      await fails(
        client.call(Compact, { revision: Number.MAX_SAFE_INTEGER }),
        11,
        /future revision/,
      );
      await fails(client.call(Compact, { revision: -1 }), 11, /compacted/);
      const compare = Array.from({ length: 200_000 }, () => ({}) as never);
      await fails(client.call(Txn, { compare }), 3, /too many operations/);
      await fails(client.call(Txn, { success: [{ request: undefined }] }), 3, /key not found/);
      const { MemberAdd, MemberList, MemberUpdate, MemberPromote, MemberRemove } =
        ClusterService.methods;
      await fails(
        client.call(MemberAdd, { peerURLs: [`http://${"a".repeat(1_000_000)}:1`] }),
        3,
        /given member URLs are invalid/,
      );
      await fails(
        client.call(MemberAdd, { peerURLs: Array.from({ length: 65 }, (_, i) => `http://a:${i}`) }),
        3,
        /URLs are invalid/,
      );
      const [{ ID }] = (await client.call(MemberList, {})).members;
      const peerURLs = ["http://a:1/path"];
      await fails(client.call(MemberUpdate, { ID, peerURLs }), 3, /URLs are invalid/);
      // As with etcd, an unknown member is refused before its URLs are looked at.
      await fails(client.call(MemberUpdate, { ID: 9n, peerURLs }), 5, /member not found/);
      await fails(client.call(MemberPromote, { ID: 9n }), 5, /member not found/);
      await fails(client.call(MemberRemove, { ID: 0n }), 5, /member not found/);
      const { Alarm, HashKV, MoveLeader, Downgrade } = MaintenanceService.methods;
      await fails(
        client.call(Alarm, { action: 1, memberID: 1n, alarm: 77 as 0 }),
        3,
        /unknown alarm type 77/,
      );
      await fails(client.call(Alarm, { action: 9 as 0 }), 3, /unknown alarm action 9/);
      // An alarm of a member that there is not is raised, as in etcd, and taken back.
      await client.call(Alarm, {
        action: AlarmRequest_AlarmAction.ACTIVATE,
        memberID: 99n,
        alarm: 1,
      });
      await client.call(Alarm, {
        action: AlarmRequest_AlarmAction.DEACTIVATE,
        memberID: 99n,
        alarm: 1,
      });
      await fails(
        client.call(HashKV, { revision: Number.MAX_SAFE_INTEGER }),
        11,
        /future revision/,
      );
      await fails(client.call(MoveLeader, { targetID: 9n }), 9, /bad leader transferee/);
      await fails(client.call(Downgrade, { action: 9 as 0, version: "3.6" }), 2, /unknown method/);
      const filters = [7, 9, -1] as never[];
      const created = await client.callStream(WatchService.methods.Watch, {
        requestUnion: { case: "createRequest", value: { key, filters } as never },
      });
      assert.ok(created.created);
      await client.call(Put, { key, value: fromLatin1("still here") });
    } finally {
      client.close();
    }
  });
});
