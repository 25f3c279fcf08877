/** The verdict on operations, against a naive model: each key of a small world asked for alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, fromLatin1, fromUtf8, TxnRequest } from "@quorate/proto";
import fc from "fast-check";
import {
  type AttachedKeys,
  type AuthIdentity,
  type Authorities,
  authorize,
  type Operation,
} from "../src/auth/authorize.ts";
import { type KeyAccess, PermissionSet } from "../src/auth/permission-set.ts";
import {
  isShortVerdict,
  type LeaseKeys,
  operationsOf,
  verdictInSteps,
  verdictNow,
} from "../src/auth/request-operations.ts";
import { runSteps, STEP_KEYS } from "../src/backend/steps.ts";

/** Keys over two letters and the zero byte, up to three long: every range has few of them. */
const LETTERS = ["\0", "a", "b"];
const WORLD = LETTERS.flatMap((a) => [
  a,
  ...LETTERS.flatMap((b) => [a + b, ...LETTERS.map((c) => a + b + c)]),
]);
const key = fc.constantFrom(...WORLD);
const rangeEnd = fc.oneof(fc.constant(""), fc.constant("\0"), key);
const range = fc.record({ key, rangeEnd });
const permission = fc.record({ key, rangeEnd, permType: fc.constantFrom(0, 1, 2, 3) });

interface Range {
  readonly key: string;
  readonly rangeEnd: string;
}

const bytes = ({ key, rangeEnd }: Range) => ({
  key: fromLatin1(key),
  rangeEnd: fromLatin1(rangeEnd),
});

/** The obvious way: is the key in the range? */
function holds({ key, rangeEnd }: Range, wanted: string): boolean {
  if (rangeEnd === "") return wanted === key;
  return wanted >= key && (rangeEnd === "\0" || wanted < rangeEnd);
}

/** Keys between all bounds of the world: keys that no permission separates are one case. */
const PROBES = [...new Set(WORLD.flatMap((one) => [one, `${one}\0`, `${one}\0\0`, `${one}c`]))];

function naiveCovers(
  permissions: readonly (Range & { permType: number })[],
  access: KeyAccess,
  wanted: Range,
): boolean {
  const types = access === "read" ? [0, 2] : [1, 2];
  const granted = permissions.filter(({ permType }) => types.includes(permType));
  const asked = PROBES.filter((probe) => holds(wanted, probe));
  // A range that ends before it begins names no key; its begin is looked at (as in etcd).
  if (!asked.includes(wanted.key)) asked.push(wanted.key);
  const open = wanted.rangeEnd === "\0";
  if (open && !granted.some(({ rangeEnd }) => rangeEnd === "\0")) return false;
  return asked.every((probe) => granted.some((one) => holds(one, probe)));
}

test("a merged set covers what its permissions cover together, and nothing else", () => {
  fc.assert(
    fc.property(
      fc.array(permission, { maxLength: 8 }),
      range,
      fc.constantFrom<KeyAccess>("read", "write"),
      (permissions, wanted, access) => {
        const set = PermissionSet.of(
          permissions.map((one) => ({ ...bytes(one), permType: one.permType })),
        );
        const { key, rangeEnd } = bytes(wanted);
        const expected = naiveCovers(permissions, access, wanted);
        assert.equal(set.covers(access, key, rangeEnd), expected);
        if (rangeEnd.length === 0) assert.equal(set.coversKey(access, wanted.key), expected);
      },
    ),
    { numRuns: 3000, seed: 14 },
  );
});

/** Users and roles as plain data. */
interface Model {
  readonly enabled: boolean;
  readonly revision: number;
  readonly users: Readonly<Record<string, readonly string[]>>;
  readonly roles: Readonly<Record<string, readonly (Range & { permType: number })[]>>;
  /** When each user was made; undefined: that is not noted. */
  readonly created?: Readonly<Record<string, number>> | undefined;
}

