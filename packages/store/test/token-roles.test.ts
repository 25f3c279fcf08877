/** Entries whose caller has its roles from a token: verdicts, what is malformed, and the store. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  AuthRoleAddRequest,
  AuthRoleDeleteRequest,
  AuthRoleGrantPermissionRequest,
  AuthUserAddRequest,
  AuthUserGetRequest,
  AuthUserGrantRoleRequest,
  EMPTY,
  fromUtf8,
  InternalRaftRequest,
  PutRequest,
  raftpb,
  TokenRolesRequest,
} from "@quorate/proto";
import { type AppliedEntry, isSteps } from "../src/apply.ts";
import { MAX_TOKEN_ROLE_LENGTH, MAX_TOKEN_ROLES } from "../src/auth/limits.ts";
import { runSteps } from "../src/backend/steps.ts";
import { checkEntryData } from "../src/requests/entry-request.ts";
import type { RequestKind } from "../src/requests/request-table.ts";
import { encodeWithRoles } from "../src/requests/token-roles.ts";
import { Store } from "../src/store.ts";

const LIMITS = { maxTxnOps: 8, versionProblem: () => undefined };
const put = (key: string) => PutRequest.encode({ key: fromUtf8(key), value: fromUtf8("v") });
const only = (kind: RequestKind, request: Uint8Array) =>
  InternalRaftRequest.encode({ [kind]: request });

class World {
  readonly keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  store!: Store;
  #index = 0;

  async open(): Promise<this> {
    this.store = await Store.open(this.keyspaces, "/store");
    return this;
  }

  apply(data: Uint8Array): AppliedEntry {
    const entry = raftpb.Entry.create({ index: ++this.#index, term: 1, data });
    const outcome = this.store.begin(entry);
    return isSteps(outcome) ? runSteps(outcome) : outcome;
  }

  header(username: string) {
    return { ID: 1n, username, authRevision: this.store.auth.revision };
  }

  root(kind: RequestKind, request: Uint8Array): void {
    const applied = this.apply(
      InternalRaftRequest.encode({ header: this.header("root"), [kind]: request }),
    );
    assert.equal(applied.error, undefined);
  }

  /** The error code of a request of a token's user with roles; undefined: it was applied. */
  as(username: string, roles: readonly string[], kind: RequestKind, request: Uint8Array) {
    const data = encodeWithRoles(this.header(username), roles, only(kind, request));
    assert.equal(checkEntryData(data, LIMITS), 1n);
    const { error } = this.apply(data);
    return (error as { code?: string } | undefined)?.code;
  }
}

async function enforced(): Promise<World> {
  const world = await new World().open();
  const options = { noPassword: true };
  for (const name of ["root", "ann"]) {
    world.root("authUserAdd", AuthUserAddRequest.encode({ name, options }));
  }
  world.root("authUserGrantRole", AuthUserGrantRoleRequest.encode({ user: "root", role: "root" }));
  for (const name of ["a", "b"]) {
    world.root("authRoleAdd", AuthRoleAddRequest.encode({ name }));
    const perm = { permType: 2, key: fromUtf8(name), rangeEnd: fromUtf8(`${name}~`) };
    world.root("authRoleGrantPermission", AuthRoleGrantPermissionRequest.encode({ name, perm }));
  }
  world.root("authUserGrantRole", AuthUserGrantRoleRequest.encode({ user: "ann", role: "a" }));
  world.root("authEnable", EMPTY);
  return world;
}

test("roles of a token permit what those roles do, and the user's record does not count", async () => {
  const world = await enforced();
  assert.equal(world.store.auth.hasTokenRoles, false);
  assert.equal(world.as("eve", ["b"], "put", put("b1")), undefined);
  assert.equal(world.store.auth.hasTokenRoles, true);
  assert.equal(world.as("eve", ["a", "b"], "put", put("a1")), undefined);
  assert.equal(world.as("eve", ["b"], "put", put("a1")), "PermissionDenied");
  // The store's ann has the role a; a token of that name has what it lists.
  assert.equal(world.as("ann", ["b"], "put", put("a1")), "PermissionDenied");
  assert.equal(world.as("ann", [], "put", put("a1")), "PermissionDenied");
  assert.equal(world.as("root", [], "put", put("a1")), "PermissionDenied");
  assert.equal(world.as("root", [], "authDisable", EMPTY), "PermissionDenied");
  const get = AuthUserGetRequest.encode({ name: "ann" });
  assert.equal(world.as("ann", ["b"], "authUserGet", get), "PermissionDenied");
  assert.equal(world.as("eve", ["none", "b"], "put", put("b1")), undefined);
  assert.equal(world.as("eve", ["root"], "authUserGet", get), undefined);
  assert.equal(world.as("eve", ["root"], "put", put("z")), undefined);
  world.root("authRoleDelete", AuthRoleDeleteRequest.encode({ role: "b" }));
  assert.equal(world.as("eve", ["b"], "put", put("b1")), "PermissionDenied");
});

test("roles of a token that was recognised by older users and roles are refused", async () => {
  const world = await enforced();
  const header = world.header("eve");
  world.root("authRoleAdd", AuthRoleAddRequest.encode({ name: "c" }));
  const { error } = world.apply(encodeWithRoles(header, ["b"], only("put", put("b"))));
  assert.equal((error as { code?: string })?.code, "AuthOldRevision");
});

test("the store remembers that it has seen such an entry", async () => {
  const world = await enforced();
  assert.equal(world.as("eve", ["b"], "put", put("b1")), undefined);
  await world.store.close({ flush: true });
  await world.open();
  assert.equal(world.store.auth.hasTokenRoles, true);
});

test("an entry with roles that is malformed is refused before the log, and changes nothing in it", async () => {
  const world = await enforced();
  const header = world.header("eve");
  const twice = InternalRaftRequest.encode({
    tokenRoles: TokenRolesRequest.encode({ roles: ["a"], request: only("put", put("a")) }),
  });
  const many = Array.from({ length: MAX_TOKEN_ROLES + 1 }, (_, i) => `r${i}`);
  const bad: readonly [string, Uint8Array][] = [
    ["nothing inside", encodeWithRoles(header, ["b"], EMPTY)],
    ["roles inside of roles", encodeWithRoles(header, ["b"], twice)],
    ["no message inside", encodeWithRoles(header, ["b"], fromUtf8("\xff\xff"))],
    ["a bad request inside", encodeWithRoles(header, ["b"], only("put", fromUtf8("\x0a\xff")))],
    ["no message", InternalRaftRequest.encode({ header, tokenRoles: fromUtf8("\xff\xff") })],
  ];
  for (const [what, data] of bad) {
    assert.throws(() => checkEntryData(data, LIMITS), what);
    const { revision } = world.store.auth;
    const before = world.store.mvcc.currentRevision;
    assert.equal((world.apply(data).error as { code?: string })?.code, "InvalidRequest", what);
    assert.deepEqual(
      [world.store.auth.revision, world.store.mvcc.currentRevision],
      [revision, before],
    );
  }
  const two = InternalRaftRequest.encode({ put: put("b"), authDisable: EMPTY });
  const long = "r".repeat(MAX_TOKEN_ROLE_LENGTH + 1);
  for (const [roles, inner] of [
    [["b"], two],
    [many, only("put", put("b"))],
    [[long], only("put", put("b"))],
  ] as const) {
    assert.throws(() => checkEntryData(encodeWithRoles(header, roles, inner), LIMITS));
  }
});
