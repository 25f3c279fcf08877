/** Who a caller is, what members do as themselves, and what follows when users and roles change. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import type { Member, TokenProvider } from "@quorate/member";
import { AuthChanges, type Caller, MEMBER_CALLER, RPC_RULES } from "@quorate/member";
import { StoreRef, TokenEnds, UserAuthority } from "@quorate/member/testing";
import {
  AlarmRequest,
  AuthService,
  AuthUserAddRequest,
  CompactionRequest,
  EMPTY,
  fromUtf8,
  KVService,
  LeaseKeepAliveRequest,
  LeaseService,
  MaintenanceService,
  services,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import { serviceTable } from "@quorate/services";
import { MAX_RECHECKED_LEASES } from "@quorate/services/testing";
import type { Store } from "@quorate/store";
import { callAs, enableAuth, login, openAs, PASSWORD } from "./support/users.ts";
import { plainSecrets, World } from "./support/world.ts";

const { Range, Put, Compact } = KVService.methods;
const { LeaseGrant, LeaseKeepAlive } = LeaseService.methods;
const { Authenticate, UserDelete, UserRevokeRole, AuthDisable, AuthEnable } = AuthService.methods;
const b = fromUtf8;
const DENIED = { message: "etcdserver: permission denied" };
const EMPTY_USER = { message: "etcdserver: user name is empty" };
const BAD_TOKEN = { message: "etcdserver: invalid auth token" };

test("every method that a member serves has a rule, and one without is refused", async () => {
  const world = new World(1);
  await world.startAll();
  const member = world.nodes[0].member!;
  const table = serviceTable(member);
  const served = [...table.unary.keys(), ...table.stream.keys()].sort();
  assert.deepEqual(served, [...RPC_RULES.keys()].sort());
  const described = services.flatMap(({ methods }) => Object.values(methods));
  for (const { path } of described) assert.ok(RPC_RULES.has(path), `${path} has no rule`);

  const root = await enableAuth(world, member);
  const row = RPC_RULES.get(Range.path)!;
  const rules = RPC_RULES as Map<string, typeof row>;
  rules.delete(Range.path);
  rules.delete(WatchService.methods.Watch.path);
  try {
    await assert.rejects(world.settled(callAs(member, root, Range, { key: b("k") })), DENIED);
    assert.throws(() => openAs(member, WatchService.methods.Watch.path, root), DENIED);
  } finally {
    rules.set(Range.path, row);
    rules.set(WatchService.methods.Watch.path, row);
  }
  await world.settled(callAs(member, root, Range, { key: b("k") }));
  await world.stopAll();
});

function watch(member: Member, token: string | undefined, ...keys: readonly string[]) {
  const stream = openAs(member, WatchService.methods.Watch.path, token);
  for (const key of keys) {
    const value = { key: b(key), rangeEnd: EMPTY };
    const requestUnion = { case: "createRequest", value } as never;
    stream.listener.message!(WatchRequest.encode({ requestUnion }));
  }
  const responses = () => stream.messages.map((bytes) => WatchResponse.decode(bytes));
  return Object.assign(stream, { responses });
}

test("a caller is the user of its token, else of its certificate, else none", async () => {
  const users = new Map([
    ["ann", 2],
    ["late", 5],
  ]);
  const auth = {
    isEnabled: true,
    revision: 5,
    notesCreations: true,
    user: (name: string) => (users.has(name) ? {} : undefined),
    createdAt: (name: string) => users.get(name),
  };
  let rounds = 0;
  const tokens = {
    recognise: (token: string) =>
      token === "late"
        ? Promise.resolve({ user: "late" })
        : {
            good: { user: "ann" },
            old: { user: "ann", authRevision: 3 },
            before: { user: "ann", authRevision: 1 },
            gone: { user: "bob", authRevision: 5 },
            new: { user: "new", authRevision: 6 },
            listed: { user: "bob", roles: ["x"] },
          }[token],
  } as unknown as TokenProvider;
  const authority = (clientCertAuth: boolean) =>
    new UserAuthority({
      store: new StoreRef({ auth } as unknown as Store),
      tokens,
      clientCertAuth,
      reads: {
        wait: async () => {
          rounds++;
          users.set("new", 6);
        },
      },
      tokenEnds: new TokenEnds(new ManualClock(), () => {}),
      slices: { run: () => assert.fail("no keys are looked at") },
    });
  const caller = (fields: Partial<Caller>): Caller => ({
    ...MEMBER_CALLER,
    origin: "client",
    ...fields,
  });
  const [plain, certificates] = [authority(false), authority(true)];
  const byToken = { user: "ann", authRevision: 5, provedBy: "token" };
  const bob = { commonName: "bob" };
  const byName = { user: "bob", authRevision: 5, provedBy: "certificate" };
  assert.deepEqual(plain.identify(caller({ token: "good" })), byToken);
  assert.deepEqual(plain.identify(caller({ token: "Bearer good" })), byToken);
  assert.deepEqual(certificates.identify(caller({ token: "good", ...bob })), byToken);
  assert.deepEqual(await plain.identify(caller({ token: "late" })), { ...byToken, user: "late" });
  assert.equal((await plain.identify(caller({ token: "old" })))?.authRevision, 3);
  assert.throws(() => certificates.identify(caller({ token: "bad", ...bob })), BAD_TOKEN);
  // A token of a user that was deleted, when another one has the name, and when none has it; of
  // one whose creation is not applied here yet; and of a party that needs no user.
  assert.throws(() => plain.identify(caller({ token: "before" })), BAD_TOKEN);
  assert.equal(rounds, 0);
  assert.equal((await plain.identify(caller({ token: "new" })))?.user, "new");
  await assert.rejects(async () => plain.identify(caller({ token: "gone" })), BAD_TOKEN);
  assert.equal(rounds, 2);
  assert.deepEqual((await plain.identify(caller({ token: "listed" })))?.roles, ["x"]);
  assert.deepEqual(certificates.identify(caller(bob)), byName);
  assert.equal(plain.identify(caller(bob)), undefined);
  assert.equal(certificates.identify(caller({})), undefined);
  // etcd's gateway calls with a certificate of its own.
  const gateway = {
    ...bob,
    metadata: (key: string) => (key === "grpcgateway-accept" ? "*/*" : undefined),
  };
  assert.equal(certificates.identify(caller(gateway)), undefined);
  const own = { user: "root", authRevision: 5, provedBy: "member" };
  assert.deepEqual(plain.identify(MEMBER_CALLER), own);
  const settled = { user: "eve", authRevision: 4, provedBy: "token" } as const;
  assert.deepEqual(plain.identify(caller({ identity: settled })), settled);
  auth.isEnabled = false;
  for (const one of [caller({ token: "bad" }), caller(bob), MEMBER_CALLER]) {
    assert.equal(certificates.identify(one), undefined);
  }
});