function authorities(model: Model): Authorities {
  const permissionsOfRoles = (roles: readonly string[]) =>
    PermissionSet.of(
      roles
        .flatMap((role) => model.roles[role] ?? [])
        .map((one) => ({ ...bytes(one), permType: one.permType })),
    );
  const rolesOf = (name: string) =>
    Object.hasOwn(model.users, name) ? model.users[name] : undefined;
  return {
    isEnabled: model.enabled,
    revision: model.revision,
    user: (name) => {
      const roles = rolesOf(name);
      return roles && { name, roles, password: EMPTY, options: { noPassword: false } };
    },
    isRoot: (name) => rolesOf(name)?.includes("root") ?? false,
    permissionsOf: ({ roles }) => permissionsOfRoles(roles),
    permissionsOfRoles,
    notesCreations: model.created !== undefined,
    createdAt: (name) => (rolesOf(name) === undefined ? undefined : (model.created?.[name] ?? 0)),
  };
}

/** etcd's rules, one after the other. */
function naiveVerdict(
  model: Model,
  { username, authRevision, roles: listed }: AuthIdentity,
  operation: Operation,
): string | undefined {
  if (!model.enabled || operation.kind === "open") return undefined;
  const roles = username === "" ? undefined : (listed ?? model.users[username]);
  const root =
    roles === undefined ? "UserNotFound" : roles.includes("root") ? undefined : "PermissionDenied";
  const isOfStore = username !== "" && listed === undefined && model.created !== undefined;
  const gone = !isOfStore
    ? undefined
    : model.users[username] === undefined
      ? "UserNotFound"
      : (model.created?.[username] ?? 0) > authRevision
        ? "InvalidAuthToken"
        : undefined;
  const admin = username === "" ? "UserEmpty" : (gone ?? root);
  const one = (access: KeyAccess, wanted: Range): string | undefined => {
    if (authRevision === 0) return "UserEmpty";
    if (authRevision < model.revision) return "AuthOldRevision";
    if (roles === undefined) return "PermissionDenied";
    if (roles.includes("root")) return undefined;
    const permissions = roles.flatMap((role) => model.roles[role] ?? []);
    return naiveCovers(permissions, access, wanted) ? undefined : "PermissionDenied";
  };
  const text = (value: Uint8Array) => String.fromCharCode(...value);
  switch (operation.kind) {
    case "authenticated":
      return username === "" ? "UserEmpty" : gone;
    case "root":
      return admin;
    case "user":
      // A user of the store is another party than the user of a token that lists its roles.
      if (listed !== undefined) return admin;
      return username !== "" && username === operation.name && !gone ? undefined : admin;
    case "role":
      return roles?.includes(operation.name) === true && !gone ? undefined : admin;
    case "keys":
      return one(operation.access, {
        key: text(operation.key),
        rangeEnd: text(operation.rangeEnd),
      });
    case "lease":
      if (admin === undefined) return undefined;
      for (const key of (operation.keys as ReturnType<typeof attached>).keys) {
        const refused = one(operation.access, { key, rangeEnd: "" });
        if (refused !== undefined) return refused;
      }
      return undefined;
  }
}

const names = ["", "root", "ann", "bob", "absent"];
const roleNames = ["root", "r1", "r2"];
/** No user was made after the last change. */
const made = fc.nat({ max: 3 });
const model: fc.Arbitrary<Model> = fc.record({
  enabled: fc.boolean(),
  revision: fc.integer({ min: 1, max: 3 }),
  users: fc.record({
    root: fc.constant(["root"]),
    ann: fc.subarray(roleNames),
    bob: fc.subarray(roleNames),
  }),
  roles: fc.record({
    r1: fc.array(permission, { maxLength: 4 }),
    r2: fc.array(permission, { maxLength: 4 }),
  }),
  created: fc.option(fc.record({ root: made, ann: made, bob: made }), { nil: undefined }),
});
const access = fc.constantFrom<KeyAccess>("read", "write");
/** The keys of a lease, with a pause before each. */
const attached = (
  keys: readonly string[],
): AttachedKeys & { readonly keys: readonly string[] } => ({
  keys,
  isEmpty: keys.length === 0,
  *areCovered(permissions, access) {
    for (const key of keys) {
      yield;
      if (!permissions.coversKey(access, key)) return false;
    }
    return true;
  },
});

