/** Permission at apply: by the user and the auth revision that an entry's header names. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  AlarmRequest,
  AuthRoleAddRequest,
  AuthRoleDeleteRequest,
  AuthRoleGetRequest,
  AuthRoleGrantPermissionRequest,
  AuthStatusRequest,
  AuthUserAddRequest,
  AuthUserDeleteRequest,
  AuthUserGetRequest,
  AuthUserGrantRoleRequest,
  AuthUserListRequest,
  authpb,
  CompactionRequest,
  DeleteRangeRequest,
  EMPTY,
  fromUtf8,
  InternalAuthenticateRequest,
  InternalRaftRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  PutRequest,
  RangeRequest,
  raftpb,
  toBase64,
} from "@quorate/proto";
import { type AppliedEntry, isSteps } from "../src/apply.ts";
import { encodeUser } from "../src/auth/auth-state.ts";
import { runSteps } from "../src/backend/steps.ts";
import type { RequestKind } from "../src/requests/request-table.ts";
import { Store } from "../src/store.ts";

/** A store, and entries by users. */
class World {
  readonly disk = new MemoryDisk();
  readonly keyspaces = new MemoryKeyspaceOpener(this.disk);
  store!: Store;
  #index = 0;
  steps = 0;

  static async open(): Promise<World> {
    const world = new World();
    world.store = await Store.open(world.keyspaces, "/store");
    return world;
  }

  /** Applies a request of a user, recognised at the auth revision of now unless given. */
  as(
    username: string,
    kind: RequestKind,
    request: Uint8Array,
    authRevision?: number,
  ): AppliedEntry {
    const header = { ID: 1n, username, authRevision: authRevision ?? this.store.auth.revision };
    const index = ++this.#index;
    const data = InternalRaftRequest.encode({ header, [kind]: request });
    const entry = raftpb.Entry.create({ index, term: 1, data });
    const outcome = this.store.begin(entry);
    if (!isSteps(outcome)) return outcome;
    this.steps++;
    return runSteps(outcome);
  }

  ok(username: string, kind: RequestKind, request: Uint8Array): AppliedEntry {
    const applied = this.as(username, kind, request);
    assert.equal(applied.error, undefined);
    return applied;
  }

  refused(
    code: string,
    username: string,
    kind: RequestKind,
    request: Uint8Array,
    rev?: number,
  ): void {
    const before = this.store.mvcc.currentRevision;
    assert.equal((this.as(username, kind, request, rev).error as { code?: string })?.code, code);
    assert.equal(this.store.mvcc.currentRevision, before);
  }

  user(name: string, ...roles: string[]): void {
    const options = { noPassword: name === "cert" };
    const hashedPassword = options.noPassword ? "" : toBase64(fromUtf8("hash"));
    this.ok("root", "authUserAdd", AuthUserAddRequest.encode({ name, options, hashedPassword }));
    for (const role of roles) {
      this.ok("root", "authUserGrantRole", AuthUserGrantRoleRequest.encode({ user: name, role }));
    }
  }

  role(name: string, key: string, rangeEnd: string, permType: number): void {
    this.ok("root", "authRoleAdd", AuthRoleAddRequest.encode({ name }));
    const perm = { permType, key: fromUtf8(key), rangeEnd: fromUtf8(rangeEnd) };
    this.ok(
      "root",
      "authRoleGrantPermission",
      AuthRoleGrantPermissionRequest.encode({ name, perm }),
    );
  }
}

const put = (key: string, rest: Partial<PutRequest> = {}) =>
  PutRequest.encode({ key: fromUtf8(key), value: fromUtf8("v"), ...rest });

async function enforced(): Promise<World> {
  const world = await World.open();
  world.user("root", "root");
  world.role("a", "a", "b", 2);
  world.role("w", "w", "", 1);
  world.user("ann", "a", "w");
  world.user("bob");
  world.ok("", "put", put("z"));
  world.ok("", "authEnable", EMPTY);
  return world;
}

