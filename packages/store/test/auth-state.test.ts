/** Users and roles as applied requests make them: rules, records, bounds, and a naive model. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  authpb,
  EMPTY,
  EtcdError,
  fromUtf8,
  type ResponseHeader,
  toBase64,
  toUtf8,
} from "@quorate/proto";
import * as apply from "../src/auth/apply-auth.ts";
import { AUTH_REQUESTS } from "../src/auth/auth-requests.ts";
import { AuthState } from "../src/auth/auth-state.ts";
import { decodeBase64 } from "../src/auth/base64.ts";
import * as limits from "../src/auth/limits.ts";
import { compareNames, SortedNames } from "../src/auth/names.ts";
import { Backend, Bucket } from "../src/backend/backend.ts";
import { runSteps } from "../src/backend/steps.ts";
import { Prng } from "./mvcc-history.ts";

const HEADER: ResponseHeader = { clusterId: 0n, memberId: 0n, revision: 1, raftTerm: 0 };
const HASH = toBase64(fromUtf8("$2a$04$hash"));

async function world(stepUsers?: number): Promise<{
  backend: Backend;
  state: AuthState;
  reopen(): Promise<AuthState>;
}> {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const backend = new Backend(await keyspaces.open("/store", { create: true }));
  const reopen = async () => AuthState.open(backend, await backend.snapshot(), "/store", stepUsers);
  return { backend, state: await reopen(), reopen };
}

function add(state: AuthState, name: string, noPassword = false): void {
  const request = {
    name,
    password: "",
    options: { noPassword },
    hashedPassword: noPassword ? "" : HASH,
  };
  apply.userAdd(state, HEADER, request);
}

function grant(state: AuthState, name: string, key: string, rangeEnd = "", permType = 0): void {
  const perm = { permType, key: fromUtf8(key), rangeEnd: fromUtf8(rangeEnd) };
  apply.roleGrantPermission(state, HEADER, { name, perm });
}

/** A state with root, ready to be enforced. */
async function ready() {
  const made = await world();
  add(made.state, "root");
  apply.userGrantRole(made.state, HEADER, { user: "root", role: "root" });
  return made;
}

function refused(code: string, call: () => unknown, text?: RegExp): void {
  assert.throws(call, (error: Error) => {
    assert.ok(error instanceof EtcdError, String(error));
    assert.equal(error.code, code);
    if (text !== undefined) assert.match(error.message, text);
    return true;
  });
}

test("enforcement needs the user root with the role root", async () => {
  const { state } = await world();
  refused("RootUserNotExist", () => apply.authEnable(state, HEADER));
  add(state, "root");
  refused("RootRoleNotExist", () => apply.authEnable(state, HEADER));
  apply.userGrantRole(state, HEADER, { user: "root", role: "root" });
  const { revision } = state;
  apply.authEnable(state, HEADER);
  assert.deepEqual([state.isEnabled, state.revision], [true, revision]);
  apply.authEnable(state, HEADER);
  assert.deepEqual(apply.authStatus(state, HEADER), {
    header: HEADER,
    enabled: true,
    authRevision: revision,
  });
  apply.authDisable(state, HEADER);
  assert.deepEqual([state.isEnabled, state.revision], [false, revision + 1]);
  apply.authDisable(state, HEADER);
  assert.equal(state.revision, revision + 1);
});

test("root cannot lose its role, or be deleted, while users and roles are enforced", async () => {
  const { state } = await ready();
  apply.roleAdd(state, HEADER, { name: "root" });
  apply.authEnable(state, HEADER);
  const revoke = () => apply.userRevokeRole(state, HEADER, { name: "root", role: "root" });
  refused("InvalidAuthMgmt", revoke);
  refused("InvalidAuthMgmt", () => apply.userDelete(state, HEADER, { name: "root" }));
  refused("InvalidAuthMgmt", () => runSteps(apply.roleDelete(state, HEADER, { role: "root" })));
  apply.authDisable(state, HEADER);
  revoke();
  apply.userDelete(state, HEADER, { name: "root" });
  runSteps(apply.roleDelete(state, HEADER, { role: "root" }));
  assert.deepEqual([state.userNames(), state.roleNames()], [[], []]);
});