const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.constantFrom<Operation>({ kind: "open" }, { kind: "authenticated" }, { kind: "root" }),
  fc.constantFrom(...names).map((name) => ({ kind: "user", name }) as const),
  fc.constantFrom(...roleNames).map((name) => ({ kind: "role", name }) as const),
  fc
    .tuple(access, range)
    .map(([access, wanted]) => ({ kind: "keys", access, ...bytes(wanted) }) as const),
  fc
    .tuple(access, fc.array(key, { maxLength: 3 }))
    .map(([access, keys]) => ({ kind: "lease", access, keys: attached(keys) }) as const),
);
const identity = fc.record({
  username: fc.constantFrom(...names),
  authRevision: fc.integer({ min: 0, max: 3 }),
  roles: fc.option(fc.subarray([...roleNames, "none"]), { nil: undefined }),
});

test("each verdict is that of etcd's rules, by the roles of the user or of its token", () => {
  fc.assert(
    fc.property(model, identity, operation, (state, who, what) => {
      const times = Object.values(state.created ?? {});
      fc.pre(times.every((revision) => revision <= state.revision));
      assert.equal(authorize(authorities(state), who, what), naiveVerdict(state, who, what));
    }),
    { numRuns: 3000, seed: 14 },
  );
});

const NO_LEASES: LeaseKeys = {
  stepKeys: STEP_KEYS,
  mostKeysOf: () => 0,
  coversKeysOf: () => assert.fail("no lease has keys"),
};

/** A transaction with `inner` at the given depth, in one of its branches. */
function nested(inner: TxnRequest, depth: number, branch: "success" | "failure"): TxnRequest {
  if (depth === 0) return inner;
  const op = { request: { case: "requestTxn", value: nested(inner, depth - 1, branch) } } as const;
  return TxnRequest.create({ [branch]: [op] });
}

test("a transaction is refused for what is forbidden at any level of it, in any branch", () => {
  const state = authorities({
    enabled: true,
    revision: 1,
    users: { ann: ["r1"] },
    roles: { r1: [{ key: "a", rangeEnd: "b", permType: 2 }] },
  });
  const who = { username: "ann", authRevision: 1 };
  const forbidden: Partial<TxnRequest>[] = [
    { compare: [compareOf("b")] },
    { compare: [compareOf("a", "c")] },
    { success: [rangeOf("b")] },
    { success: [rangeOf("a", "c")] },
    { failure: [putOf("b")] },
    { success: [deleteOf("a", "c", false)] },
    { failure: [deleteOf("b", "", true)] },
  ];
  for (let depth = 0; depth < 4; depth++) {
    for (const branch of ["success", "failure"] as const) {
      for (const part of forbidden) {
        const request = nested(TxnRequest.create(part), depth, branch);
        const operations = () => operationsOf("txn", request, NO_LEASES);
        assert.equal(verdictNow(state, who, operations()), "PermissionDenied");
        assert.equal(
          runSteps(verdictInSteps(state, who, operations(), STEP_KEYS)),
          "PermissionDenied",
        );
        assert.equal(
          verdictNow(state, { username: "", authRevision: 0 }, operations()),
          "UserEmpty",
        );
      }
      const allowed = TxnRequest.create({
        compare: [compareOf("a")],
        success: [rangeOf("a"), putOf("aa")],
        failure: [deleteOf("a", "b", true)],
      });
      const operations = operationsOf("txn", nested(allowed, depth, branch), NO_LEASES);
      assert.equal(verdictNow(state, who, operations), undefined);
    }
  }
});

test("a transaction that has nothing to do needs a user all the same", () => {
  const users = { ann: [] };
  const state = authorities({ enabled: true, revision: 3, users, roles: {} });
  const nobody = { username: "", authRevision: 0 };
  const verdict = (request: TxnRequest, who = nobody) =>
    verdictNow(state, who, operationsOf("txn", request, NO_LEASES));
  for (const one of [
    TxnRequest.create({}),
    TxnRequest.create({ success: [{ request: undefined }] }),
    nested(TxnRequest.create({}), 3, "failure"),
  ]) {
    assert.equal(verdict(one), "UserEmpty");
    assert.equal(verdict(one, { username: "ann", authRevision: 3 }), undefined);
  }
});