test("every kind of request is permitted or refused by the header's user", async () => {
  const world = await enforced();
  world.ok("root", "put", put("z"));
  world.ok("ann", "put", put("a1", { prevKv: true }));
  world.ok("ann", "put", put("w"));
  for (const [code, user] of [
    ["UserEmpty", ""],
    ["PermissionDenied", "bob"],
    ["PermissionDenied", "absent"],
  ]) {
    const rev = user === "" ? 0 : undefined;
    world.refused(code, user, "put", put("a1"), rev);
    world.refused(code, user, "range", RangeRequest.encode({ key: fromUtf8("a") }), rev);
    world.refused(
      code,
      user,
      "deleteRange",
      DeleteRangeRequest.encode({ key: fromUtf8("a") }),
      rev,
    );
    const admin = user === "absent" ? "UserNotFound" : code;
    for (const [kind, request] of [
      ["compaction", CompactionRequest.encode({ revision: 1 })],
      ["alarm", AlarmRequest.encode({ action: 1, alarm: 1 })],
      ["authDisable", EMPTY],
      ["authEnable", EMPTY],
      ["authUserList", AuthUserListRequest.encode({})],
      ["authUserAdd", AuthUserAddRequest.encode({ name: "x", options: { noPassword: true } })],
      ["authRoleAdd", AuthRoleAddRequest.encode({ name: "x" })],
      ["authRoleDelete", AuthRoleDeleteRequest.encode({ role: "a" })],
      ["authUserGrantRole", AuthUserGrantRoleRequest.encode({ user: "bob", role: "root" })],
    ] as const) {
      world.refused(admin, user, kind, request, rev);
    }
  }
  world.refused("PermissionDenied", "ann", "put", put("w", { prevKv: true }));
  world.refused("PermissionDenied", "ann", "put", put("b"));
  world.refused("UserEmpty", "", "leaseGrant", LeaseGrantRequest.encode({ ID: 1n, TTL: 9 }), 0);
  // A user may look at itself and its roles; the state of enforcement is open.
  world.ok("ann", "authUserGet", AuthUserGetRequest.encode({ name: "ann" }));
  world.ok("ann", "authRoleGet", AuthRoleGetRequest.encode({ role: "a" }));
  world.ok("", "authStatus", AuthStatusRequest.encode({}));
  world.refused(
    "PermissionDenied",
    "bob",
    "authUserGet",
    AuthUserGetRequest.encode({ name: "ann" }),
  );
  world.refused("PermissionDenied", "bob", "authRoleGet", AuthRoleGetRequest.encode({ role: "a" }));
});

test("a request of a user that was recognised by older users and roles is refused", async () => {
  const world = await enforced();
  const { revision } = world.store.auth;
  world.user("new");
  world.refused("AuthOldRevision", "ann", "put", put("a"), revision);
  world.refused("AuthOldRevision", "root", "put", put("a"), revision);
  world.ok("ann", "put", put("a"));
});

test("a lease with keys that a user may not write cannot be revoked, or get more keys, by it", async () => {
  const world = await enforced();
  world.ok("bob", "leaseGrant", LeaseGrantRequest.encode({ ID: 7n, TTL: 60 }));
  world.ok("root", "put", put("z", { lease: 7n }));
  world.refused("PermissionDenied", "ann", "put", put("a", { lease: 7n }));
  world.refused("PermissionDenied", "ann", "leaseRevoke", LeaseRevokeRequest.encode({ ID: 7n }));
  world.refused("UserEmpty", "", "leaseRevoke", LeaseRevokeRequest.encode({ ID: 7n }), 0);
  world.ok("ann", "leaseGrant", LeaseGrantRequest.encode({ ID: 8n, TTL: 60 }));
  for (let i = 0; i < 3000; i++) world.ok("ann", "put", put(`a${i}`, { lease: 8n }));
  assert.ok(world.steps > 1000, "keys of a large lease are looked at in steps");
  world.refused("PermissionDenied", "bob", "leaseRevoke", LeaseRevokeRequest.encode({ ID: 8n }));
  world.ok("ann", "leaseRevoke", LeaseRevokeRequest.encode({ ID: 8n }));
  world.ok("root", "leaseRevoke", LeaseRevokeRequest.encode({ ID: 7n }));
});