test("what does not exist, exists already or is empty is refused, and nothing changes", async () => {
  const { state } = await ready();
  add(state, "ann");
  apply.roleAdd(state, HEADER, { name: "r" });
  const { revision } = state;
  const password = { password: "", hashedPassword: HASH };
  const role = "none";
  refused("UserEmpty", () => add(state, ""));
  refused("UserAlreadyExist", () => add(state, "ann"));
  refused("UserNotFound", () => apply.userDelete(state, HEADER, { name: "bob" }));
  refused("UserNotFound", () =>
    apply.userChangePassword(state, HEADER, { name: "bob", ...password }),
  );
  refused("UserNotFound", () => apply.userGet(state, HEADER, { name: "bob" }));
  refused("UserNotFound", () => apply.userGrantRole(state, HEADER, { user: "bob", role: "r" }));
  refused("RoleNotFound", () => apply.userGrantRole(state, HEADER, { user: "ann", role }));
  refused("UserNotFound", () => apply.userRevokeRole(state, HEADER, { name: "bob", role: "r" }));
  refused("RoleNotGranted", () => apply.userRevokeRole(state, HEADER, { name: "ann", role: "r" }));
  refused("RoleEmpty", () => apply.roleAdd(state, HEADER, { name: "" }));
  refused("RoleAlreadyExist", () => apply.roleAdd(state, HEADER, { name: "r" }));
  refused("RoleNotFound", () => apply.roleGet(state, HEADER, { role }));
  refused("RoleNotFound", () => runSteps(apply.roleDelete(state, HEADER, { role })));
  refused("RoleNotFound", () => grant(state, role, "a"));
  refused("PermissionNotGiven", () =>
    apply.roleGrantPermission(state, HEADER, { name: "r", perm: undefined }),
  );
  for (const [key, end] of [
    ["", ""],
    ["b", "a"],
    ["a", "a"],
    ["", "\0"],
  ]) {
    refused("InvalidAuthMgmt", () => grant(state, "r", key, end));
  }
  const range = { role: "r", key: fromUtf8("a"), rangeEnd: EMPTY };
  refused("PermissionNotGranted", () => apply.roleRevokePermission(state, HEADER, range));
  refused("RoleNotFound", () => apply.roleRevokePermission(state, HEADER, { ...range, role }));
  assert.throws(() =>
    apply.userChangePassword(state, HEADER, { name: "ann", password: "x", hashedPassword: "" }),
  );
  assert.throws(() =>
    apply.userChangePassword(state, HEADER, { name: "ann", password: "", hashedPassword: "?" }),
  );
  assert.equal(state.revision, revision);
});

test("a grant of the same range changes its type; others stand beside it in the order of keys", async () => {
  const { state } = await world();
  apply.roleAdd(state, HEADER, { name: "r" });
  for (const [key, end, type] of [
    ["b", "", 0],
    ["a", "z", 2],
    ["a", "", 1],
    ["a", "z", 0],
  ] as const) {
    grant(state, "r", key, end, type);
  }
  const { perm } = apply.roleGet(state, HEADER, { role: "r" });
  assert.deepEqual(
    perm.map(({ key, rangeEnd, permType }) => [toUtf8(key), toUtf8(rangeEnd), permType]),
    [
      ["a", "z", 0],
      ["a", "", 1],
      ["b", "", 0],
    ],
  );
  apply.roleAdd(state, HEADER, { name: "root" });
  const root = { permType: 2, key: EMPTY, rangeEnd: new Uint8Array(1) };
  assert.deepEqual(apply.roleGet(state, HEADER, { role: "root" }).perm, [root]);
});

test("a token is noted with the index before the entry's, and not for a user without a password", async () => {
  const { state } = await ready();
  add(state, "cert", true);
  const request = { name: "root", password: "", simpleToken: "abcdefghijklmnop" };
  refused("AuthNotEnabled", () => apply.authenticate(state, HEADER, request, 7));
  apply.authEnable(state, HEADER);
  const heard: unknown[] = [];
  state.observer = {
    authenticated: (...what) => heard.push(what),
    invalidated: (user) => heard.push(user),
    changed: () => heard.push("changed"),
  };
  assert.equal(apply.authenticate(state, HEADER, request, 7).token, "abcdefghijklmnop.6");
  refused("AuthFailed", () => apply.authenticate(state, HEADER, { ...request, name: "cert" }, 8));
  refused("AuthFailed", () => apply.authenticate(state, HEADER, { ...request, name: "x" }, 9));
  apply.userDelete(state, HEADER, { name: "cert" });
  assert.deepEqual(heard, [["root", "abcdefghijklmnop", 6], "cert", "changed"]);
});