test("prev_kv needs read permission, and a lease permission for every key that is attached", () => {
  const state = authorities({
    enabled: true,
    revision: 1,
    users: { writer: ["w"] },
    roles: { w: [{ key: "a", rangeEnd: "b", permType: 1 }] },
  });
  const who = { username: "writer", authRevision: 1 };
  const leases: LeaseKeys = {
    stepKeys: STEP_KEYS,
    mostKeysOf: () => 2000,
    *coversKeysOf(id, _permissions, kind, covers) {
      assert.equal(kind, "write");
      for (let i = 0; i < 2000; i++) {
        yield;
        if (!covers(id === 7n && i === 1999 ? "b" : `a${i}`)) return false;
      }
      return true;
    },
  };
  const put = { key: fromUtf8("a"), value: EMPTY, lease: 0n, prevKv: false };
  const verdict = (kind: "put" | "leaseRevoke", request: unknown) => {
    assert.equal(isShortVerdict(kind, request, leases), (request as typeof put).lease === 0n);
    const now = verdictNow(state, who, operationsOf(kind, request, leases));
    assert.equal(
      runSteps(verdictInSteps(state, who, operationsOf(kind, request, leases), STEP_KEYS)),
      now,
    );
    return now;
  };
  assert.equal(verdict("put", put), undefined);
  assert.equal(verdict("put", { ...put, prevKv: true }), "PermissionDenied");
  assert.equal(verdict("put", { ...put, lease: 6n }), undefined);
  assert.equal(verdict("put", { ...put, lease: 7n }), "PermissionDenied");
  assert.equal(verdict("leaseRevoke", { ID: 6n }), undefined);
  assert.equal(verdict("leaseRevoke", { ID: 7n }), "PermissionDenied");
});

test("a verdict pauses after as many operations as a step has, and a lease counts as many keys", () => {
  const state = authorities({
    enabled: true,
    revision: 1,
    users: { ann: ["r1"] },
    roles: { r1: [{ key: "a", rangeEnd: "", permType: 2 }] },
  });
  const who = { username: "ann", authRevision: 1 };
  const pausesOf = (operations: readonly Operation[], stepKeys: number) => {
    const steps = verdictInSteps(state, who, operations, stepKeys);
    for (let pauses = 0; ; pauses++) if (steps.next().done === true) return pauses;
  };
  const read: Operation = { kind: "keys", access: "read", ...bytes({ key: "a", rangeEnd: "" }) };
  assert.deepEqual(
    [2, 3, 4, 6, 8].map((count) => pausesOf(Array<Operation>(count).fill(read), 3)),
    [0, 1, 1, 2, 2],
  );
  const none: Operation = { kind: "lease", access: "write", keys: attached([]) };
  assert.deepEqual([pausesOf([none, none], 64), pausesOf([none, none], 128)], [2, 1]);
});

test("a verdict needs steps where its leases have more keys, or it more operations, than a step", () => {
  const leases: LeaseKeys = { ...NO_LEASES, stepKeys: 4, mostKeysOf: (id) => Number(id) };
  const isShort = (kind: "put" | "leaseRevoke" | "txn" | "range", request: unknown) =>
    isShortVerdict(kind, request, leases);
  assert.deepEqual(
    [0n, 4n, 5n].map((lease) => isShort("put", { lease })),
    [true, true, false],
  );
  assert.deepEqual(
    [4n, 5n].map((ID) => isShort("leaseRevoke", { ID })),
    [true, false],
  );
  const txn = (...success: TxnRequest["success"]) => isShort("txn", TxnRequest.create({ success }));
  const put = (lease: bigint): TxnRequest["success"][number] => {
    const op = putOf("a");
    assert.equal(op.request?.case, "requestPut");
    return { request: { ...op.request, value: { ...op.request.value, lease } } };
  };
  const reads = (count: number) => Array<ReturnType<typeof rangeOf>>(count).fill(rangeOf("a"));
  assert.deepEqual([txn(...reads(4)), txn(...reads(5))], [true, false]);
  const compare = [compareOf("a"), compareOf("a"), compareOf("a"), compareOf("a")];
  assert.equal(isShort("txn", TxnRequest.create({ compare, failure: reads(1) })), false);
  assert.deepEqual([txn(put(4n)), txn(put(5n))], [true, false]);
  assert.deepEqual([txn(put(2n), put(0n)), txn(put(3n), put(0n))], [true, false]);
  assert.equal(txn({ request: { case: "requestTxn", value: TxnRequest.create() } }), false);
  assert.equal(isShort("range", {}), true);
});