test("a member goes on with its own work: leases that end, compaction, alarms", async () => {
  const world = new World(3);
  await world.startAll();
  const member = world.leader()!.member!;
  const root = await enableAuth(world, member);
  await world.settled(callAs(member, root, LeaseGrant, { ID: 7n, TTL: 5 }));
  await world.settled(callAs(member, root, Put, { key: b("k"), value: b("v"), lease: 7n }));
  for (let i = 0; i < 5; i++) await world.settled(callAs(member, root, Put, { key: b("n") }));
  await world.until(() => !member.store.lessor.exists(7n));
  const own = <K extends "compaction" | "alarm">(kind: K, request: Uint8Array) =>
    world.settled(member.propose(MEMBER_CALLER, kind, request));
  const compaction = await own("compaction", CompactionRequest.encode({ revision: 2 }));
  const alarm = await own("alarm", AlarmRequest.encode({ action: 1, alarm: 2, memberID: 9n }));
  assert.deepEqual([compaction.error, alarm.error], [undefined, undefined]);
  assert.equal(member.store.mvcc.compactRevision, 2);
  await assert.rejects(
    world.settled(callAs(member, undefined, Compact, { revision: 1 })),
    EMPTY_USER,
  );
  await world.stopAll();
});

test("a token of the leader's is good at a follower that has not heard of it yet", async () => {
  const world = new World(3);
  await world.startAll();
  const leader = world.leader()!;
  const follower = world.nodes.find((node) => node !== leader)!.member!;
  const root = await enableAuth(world, leader.member!, "ann");
  await world.settled(callAs(leader.member!, root, Put, { key: b("ann/k"), value: b("v") }));
  await world.run(100);
  const token = await world.settled(login(leader.member!, "ann"));
  const index = Number(token.split(".")[1]);
  // The index is that before the entry which made the token.
  assert.ok(follower.appliedIndex <= index, "the follower is behind");
  const stream = watch(follower, token, "ann/k", "z");
  assert.ok(stream.isPaused);
  const read = callAs(follower, token, Range, { key: b("ann/k"), serializable: true });
  assert.equal((await world.settled(read)).kvs.length, 1);
  await world.until(() => stream.responses().length === 2);
  assert.ok(!stream.isPaused);
  const [made, refused] = stream.responses();
  assert.deepEqual([made.canceled, refused.canceled], [false, true]);
  assert.match(
    refused.cancelReason,
    /code = PermissionDenied desc = etcdserver: permission denied/,
  );
  // One with an index that will not come soon is waited for once.
  const never = watch(follower, "abcdefghijklmnop.99999999", "ann/k");
  await world.until(() => never.responses().length === 1);
  assert.match(never.responses()[0].cancelReason, /invalid auth token/);
  const made_up = callAs(follower, "abcdefghijklmnop.99999999", Range, { key: b("ann/k") });
  await assert.rejects(world.settled(made_up), BAD_TOKEN);
  await world.stopAll();
});

