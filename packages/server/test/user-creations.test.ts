/** A token is good for the user that it was made for, and for no later one of that name. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TokenProvider } from "@quorate/member";
import { type Caller, MEMBER_CALLER, RPC_RULES } from "@quorate/member";
import {
  AuthService,
  AuthUserAddRequest,
  AuthUserDeleteRequest,
  AuthUserGrantRoleRequest,
  EMPTY,
  fromUtf8,
  KVService,
  LeaseKeepAliveRequest,
  LeaseService,
  MaintenanceService,
  type MethodDescriptor,
  services,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import { serviceTable } from "@quorate/services";
import { callAs, enableAuth, login, openAs, PASSWORD } from "./support/users.ts";
import { plainSecrets, World } from "./support/world.ts";

const { Put, Range } = KVService.methods;
const { LeaseGrant, LeaseKeepAlive, LeaseRevoke } = LeaseService.methods;
const { RoleList, UserAdd, UserDelete, UserGrantRole, UserList } = AuthService.methods;
const { Alarm, Status } = MaintenanceService.methods;
const b = fromUtf8;
const BAD_TOKEN = { message: "etcdserver: invalid auth token" };

/** Signed tokens without the signature: "ann@7", a user and the auth revision of its making. */
const signed: TokenProvider = {
  recognise(token) {
    const [user, revision] = token.split("@");
    return { user, authRevision: Number(revision) };
  },
  prefix: () => "",
  issue: (user, authRevision) => `${user}@${authRevision}`,
  assigned: () => {},
  invalidated: () => {},
  disabled: () => {},
  size: 0,
};

async function enforced(size: number, tokens?: TokenProvider, prepare?: (world: World) => void) {
  const world = new World(size);
  for (const node of world.nodes) node.secrets = { ...plainSecrets(world.random), tokens };
  prepare?.(world);
  await world.startAll();
  const member = world.leader()!.member!;
  await enableAuth(world, member, "ann");
  const root = await world.settled(login(member, "root"));
  const asRoot = <M extends MethodDescriptor>(method: M, request: object) =>
    world.settled(callAs(member, root, method, request as never));
  return { world, member, root, asRoot };
}

const CHANGES_ANN: readonly (readonly [MethodDescriptor, object])[] = [
  [UserDelete, { name: "ann" }],
  [UserAdd, { name: "ann", password: PASSWORD }],
  [UserGrantRole, { user: "ann", role: "root" }],
];

test("a signed token of a deleted user is good for nothing, nor when its name is root's equal", async () => {
  const { world, member, asRoot } = await enforced(3, signed);
  const old = await world.settled(login(member, "ann"));
  await world.settled(callAs(member, old, LeaseGrant, { ID: 7n, TTL: 600 }));
  const table = serviceTable(member);
  const refusedEverywhere = async (): Promise<void> => {
    for (const { member: at } of world.nodes) {
      for (const method of services.flatMap(({ methods }) => Object.values(methods))) {
        if (!table.unary.has(method.path) || RPC_RULES.get(method.path)?.rule === "open") continue;
        // Where a request needs a key or a revision, it has one.
        const leader = { key: b("ann/k"), name: b("ann/"), rev: 1 };
        const request = { key: b("ann/k"), revision: 1, leader } as never;
        await assert.rejects(
          world.settled(callAs(at!, old, method, request)),
          BAD_TOKEN,
          method.path,
        );
      }
    }
    await assert.rejects(
      world.settled(callAs(member, old, LeaseRevoke, { ID: 7n })),
      BAD_TOKEN,
      "its own lease",
    );
  };
  for (const [method, request] of CHANGES_ANN) {
    await asRoot(method, request);
    await world.run(100);
    await refusedEverywhere();
  }
  const renewed = await world.settled(login(member, "ann"));
  await world.settled(callAs(member, renewed, UserList, {}));
  await world.settled(callAs(member, renewed, LeaseRevoke, { ID: 7n }));
  await world.stopAll();
});

test("an administrator's signed token stays good while it changes users and roles", async () => {
  const { world, member, root, asRoot } = await enforced(1, signed);
  for (const name of ["x", "y", "z"]) await asRoot(UserAdd, { name, password: PASSWORD });
  assert.ok(Number(root.split("@")[1]) < member.store.auth.revision);
  await asRoot(RoleList, {});
  await world.stopAll();
});

