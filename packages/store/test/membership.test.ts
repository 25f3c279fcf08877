/**
 * Ids as etcd computes them, members as etcd writes them, and which configuration changes are
 * refused.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { type ErrorName, fromUtf8, idToHex, raftpb, toUtf8 } from "@quorate/proto";
import { Backend, Bucket } from "../src/backend/backend.ts";
import { clusterId, memberId } from "../src/membership/ids.ts";
import {
  decodeChangeContext,
  decodeMember,
  encodeChangeContext,
  encodeMember,
  type Member,
} from "../src/membership/member.ts";
import { Membership } from "../src/membership/membership.ts";
import { addMember, member, removeMember, updateMember } from "./store-log.ts";

test("ids are etcd's", () => {
  const ids = [3380, 4380, 5380].map((port) =>
    memberId([`https://127.0.0.1:${port}`], "etcd-cluster-1"),
  );
  assert.deepEqual(ids.map(idToHex), ["1701f7e3861531d4", "6a58b5afdcebd95d", "84a1a2f39cda4029"]);
  assert.equal(idToHex(clusterId(ids)), "c36a1e619c38211b");
  assert.equal(clusterId(ids.toReversed()), clusterId(ids));
  const alone = memberId(["http://localhost:12380"], "etcd-cluster");
  assert.equal(idToHex(alone), "c9ac9fc89eae9cf7");
});

test("an id depends on the set of URLs, the token and the time of the addition", () => {
  const urls = ["http://b:2380", "http://a:2380"];
  assert.equal(memberId(urls, "t"), memberId(urls.toReversed(), "t"));
  assert.deepEqual(urls, ["http://b:2380", "http://a:2380"]);
  const ids = [
    memberId(urls, "t"),
    memberId(urls, "u"),
    memberId(urls, "t", 1700000000),
    memberId(urls, "t", 1700000001),
  ];
  assert.equal(new Set(ids).size, 4);
});

const FULL: Member = {
  id: 0xffff_ffff_ffff_fffdn,
  name: 'quote " and "id":5',
  peerUrls: ["http://a:2380", "http://b:2380"],
  clientUrls: ["http://a:2379"],
  isLearner: true,
};

test("a member is stored as the JSON that etcd stores", () => {
  assert.equal(
    toUtf8(encodeMember({ ...FULL, name: "m0" })),
    '{"id":18446744073709551613,"peerURLs":["http://a:2380","http://b:2380"],"isLearner":true,"name":"m0","clientURLs":["http://a:2379"]}',
  );
  assert.equal(toUtf8(encodeMember(member(7n))), '{"id":7,"peerURLs":["http://10.0.0.7:2380"]}');
  assert.equal(
    toUtf8(encodeChangeContext({ member: member(7n), isPromote: false })),
    '{"id":7,"peerURLs":["http://10.0.0.7:2380"],"isPromote":false}',
  );
});

test("members come back as they were, ids above 2^53 and names full of JSON among them", () => {
  for (const one of [FULL, { ...FULL, isLearner: false, name: "" }, member(1n)]) {
    assert.deepEqual(decodeMember(encodeMember(one)), one);
    assert.deepEqual(decodeChangeContext(encodeChangeContext({ member: one, isPromote: true })), {
      member: one,
      isPromote: true,
    });
  }
  assert.deepEqual(decodeMember(fromUtf8('{"id": 5, "peerURLs": null}')), {
    ...member(5n),
    peerUrls: [],
  });
  for (const bad of [
    "",
    "7",
    "null",
    '{"id":1',
    '{"id":1,"peerURLs":[2]}',
    '{"id":1,"peerURLs":"http://a"}',
  ]) {
    assert.throws(() => decodeMember(fromUtf8(bad)), SyntaxError, bad);
  }
});

async function opened(): Promise<{
  backend: Backend;
  membership: Membership;
  reopen: () => Promise<Membership>;
}> {
  const backend = new Backend(
    await new MemoryKeyspaceOpener(new MemoryDisk()).open("/db", { create: true }),
  );
  const reopen = async () => {
    const snapshot = await backend.snapshot();
    try {
      return await Membership.open(backend, snapshot, "/db");
    } finally {
      await snapshot.close();
    }
  };
  return { backend, membership: await reopen(), reopen };
}

/** Members 1 to 3, a learner 4, and a member 5 that was removed. */
async function cluster(): ReturnType<typeof opened> {
  const world = await opened();
  const changes = [1n, 2n, 3n, 5n].map((id) => addMember(member(id)));
  for (const change of [...changes, addMember(member(4n, true)), removeMember(5n)]) {
    assert.equal(world.membership.refusal(change), undefined);
    world.membership.carryOut(change);
  }
  return world;
}

const url = (id: bigint, other: bigint): Member => ({
  ...member(id),
  peerUrls: ["http://new:2380", ...member(other).peerUrls],
});