test("watches, lease streams and snapshots are looked at again, many of them in turns", async () => {
  const world = new World(1);
  await world.startAll();
  const member = world.nodes[0].member!;
  const root = await enableAuth(world, member, "ann", "adm");
  const { UserGrantRole } = AuthService.methods;
  await world.settled(callAs(member, root, UserGrantRole, { user: "adm", role: "root" }));
  const ann = await world.settled(login(member, "ann"));
  const adm = await world.settled(login(member, "adm"));
  const many = watch(member, ann, ...Array.from({ length: 3000 }, (_, i) => `ann/${i}`));
  const kept = watch(member, root, "ann/0");
  const stream = openAs(member, LeaseKeepAlive.path, ann);
  for (let i = 1; i <= MAX_RECHECKED_LEASES + 1; i++) {
    const ID = BigInt(i);
    await world.settled(callAs(member, ann, LeaseGrant, { ID, TTL: 6000 }));
    stream.listener.message!(LeaseKeepAliveRequest.encode({ ID }));
  }
  // The last of them has a key.
  const last = BigInt(MAX_RECHECKED_LEASES + 1);
  await world.settled(callAs(member, ann, Put, { key: b("ann/k"), lease: last }));
  await world.until(() => stream.messages.length === MAX_RECHECKED_LEASES + 1);
  const snapshot = openAs(member, MaintenanceService.methods.Snapshot.path, adm);
  assert.equal(member.auth.changes.size, 2);
  await world.settled(callAs(member, root, UserRevokeRole, { name: "adm", role: "root" }));
  await world.until(() => snapshot.ends.length === 1);
  assert.equal(snapshot.ends[0]?.message, DENIED.message);
  assert.deepEqual([stream.ends, many.responses().filter(({ canceled }) => canceled)], [[], []]);
  await world.settled(callAs(member, root, UserRevokeRole, { name: "ann", role: "ann" }));
  await world.until(() => many.responses().filter(({ canceled }) => canceled).length === 3000);
  await world.until(() => stream.ends.length === 1);
  assert.equal(stream.ends[0]?.message, DENIED.message);
  assert.ok(kept.responses().every(({ canceled }) => !canceled));
  assert.equal(member.auth.changes.size, 0);
  await world.stopAll();
});