test("users and roles that change between two steps of a check refuse it, whatever it has seen", () => {
  const model = (revision: number, key: string): Model => ({
    enabled: true,
    revision,
    users: { ann: ["r1"] },
    roles: { r1: [{ key, rangeEnd: "", permType: 2 }] },
  });
  const who = { username: "ann", authRevision: 1 };
  for (const pauses of [0, 1, 2]) {
    let state = authorities(model(1, "a"));
    // What a member hands in is one object whose content changes.
    const now = new Proxy(state, { get: (_, name) => Reflect.get(state, name) as unknown });
    const operation = { kind: "lease", access: "write", keys: attached(["a", "a"]) } as const;
    const steps = verdictInSteps(now, who, [operation], STEP_KEYS);
    for (let i = 0; i < pauses; i++) assert.equal(steps.next().done, false);
    state = authorities(model(2, "other"));
    assert.equal(runSteps(steps), "AuthOldRevision", `after ${pauses} pauses`);
  }
  assert.equal(
    runSteps(
      verdictInSteps(
        authorities(model(1, "a")),
        who,
        [{ kind: "lease", access: "write", keys: attached(["a", "a"]) }],
        STEP_KEYS,
      ),
    ),
    undefined,
  );
});

test("a check among 10,000 permissions looks at a few of them", () => {
  const many = [...Array(10_000).keys()].map((i) => ({
    permType: 2,
    key: fromUtf8(`k${String(i * 2).padStart(6, "0")}`),
    rangeEnd: EMPTY,
  }));
  const set = PermissionSet.of(many);
  assert.equal(set.size, 20_000);
  assert.equal(set.covers("read", fromUtf8("k009998"), EMPTY), true);
  assert.equal(set.covers("read", fromUtf8("k009999"), EMPTY), false);
  // Counts the comparisons: each makes a primitive of it.
  let compared = 0;
  const counting = {
    [Symbol.toPrimitive]: () => {
      compared++;
      return "k009998";
    },
  };
  assert.equal(set.coversKey("read", counting as unknown as string), true);
  assert.ok(compared <= 2 * Math.ceil(Math.log2(10_000)), `${compared} comparisons`);
});

function compareOf(key: string, end = ""): TxnRequest["compare"][number] {
  const target = { case: "version", value: 0 } as const;
  const rangeEnd = fromUtf8(end);
  return { result: 0, target: 0, key: fromUtf8(key), targetUnion: target, rangeEnd };
}

function rangeOf(key: string, end = ""): TxnRequest["success"][number] {
  const value = { ...EMPTY_RANGE, key: fromUtf8(key), rangeEnd: fromUtf8(end) };
  return { request: { case: "requestRange", value } };
}

function putOf(key: string): TxnRequest["success"][number] {
  const put = { value: EMPTY, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
  return { request: { case: "requestPut", value: { ...put, key: fromUtf8(key) } } };
}

function deleteOf(key: string, rangeEnd: string, prevKv: boolean): TxnRequest["success"][number] {
  const value = { key: fromUtf8(key), rangeEnd: fromUtf8(rangeEnd), prevKv };
  return { request: { case: "requestDeleteRange", value } };
}

const EMPTY_RANGE = {
  rangeEnd: EMPTY,
  limit: 0,
  revision: 0,
  sortOrder: 0,
  sortTarget: 0,
  serializable: false,
  keysOnly: false,
  countOnly: false,
  minModRevision: 0,
  maxModRevision: 0,
  minCreateRevision: 0,
  maxCreateRevision: 0,
} as const;
