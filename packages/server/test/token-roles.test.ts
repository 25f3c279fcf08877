/** Identities whose roles come with their token: their rights, and what follows when it ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import type { Member, TokenProvider } from "@quorate/member";
import type { TokenUser } from "@quorate/member/testing";
import { MIN_RECHECK_MS, TokenEnds } from "@quorate/member/testing";
import {
  AuthService,
  EMPTY,
  fromUtf8,
  InternalRaftRequest,
  KVService,
  LeaseKeepAliveRequest,
  LeaseService,
  LockService,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import { servedIdentity } from "../src/audit/settings.ts";
import { callAs, enableAuth, openAs } from "./support/users.ts";
import { plainSecrets, World } from "./support/world.ts";

const { Range, Put } = KVService.methods;
const { LeaseGrant, LeaseKeepAlive } = LeaseService.methods;
const { UserGet, RoleRevokePermission } = AuthService.methods;
const b = fromUtf8;
const DENIED = { message: "etcdserver: permission denied" };
const BAD_TOKEN = { message: "etcdserver: invalid auth token" };

/** Tokens such as "eve|ann,bob|5000": a user, its roles, and the wall-clock time of its end. */
function provider(world: World): TokenProvider {
  const recognise = (token: string): TokenUser | undefined => {
    const [user, roles, ends] = token.split("|");
    if (roles === undefined) return { user };
    const endsMs = ends === undefined ? undefined : Number(ends);
    if (endsMs !== undefined && world.clock.wallMs() >= endsMs) return undefined;
    return { user, roles: roles.split(",").filter((one) => one !== ""), endsMs };
  };
  return {
    recognise,
    prefix: () => "",
    issue: (user) => user,
    assigned: () => {},
    invalidated: () => {},
    disabled: () => {},
    size: 0,
  };
}

/** Members with the roles ann and bob, whose permissions are for ann/ and bob/. */
async function enforced(size: number, prepare?: (world: World) => void) {
  const world = new World(size);
  for (const node of world.nodes) {
    node.secrets = { ...plainSecrets(world.random), tokens: provider(world) };
  }
  prepare?.(world);
  await world.startAll();
  const member = world.leader()!.member!;
  const root = await enableAuth(world, member, "ann", "bob");
  const put = (token: string, key: string, at: Member = member) =>
    world.settled(callAs(at, token, Put, { key: b(key), value: b("v") }));
  return { world, member, root, put };
}

function watch(member: Member, token: string, key: string) {
  const stream = openAs(member, WatchService.methods.Watch.path, token);
  const value = { key: b(key), rangeEnd: EMPTY };
  const requestUnion = { case: "createRequest", value } as never;
  stream.listener.message!(WatchRequest.encode({ requestUnion }));
  return () => stream.messages.map((bytes) => WatchResponse.decode(bytes));
}