test("records are etcd's, and a store that is opened again has the same users and roles", async () => {
  const { backend, state, reopen } = await ready();
  add(state, "ünï", true);
  apply.roleAdd(state, HEADER, { name: "r" });
  grant(state, "r", "k", "\0", 2);
  apply.userGrantRole(state, HEADER, { user: "ünï", role: "r" });
  apply.authEnable(state, HEADER);
  const get = (bucket: Bucket, key: string) => backend.get(bucket, fromUtf8(key));
  assert.deepEqual(get(Bucket.auth, "authEnabled"), new Uint8Array([1]));
  assert.deepEqual(get(Bucket.auth, "authRevision"), new Uint8Array([0, 0, 0, 0, 0, 0, 0, 7]));
  assert.equal(
    toUtf8(get(Bucket.authUsers, "root")!),
    '\n\x04root\x12\x0b$2a$04$hash\x1a\x04root"\x00',
  );
  assert.equal(toUtf8(get(Bucket.authUsers, "ünï")!), '\n\x05ünï\x1a\x01r"\x02\x08\x01');
  assert.equal(toUtf8(get(Bucket.authRoles, "r")!), "\n\x01r\x12\x08\x08\x02\x12\x01k\x1a\x01\0");
  const again = await reopen();
  for (const name of state.userNames()) assert.deepEqual(again.user(name), state.user(name));
  assert.deepEqual(again.role("r"), state.role("r"));
  assert.deepEqual([again.isEnabled, again.revision], [true, 7]);
});

test("records that do not decode, or are of another name, are damage", async () => {
  for (const [bucket, key, value] of [
    [Bucket.auth, "authRevision", fromUtf8("1")],
    [Bucket.authUsers, "a", fromUtf8("\xff")],
    [Bucket.authUsers, "a", authpb.User.encode({ name: fromUtf8("b") })],
    [Bucket.authRoles, "a", fromUtf8("\xff")],
    [Bucket.authRoles, "a", authpb.Role.encode({ name: fromUtf8("b") })],
  ] as const) {
    const { backend, reopen } = await world();
    backend.put(bucket, fromUtf8(key), value);
    await assert.rejects(reopen(), /The member stops/);
  }
});

test("users, roles and permissions are bounded", async () => {
  const { state } = await world();
  const bound = (what: string, call: () => void) =>
    refused("TooManyRequests", call, new RegExp(`too many ${what}: at most`));
  const user = (name: string) => ({ name, password: EMPTY, roles: [], options: undefined });
  for (let i = 0; i < limits.MAX_USERS; i++) state.putUser(user(`u${i}`));
  bound("users", () => add(state, "one more"));
  for (let i = 0; i < limits.MAX_ROLES; i++) state.putRole(`r${i}`, []);
  bound("roles", () => apply.roleAdd(state, HEADER, { name: "one more" }));
  const roles = [...Array(limits.MAX_USER_ROLES).keys()].map((i) => `r${i}`).sort();
  state.putUser({ ...user("u0"), roles });
  bound("roles of a user", () => apply.userGrantRole(state, HEADER, { user: "u0", role: "r9999" }));
  const permissions = (count: number) =>
    [...Array(count).keys()].map((i) => {
      const key = fromUtf8(`k${String(i).padStart(5, "0")}`);
      return { permType: 0, key, rangeEnd: EMPTY };
    });
  const full = permissions(limits.MAX_ROLE_PERMISSIONS);
  state.putRole("r0", full);
  bound("permissions of a role", () => grant(state, "r0", "z"));
  for (let i = 1; state.permissionCount < limits.MAX_PERMISSIONS; i++) state.putRole(`r${i}`, full);
  bound("permissions", () => grant(state, "r9000", "z"));
  const one = { role: "r0", key: fromUtf8("k00000"), rangeEnd: EMPTY };
  apply.roleRevokePermission(state, HEADER, one);
  grant(state, "r9000", "z");
});

test("merged permissions that are kept are bounded, and a change of a role is seen at once", async () => {
  const { state } = await world();
  const permissions = [...Array(10_000).keys()].map((i) => {
    const key = fromUtf8(`k${String(i).padStart(5, "0")}x`);
    return { permType: 0, key, rangeEnd: EMPTY };
  });
  state.putRole("many", permissions);
  state.putRole("some", []);
  // Each has another list of roles, so that none shares its set.
  const users = [...Array(30).keys()].map((i) => {
    const roles = ["many", ...Array<string>(i).fill("some")];
    const user = { name: `u${i}`, password: EMPTY, roles, options: undefined };
    state.putUser(user);
    return user;
  });
  for (const user of users) assert.equal(state.permissionsOf(user).size, 10_000);
  const kept = users.map((user) => state.permissionsOfRoles(user.roles));
  assert.equal(state.permissionsOfRoles(users[29]!.roles), kept[29], "the newest is kept");
  assert.equal(state.permissionsOf(users[29]!), kept[29]);
  // 10,001 intervals each and a bound of 200,000: nineteen stay.
  assert.equal(state.permissionsOfRoles(users[11]!.roles), kept[11]);
  assert.notEqual(state.permissionsOfRoles(users[10]!.roles), kept[10]);
  state.putRole("many", permissions.slice(1));
  for (const user of users) assert.equal(state.permissionsOf(user).size, 9_999);
});