const REFUSALS: readonly (readonly [
  what: string,
  change: raftpb.ConfChange,
  refusal: ErrorName | undefined,
])[] = [
  ["a new member", addMember(member(6n)), undefined],
  ["a member that is there", addMember(member(1n)), "MemberExist"],
  ["a member that was removed", addMember(member(5n)), "MemberNotFound"],
  ["a new member with a URL that another has", addMember(url(6n, 2n)), "PeerURLExist"],
  ["a new member with the URL of a removed one", addMember(url(6n, 5n)), undefined],
  ["one learner too many", addMember(member(6n, true)), "TooManyLearners"],
  ["a learner that becomes a voter", addMember(member(4n), true), undefined],
  ["a voter that becomes a voter", addMember(member(1n), true), "MemberNotLearner"],
  ["an unknown learner that becomes a voter", addMember(member(6n), true), "MemberNotFound"],
  ["the end of a member", removeMember(1n), undefined],
  ["the end of an unknown member", removeMember(6n), "MemberNotFound"],
  ["the end of a removed member", removeMember(5n), "MemberNotFound"],
  ["new URLs", updateMember({ ...member(1n), peerUrls: ["http://new:2380"] }), undefined],
  ["its own URLs again", updateMember(member(1n)), undefined],
  ["the URL of another", updateMember(url(1n, 2n)), "PeerURLExist"],
  ["new URLs for an unknown member", updateMember(member(6n)), "MemberNotFound"],
  ["new URLs for a removed member", updateMember(member(5n)), "MemberNotFound"],
];

for (const [what, change, refusal] of REFUSALS) {
  test(`${what}: ${refusal ?? "carried out"}`, async () => {
    const { backend, membership, reopen } = await cluster();
    assert.equal(membership.refusal(change), refusal);
    if (refusal === undefined) {
      membership.carryOut(change);
      assert.equal(
        membership.isRemoved(change.nodeId),
        change.type === raftpb.ConfChangeType.ConfChangeRemoveNode,
      );
      // What is read back at the next start is the same.
      const again = await reopen();
      assert.deepEqual(again.members(), membership.members());
      assert.equal(again.isRemoved(change.nodeId), membership.isRemoved(change.nodeId));
      assert.equal(again.isRemoved(5n), true);
    }
    await backend.close({ flush: true });
  });
}

test("the number of learners allowed is the caller's", async () => {
  const { backend, membership } = await cluster();
  assert.equal(membership.refusal(addMember(member(6n, true)), 2), undefined);
  membership.carryOut(addMember(member(6n, true)));
  assert.equal(membership.refusal(addMember(member(7n, true)), 2), "TooManyLearners");
  assert.equal(membership.refusal(addMember(member(7n)), 2), undefined);
  await backend.close({ flush: true });
});

test("promotion keeps what the member has published, and an update too", async () => {
  const { backend, membership, reopen } = await cluster();
  membership.setAttributes(4n, "four", ["http://c4:2379"]);
  membership.carryOut(addMember(member(4n), true));
  membership.carryOut(updateMember({ ...member(4n), peerUrls: ["http://new:2380"] }));
  const expected = {
    id: 4n,
    name: "four",
    peerUrls: ["http://new:2380"],
    clientUrls: ["http://c4:2379"],
    isLearner: false,
  };
  assert.deepEqual(membership.member(4n), expected);
  assert.deepEqual((await reopen()).member(4n), expected);
  await backend.close({ flush: true });
});

test("attributes of a removed or unknown member are passed over", async () => {
  const { backend, membership, reopen } = await cluster();
  const before = membership.members();
  membership.setAttributes(5n, "five", []);
  membership.setAttributes(6n, "six", []);
  assert.deepEqual(membership.members(), before);
  assert.deepEqual((await reopen()).members(), before);
  await backend.close({ flush: true });
});

test("members are listed by unsigned id, and the cluster's version is kept", async () => {
  const { backend, membership, reopen } = await opened();
  const high = { ...member(9n), id: 0x8000_0000_0000_0001n };
  for (const one of [high, member(2n), member(10n)]) membership.carryOut(addMember(one));
  assert.deepEqual(
    membership.members().map(({ id }) => id),
    [2n, 10n, high.id],
  );
  assert.equal(membership.clusterVersion, undefined);
  membership.setClusterVersion("3.7.0");
  const again = await reopen();
  assert.equal(again.clusterVersion, "3.7.0");
  assert.deepEqual(again.member(high.id), high);
  await backend.close({ flush: true });
});

test("STORE-2: a change of an unknown type stops the store", async () => {
  const { backend, membership } = await cluster();
  assert.throws(() => membership.refusal(raftpb.ConfChange.create({ type: 9, nodeId: 1n })), {
    message: /^STORE-2: /,
  });
  await backend.close({ flush: true });
});

for (const [bucket, key, value] of [
  [Bucket.members, "1", "{"],
  [Bucket.members, "not an id", "{}"],
  [Bucket.membersRemoved, "not an id", "removed"],
] as const) {
  test(`a member's record that does not decode is damage: ${key} ${value}`, async () => {
    const { backend, reopen } = await cluster();
    backend.put(bucket, fromUtf8(key), fromUtf8(value));
    await assert.rejects(reopen(), { code: "Damaged", path: "/db" });
    await backend.close({ flush: true });
  });
}