test("calls are notified in slices, those that have left not at all, changes of a turn once", () => {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const clock = {
    monotonicMs: () => nowMs,
    endOfTurn: (task: () => void) => void turns.push(task),
  };
  const changes = new AuthChanges({ turns: new Turns(clock) });
  const notified: number[] = [];
  const leave: (() => void)[] = [];
  for (let i = 0; i < 1000; i++) {
    const listener = () => {
      notified.push(i);
      nowMs += 0.1;
      if (i % 2 === 0) leave[i + 1]();
    };
    leave.push(changes.follow(listener));
  }
  changes.changed();
  changes.changed();
  let slices = 0;
  for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
    const before = nowMs;
    turn();
    // A slice looks at the time after each 64.
    assert.ok(nowMs - before <= 2 + 6.4);
    slices++;
  }
  assert.deepEqual([notified.length, changes.size], [500, 500]);
  assert.ok(slices > 5, `${slices} slices`);
  changes.changed();
  turns.shift()!();
  changes.changed();
  for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) turn();
  assert.equal(notified.length, 1500);
});

test("a login goes once more while users change under it, and gives up after some rounds", async () => {
  const world = new World(1);
  let root = "";
  let changing = 2;
  let made = 0;
  const node = world.nodes[0];
  const { randomBytes } = plainSecrets(world.random);
  let member!: Member;
  // A login draws its token between the check of its password and its entry.
  const changingBytes = (length: number) => {
    if (changing > 0 && root !== "") {
      changing--;
      const added = { name: `u${made++}`, options: { noPassword: true } };
      void member.propose(MEMBER_CALLER, "authUserAdd", AuthUserAddRequest.encode(added));
    }
    return randomBytes(length);
  };
  node.secrets = { randomBytes: changingBytes };
  await world.startAll();
  member = node.member!;
  root = await enableAuth(world, member, "ann");
  await world.settled(login(member, "ann"));
  assert.equal(changing, 0);
  // A round draws once or more.
  changing = 100;
  await assert.rejects(world.settled(login(member, "ann")), {
    message: "etcdserver: revision of auth store is old",
  });
  await world.stopAll();
});

test("users, roles and enforcement are there after a restart; tokens are not", async () => {
  const world = new World(1);
  await world.startAll();
  const node = world.nodes[0];
  const root = await enableAuth(world, node.member!, "ann");
  const ann = await world.settled(login(node.member!, "ann"));
  await world.settled(callAs(node.member!, ann, Put, { key: b("ann/k") }));
  const { revision } = node.member!.store.auth;
  await world.stopAll();
  const member = await world.start(node);
  await world.settled(member.ready);
  assert.equal(member.store.auth.revision, revision);
  await assert.rejects(world.settled(callAs(member, root, Range, { key: b("k") })), BAD_TOKEN);
  await assert.rejects(
    world.settled(callAs(member, undefined, Range, { key: b("k") })),
    EMPTY_USER,
  );
  const again = await world.settled(login(member, "ann"));
  await world.settled(callAs(member, again, Range, { key: b("ann/k") }));
  const admin = await world.settled(login(member, "root"));
  await world.settled(callAs(member, admin, UserDelete, { name: "ann" }));
  await assert.rejects(world.settled(callAs(member, again, Range, { key: b("ann/k") })), BAD_TOKEN);
  await assert.rejects(world.settled(login(member, "ann")), /authentication failed/);
  // Tokens end with enforcement, too.
  await world.settled(callAs(member, admin, AuthDisable, {}));
  await world.settled(callAs(member, undefined, AuthEnable, {}));
  await assert.rejects(world.settled(callAs(member, admin, Range, { key: b("k") })), BAD_TOKEN);
  await assert.rejects(
    world.settled(callAs(member, "x", Authenticate, { name: "root", password: "wrong" })),
    /authentication failed/,
  );
  await world.settled(callAs(member, "x", Authenticate, { name: "root", password: PASSWORD }));
  await world.stopAll();
});