test("a token has the index of the entry, and users without a password get none", async () => {
  const world = await enforced();
  world.user("cert");
  const login = (name: string) => InternalAuthenticateRequest.encode({ name, simpleToken: "abcd" });
  const applied = world.ok("", "authenticate", login("ann"));
  // The index before the entry, as etcd's members have it: each takes the other's tokens.
  const index = world.store.position.index - 1;
  assert.equal((applied.response as { token: string }).token, `abcd.${index}`);
  world.refused("AuthFailed", "", "authenticate", login("cert"), 0);
  world.refused("AuthFailed", "", "authenticate", login("absent"), 0);
  world.ok("root", "authDisable", EMPTY);
  world.refused("AuthNotEnabled", "", "authenticate", login("ann"), 0);
  world.ok("", "put", put("b"));
});

test("an entry with a plain password changes nothing", async () => {
  const world = await enforced();
  const plain = { name: "x", password: "secret", options: { noPassword: false } };
  const applied = world.as("root", "authUserAdd", AuthUserAddRequest.encode(plain));
  assert.match(applied.error!.message, /plain password/);
  assert.equal(world.store.auth.user("x"), undefined);
});

test("a store that is opened again enforces the same users and roles", async () => {
  const world = await enforced();
  const { revision } = world.store.auth;
  await world.store.close({ flush: true });
  world.store = await Store.open(world.keyspaces, "/store");
  assert.deepEqual([world.store.auth.isEnabled, world.store.auth.revision], [true, revision]);
  world.refused("PermissionDenied", "ann", "put", put("z"));
  world.ok("ann", "put", put("a"));
});

test("a user that is made once more is another one for who was recognised before; restarts keep that", async () => {
  const world = await enforced();
  const remake = (): void => {
    world.ok("root", "authUserDelete", AuthUserDeleteRequest.encode({ name: "bob" }));
    world.refused("UserNotFound", "bob", "authUserList", EMPTY);
    world.user("bob", "root");
  };
  // As in etcd, until creations are noted.
  const first = world.store.auth.revision;
  remake();
  world.ok("bob", "authRoleList", EMPTY);
  assert.equal(world.as("bob", "authUserList", EMPTY, first).error, undefined);
  world.ok("", "authUserCreations", EMPTY);
  assert.equal(world.store.auth.createdAt("bob"), 0);
  const second = world.store.auth.revision;
  remake();
  const grant = LeaseGrantRequest.encode({ ID: 7n, TTL: 60 });
  for (let opened = 0; opened < 2; opened++) {
    const { auth } = world.store;
    assert.deepEqual([auth.notesCreations, auth.createdAt("bob")], [true, second + 2]);
    for (const [kind, request] of [
      ["authUserList", EMPTY],
      ["authUserGet", AuthUserGetRequest.encode({ name: "bob" })],
      ["leaseGrant", grant],
      ["compaction", CompactionRequest.encode({ revision: 1 })],
    ] as const)
      world.refused("InvalidAuthToken", "bob", kind, request, second);
    world.ok("bob", "authUserList", EMPTY);
    await world.store.close({ flush: true });
    world.store = await Store.open(world.keyspaces, "/store");
  }
  // The record of the user is etcd's: it has nothing of this.
  const { password, roles } = world.store.auth.user("bob")!;
  const record = authpb.User.encode({
    name: fromUtf8("bob"),
    password,
    roles: [...roles],
    options: { noPassword: false },
  });
  assert.deepEqual(encodeUser(world.store.auth.user("bob")!), record);
  world.ok("root", "authUserDelete", AuthUserDeleteRequest.encode({ name: "bob" }));
  assert.equal(world.store.auth.createdAt("bob"), undefined);
  world.refused("UserNotFound", "bob", "leaseGrant", grant);
});