test("a user of a token needs no record, and has the roles that the token lists, on every member", async () => {
  const { world, member, put } = await enforced(3);
  const follower = world.nodes.find((node) => node.member !== member)!.member!;
  for (const at of [member, follower]) {
    await put("eve|ann", "ann/k", at);
    await put("eve|ann,bob,none", "bob/k", at);
    await assert.rejects(put("eve|ann", "bob/k", at), DENIED);
    await assert.rejects(put("eve|", "ann/k", at), DENIED);
    // The store's user ann has the role ann, its root the role root; these are other parties.
    await assert.rejects(put("ann|bob", "ann/k", at), DENIED);
    await assert.rejects(put("root|bob", "ann/k", at), DENIED);
    await put("eve|root", "z", at);
    const read = (token: string, key: string) =>
      world.settled(callAs(at, token, Range, { key: b(key) }));
    assert.equal((await read("eve|ann", "ann/k")).kvs.length, 1);
    await assert.rejects(read("eve|ann", "bob/k"), DENIED);
    await assert.rejects(read("eve|ann|1", "ann/k"), BAD_TOKEN);
  }
  const self = world.settled(callAs(member, "ann|bob", UserGet, { name: "ann" }));
  await assert.rejects(self, DENIED);
  const lock = (name: string) =>
    world.settled(
      callAs(member, "eve|ann", LockService.methods.Lock, { name: b(name), lease: 7n }),
    );
  await world.settled(callAs(member, "eve|ann", LeaseGrant, { ID: 7n, TTL: 600 }));
  assert.match(String.fromCharCode(...(await lock("ann/l")).key), /^ann\/l\//);
  await assert.rejects(lock("bob/l"), DENIED);
  await world.run(100);
  const states = world.nodes.map(({ member: one }) => one!.store.mvcc.currentRevision);
  assert.deepEqual(new Set(states).size, 1);
  // The way to the audit log.
  const context = { metadata: (key: string) => (key === "token" ? "eve|ann" : undefined) };
  const served = servedIdentity(member.auth.authority, context as never);
  assert.deepEqual([served?.user, served?.roles], ["eve", ["ann"]]);
  await world.stopAll();
});

test("watches and lease streams end when a role loses its permission, and when the token ends", async () => {
  const { world, member, root, put } = await enforced(1);
  const endsMs = world.clock.wallMs() + 60_000;
  const short = `eve|ann|${endsMs}`;
  const watches = [watch(member, short, "ann/k"), watch(member, "eve|ann", "ann/k")];
  const other = watch(member, "eve|bob", "bob/k");
  const stream = openAs(member, LeaseKeepAlive.path, short);
  await world.settled(callAs(member, short, LeaseGrant, { ID: 9n, TTL: 6000 }));
  stream.listener.message!(LeaseKeepAliveRequest.encode({ ID: 9n }));
  await world.until(() => stream.messages.length === 1);
  await world.run(30_000);
  assert.equal(stream.ends.length, 0);
  const canceled = (responses: ReturnType<typeof watch>) =>
    responses().find((one) => one.canceled)?.cancelReason;
  assert.deepEqual(watches.map(canceled), [undefined, undefined]);
  await world.run(30_000 + MIN_RECHECK_MS + 100);
  assert.match(canceled(watches[0])!, /code = Unauthenticated desc = etcdserver: invalid auth/);
  assert.equal(stream.ends.at(0)?.message, BAD_TOKEN.message);
  assert.equal(canceled(watches[1]), undefined);
  await put("eve|ann", "ann/k");
  const ann = { role: "ann", key: b("ann/"), rangeEnd: b("ann0") };
  await world.settled(callAs(member, root, RoleRevokePermission, ann));
  await world.until(() => canceled(watches[1]) !== undefined);
  assert.match(canceled(watches[1])!, /permission denied/);
  assert.equal(canceled(other), undefined);
  await world.stopAll();
});

test("no such entry enters the log while a member may not know it; then it is asked no more", async () => {
  let isOld = true;
  let asked = 0;
  const { world, member, root, put } = await enforced(3, (made) => {
    const callPeer = made.callPeer.bind(made);
    made.callPeer = async (from, url, path, body) => {
      const answer = await callPeer(from, url, path, body);
      if (path !== "/quorate/features") return answer;
      asked++;
      return isOld && url === made.nodes[2].peerUrl ? { ...answer, status: 404 } : answer;
    };
  });
  const UNKNOWN = /not every member of the cluster is known to accept roles of tokens/;
  await assert.rejects(put("eve|ann", "ann/k"), UNKNOWN);
  // A refusal holds for a while, without another question.
  const before = asked;
  await assert.rejects(put("eve|ann", "ann/k"), UNKNOWN);
  assert.equal(asked, before);
  // What does not go through the log is served, and so are other users.
  await world.settled(callAs(member, "eve|ann", Range, { key: b("ann/k") }));
  await put(root, "ann/k");
  assert.ok(!member.store.auth.hasTokenRoles);
  isOld = false;
  await world.run(1000);
  await put("eve|ann", "ann/k");
  assert.ok(member.store.auth.hasTokenRoles);
  const known = asked;
  // A member that is away does not stop them any more.
  const away = world.nodes.find((node) => node.member !== member)!;
  world.cutOff.add(away.request!.memberId);
  await put("eve|ann", "ann/k");
  assert.equal(asked, known);
  await world.stopAll();
});

test("a member of an earlier release ends at such an entry, and does not differ", () => {
  const header = { ID: 1n, username: "eve", authRevision: 1 };
  const entry = InternalRaftRequest.encode({ header, tokenRoles: b("x") });
  // All that an earlier release can read of it is a request of an unknown kind.
  const { tokenRoles, header: read, ...rest } = InternalRaftRequest.decode(entry);
  assert.ok(tokenRoles !== undefined && read?.username === "eve");
  const { ID: _id, ...requests } = rest;
  assert.ok(Object.values(requests).every((one) => one === undefined));
});

test("ends of tokens: one timer, the earliest first, not more often than it may be", () => {
  const clock = new ManualClock(1_000_000);
  let rechecks = 0;
  const live = new Set([1_005_000, 1_005_100, 1_900_000]);
  const ends: TokenEnds = new TokenEnds(clock, () => {
    rechecks++;
    for (const one of live) {
      if (ends.hasEnded(one)) live.delete(one);
      else ends.note(one);
    }
  });
  ends.note(undefined);
  for (const one of live) ends.note(one);
  clock.advance(4999);
  assert.equal(rechecks, 0);
  clock.advance(1);
  assert.deepEqual([rechecks, live.size], [1, 2]);
  clock.advance(MIN_RECHECK_MS);
  assert.deepEqual([rechecks, live.size], [2, 1]);
  clock.advance(893_000);
  assert.equal(rechecks, 2);
  clock.advance(2000);
  assert.deepEqual([rechecks, live.size], [3, 0]);
  ends.note(1_990_000);
  ends.close();
  clock.advance(1_000_000);
  assert.equal(rechecks, 3);
});