test("names with separators in them do not share the permissions of others", async () => {
  const { state } = await world();
  state.putRole("a", [{ permType: 0, key: fromUtf8("secret"), rangeEnd: EMPTY }]);
  const of = (roles: string[]) => ({ name: "u", password: EMPTY, roles, options: undefined });
  assert.equal(state.permissionsOf(of(["a", "b"])).size, 1);
  for (const roles of [["a\0b"], ["a1:b"], ["1:a1:b"], ["a,b"]]) {
    assert.equal(state.permissionsOf(of(roles)).size, 0);
  }
});

test("names are in the order of their bytes", () => {
  const names = ["b", "a", "\u{10000}", "\uffff", "é", "aa"];
  const sorted = new SortedNames();
  for (const name of names) sorted.add(name);
  const expected = ["a", "aa", "b", "é", "\uffff", "\u{10000}"];
  assert.deepEqual(sorted.list(), expected);
  assert.deepEqual([...names].sort(compareNames), expected);
  sorted.delete("b");
  assert.deepEqual(
    sorted.list(),
    expected.filter((name) => name !== "b"),
  );
});

test("base64 is Go's", () => {
  const prng = new Prng(1);
  for (let length = 0; length < 20; length++) {
    const bytes = Uint8Array.from({ length }, () => prng.below(256));
    const text = toBase64(bytes);
    assert.equal(text, Buffer.from(bytes).toString("base64"));
    assert.deepEqual(decodeBase64(`${text}\r\n`), bytes);
  }
  for (const wrong of ["a", "ab", "abc", "ab=c", "a===", "====", "ab-_"]) {
    assert.equal(decodeBase64(wrong), undefined, wrong);
  }
});

/** All that a state says of its users and roles. */
function shown(state: AuthState): object {
  const { isEnabled, revision, permissionCount, notesCreations, userCount, roleCount } = state;
  return {
    isEnabled,
    revision,
    permissionCount,
    notesCreations,
    userCount,
    roleCount,
    users: state.userNames().map((name) => [state.user(name), state.createdAt(name)]),
    roles: state.roleNames().map((name) => [name, state.role(name)]),
  };
}

test("each change is seen, counted, told to the observer, and there when the store is opened again", async () => {
  const { state, reopen } = await world(2);
  let told = 0;
  let expected = 0;
  const invalidated: string[] = [];
  state.observer = {
    changed: () => told++,
    authenticated: () => assert.fail("nobody logs in"),
    invalidated: (name) => invalidated.push(name),
  };
  const after = async (change: () => unknown) => {
    const { revision } = state;
    change();
    assert.equal(told, ++expected);
    assert.equal(state.revision, revision + 1);
    assert.deepEqual(shown(await reopen()), shown(state));
  };
  const user = (name: string) => ({ user: name, role: "r" });
  state.noteCreations();
  for (const name of ["root", "d", "b", "c", "a"]) await after(() => add(state, name));
  await after(() => apply.roleAdd(state, HEADER, { name: "r" }));
  await after(() => apply.roleAdd(state, HEADER, { name: "q" }));
  await after(() => grant(state, "r", "k", "m"));
  await after(() => grant(state, "q", "x"));
  for (const name of ["a", "b", "d"])
    await after(() => apply.userGrantRole(state, HEADER, user(name)));
  await after(() => apply.userGrantRole(state, HEADER, { user: "a", role: "q" }));
  const mayRead = (key: string) =>
    state.permissionsOf(state.user("a")!).covers("read", fromUtf8(key), EMPTY);
  assert.deepEqual([mayRead("k"), mayRead("x"), mayRead("y")], [true, true, false]);
  await after(() => grant(state, "q", "y"));
  assert.equal(mayRead("y"), true, "what was merged before is not used");
  await after(() =>
    apply.roleRevokePermission(state, HEADER, {
      role: "q",
      key: fromUtf8("y"),
      rangeEnd: EMPTY,
    }),
  );
  assert.equal(mayRead("y"), false);
  await after(() => apply.userRevokeRole(state, HEADER, { name: "d", role: "r" }));
  let pauses = 0;
  await after(() => {
    const steps = apply.roleDelete(state, HEADER, { role: "r" });
    while (steps.next().done !== true) {
      pauses++;
      assert.equal(mayRead("k"), true, "the role is there until it is gone for all");
    }
  });
  assert.equal(pauses, 2, "of five users, two in a step");
  assert.deepEqual([state.roleNames(), state.permissionCount], [["q"], 1]);
  assert.deepEqual(
    state.userNames().map((name) => state.user(name)!.roles),
    [["q"], [], [], [], []],
  );
  assert.equal(mayRead("k"), false);
  await after(() => apply.userDelete(state, HEADER, { name: "b" }));
  await after(() => add(state, "b"));
  assert.equal(state.createdAt("b"), state.revision);
  await after(() => apply.userDelete(state, HEADER, { name: "c" }));
  await after(() => apply.userDelete(state, HEADER, { name: "d" }));
  assert.deepEqual(state.userNames(), ["a", "b", "root"]);
  assert.deepEqual(invalidated, ["b", "c", "d"]);
  apply.userGrantRole(state, HEADER, { user: "root", role: "root" });
  expected++;
  apply.authEnable(state, HEADER);
  assert.equal(told, ++expected);
  assert.deepEqual(shown(await reopen()), shown(state));
});