for (const [name, tokens] of [
  ["simple", undefined],
  ["signed", signed],
] as const) {
  test(`a ${name} token that a member behind still accepts is refused by the log`, async () => {
    const { world, member, asRoot } = await enforced(3, tokens);
    const old = await world.settled(login(member, "ann"));
    const behind = world.nodes.find((node) => node.member !== member)!;
    // It recognises the token before the changes, and its proposals are on their way since.
    const { authority } = behind.member!.auth;
    const identity = await world.settled(Promise.resolve(authority.identify(callerWith(old))));
    for (const [method, request] of CHANGES_ANN) await asRoot(method, request);
    const caller = { ...callerWith(old), identity };
    const ask = (kind: "leaseGrant" | "authUserList" | "alarm", method: MethodDescriptor) =>
      world.settled(
        behind.member!.propose(caller, kind, method.requestType.encode({ ID: 9n } as object)),
      );
    for (const [kind, method] of [
      ["leaseGrant", LeaseGrant],
      ["authUserList", UserList],
      ["alarm", Alarm],
    ] as const) {
      const { error } = (await ask(kind, method)) as { error?: { code?: string } };
      assert.equal(error?.code, "InvalidAuthToken", kind);
    }
    assert.equal(member.store.lessor.count, 0);
    await world.stopAll();
  });
}

function callerWith(token: string): Caller {
  return { ...MEMBER_CALLER, origin: "client", token };
}

test("watches and lease streams of a deleted user end, also if its name is back at once", async () => {
  const { world, member } = await enforced(1, signed);
  const old = await world.settled(login(member, "ann"));
  await world.settled(callAs(member, old, LeaseGrant, { ID: 7n, TTL: 600 }));
  const watch = openAs(member, WatchService.methods.Watch.path, old);
  const create = { case: "createRequest", value: { key: b("ann/k"), rangeEnd: EMPTY } } as never;
  watch.listener.message!(WatchRequest.encode({ requestUnion: create }));
  const stream = openAs(member, LeaseKeepAlive.path, old);
  stream.listener.message!(LeaseKeepAliveRequest.encode({ ID: 7n }));
  await world.until(() => stream.messages.length === 1 && watch.messages.length === 1);
  // All three are in one batch of the log: the streams are looked at after the last of them.
  const hashedPassword = "aGFzaA==";
  const all = [
    member.propose(MEMBER_CALLER, "authUserDelete", AuthUserDeleteRequest.encode({ name: "ann" })),
    member.propose(
      MEMBER_CALLER,
      "authUserAdd",
      AuthUserAddRequest.encode({ name: "ann", hashedPassword }),
    ),
    member.propose(
      MEMBER_CALLER,
      "authUserGrantRole",
      AuthUserGrantRoleRequest.encode({ user: "ann", role: "root" }),
    ),
  ];
  for (const { error } of await world.settled(Promise.all(all))) assert.equal(error, undefined);
  await world.until(() => stream.ends.length === 1);
  stream.listener.message!(LeaseKeepAliveRequest.encode({ ID: 7n }));
  const responses = () => watch.messages.map((bytes) => WatchResponse.decode(bytes));
  await world.until(() => responses().some(({ canceled }) => canceled));
  const root = await world.settled(login(member, "root"));
  await world.settled(callAs(member, root, Put, { key: b("ann/k"), value: b("secret") }));
  await world.run(100);
  assert.ok(responses().every(({ events }) => events.length === 0));
  await world.stopAll();
});

test("creations are noted from the first user on that is made when all members know them", async () => {
  let isOld = true;
  const { world, member, asRoot } = await enforced(3, signed, (made) => {
    const callPeer = made.callPeer.bind(made);
    made.callPeer = async (from, url, path, body) => {
      const answer = await callPeer(from, url, path, body);
      const isRefused = path === "/quorate/features" && isOld && url === made.nodes[2].peerUrl;
      return isRefused ? { ...answer, status: 404 } : answer;
    };
  });
  const { auth } = member.store;
  assert.deepEqual([auth.notesCreations, auth.createdAt("ann")], [false, 0]);
  const old = await world.settled(login(member, "ann"));
  // Deleted users' tokens are refused all the same, where the token is recognised.
  await asRoot(UserDelete, { name: "ann" });
  await assert.rejects(world.settled(callAs(member, old, Status, {})), BAD_TOKEN);
  await asRoot(UserAdd, { name: "ann", password: PASSWORD });
  assert.deepEqual([auth.notesCreations, auth.createdAt("ann")], [false, 0]);
  isOld = false;
  await world.run(1000);
  await asRoot(UserAdd, { name: "bob", password: PASSWORD });
  assert.deepEqual([auth.notesCreations, auth.createdAt("bob")], [true, auth.revision]);
  await asRoot(UserDelete, { name: "ann" });
  await asRoot(UserAdd, { name: "ann", password: PASSWORD });
  await world.run(100);
  for (const node of world.nodes) {
    assert.equal(node.member!.store.auth.createdAt("ann"), auth.revision);
    const asked = world.settled(callAs(node.member!, old, Range, { key: b("ann/k") }));
    await assert.rejects(asked, BAD_TOKEN);
  }
  await world.stopAll();
});