test("names of any order come and go", () => {
  const random = new Prng(34);
  const sorted = new SortedNames();
  const model = new Set<string>();
  for (let i = 0; i < 500; i++) {
    const name = String.fromCharCode(97 + random.below(26));
    if (model.delete(name)) sorted.delete(name);
    else {
      model.add(name);
      sorted.add(name);
    }
    assert.deepEqual(sorted.list(), [...model].sort());
    assert.equal(sorted.size, model.size);
  }
});

const LIMITS = { maxTxnOps: 128, versionProblem: () => undefined };

test("an entry's names, hashes and permissions are bounded, to the byte", () => {
  const { authRoleAdd, authRoleGrantPermission, authUserAdd, authUserChangePassword } =
    AUTH_REQUESTS;
  const name = (bytes: number) => "é".repeat(bytes / 2) + "x".repeat(bytes % 2);
  const user = (hashBytes: number, of = "u") => ({
    name: of,
    password: "",
    options: undefined,
    hashedPassword: toBase64(new Uint8Array(hashBytes)),
  });
  const refusedEntry = (call: () => unknown, text: RegExp) => assert.throws(call, text);
  assert.equal(authUserAdd.check(user(256, name(limits.MAX_NAME_BYTES)), LIMITS), undefined);
  assert.equal(authRoleAdd.check({ name: name(limits.MAX_NAME_BYTES) }, LIMITS), undefined);
  const long = name(limits.MAX_NAME_BYTES + 1);
  refused("TooManyRequests", () => authUserAdd.check(user(1, long), LIMITS), /bytes in a name/);
  refused("TooManyRequests", () => authRoleAdd.check({ name: long }, LIMITS), /bytes in a name/);
  for (const kind of [authUserAdd, authUserChangePassword]) {
    assert.equal(kind.check(user(256), LIMITS), undefined);
    refusedEntry(() => kind.check(user(257), LIMITS), /not base64, or too long/);
    refusedEntry(
      () => kind.check({ ...user(1), hashedPassword: "%" }, LIMITS),
      /not base64, or too long/,
    );
    refusedEntry(() => kind.check({ ...user(1), password: "p" }, LIMITS), /a plain password/);
  }
  const { authenticate } = AUTH_REQUESTS;
  const login = { name: "u", password: "", simpleToken: "abcXYZ" };
  assert.equal(authenticate.check(login, LIMITS), undefined);
  refusedEntry(() => authenticate.check({ ...login, password: "p" }, LIMITS), /a plain password/);
  refusedEntry(
    () => authenticate.check({ ...login, simpleToken: "a1" }, LIMITS),
    /other characters than letters/,
  );
  const perm = (bytes: number, endBytes: number) => ({
    name: "r",
    perm: { permType: 0, key: new Uint8Array(bytes), rangeEnd: new Uint8Array(endBytes) },
  });
  const most = limits.MAX_PERMISSION_KEY_BYTES;
  assert.equal(authRoleGrantPermission.check(perm(most, most), LIMITS), undefined);
  assert.equal(authRoleGrantPermission.check({ name: "r", perm: undefined }, LIMITS), undefined);
  for (const one of [perm(most + 1, 1), perm(1, most + 1)])
    refused(
      "TooManyRequests",
      () => authRoleGrantPermission.check(one, LIMITS),
      /key of a permission/,
    );
});
