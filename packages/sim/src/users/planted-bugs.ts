/**
 * Bugs in what a user is permitted, one check left out in each (planted-sources.ts has the others
 * and says how they are planted).
 */
import type { SourceBug } from "../source-bug.ts";

const OPERATIONS = "store/src/auth/request-operations.ts";

export const USER_BUGS = {
  "nested-transaction-unchecked": {
    file: OPERATIONS,
    before: 'else if (op?.case === "requestTxn") yield* txnOperations(op.value, leases);',
    after: "",
  },
  "comparisons-unchecked": {
    file: OPERATIONS,
    before: 'for (const compare of request.compare) yield keysOperation("read", compare);',
    after: "",
  },
  "branch-not-taken-unchecked": {
    file: OPERATIONS,
    before: "for (const ops of [request.success, request.failure]) {",
    after: "for (const ops of [request.success]) {",
  },
  "previous-key-unchecked": {
    file: OPERATIONS,
    before: 'if (prevKv) yield keysOperation("read", { key });',
    after: "",
  },
  "previous-keys-of-a-deletion-unchecked": {
    file: OPERATIONS,
    before: 'if (request.prevKv) yield keysOperation("read", request);',
    after: "",
  },
  "lease-of-a-put-unchecked": {
    file: OPERATIONS,
    before: 'if (lease !== 0n) yield* leaseOperations("write", lease, leases);',
    after: "",
  },
  "lease-revocation-unchecked": {
    file: OPERATIONS,
    before: 'yield* leaseOperations("write", ID, leases);',
    after: "",
  },
  "range-end-ignored": {
    file: "store/src/auth/authorize.ts",
    before: "covers(access, key, rangeEnd) === true",
    after: "covers(access, key, EMPTY) === true",
  },
  "old-auth-revision-accepted": {
    file: "store/src/auth/authorize.ts",
    before: 'if (authRevision < state.revision) return "AuthOldRevision";\n  if (rolesOf',
    after: "if (rolesOf",
  },
  "merged-permissions-outlive-a-role": {
    file: "store/src/auth/auth-state.ts",
    before: "PermissionSet.of(permissions));\n    this.#forgetMerged();",
    after: "PermissionSet.of(permissions));",
  },
  "start-forgets-enforcement": {
    file: "store/src/auth/auth-state.ts",
    before: "state.#isEnabled = isOn(backend.get(Bucket.auth, AUTH_ENABLED));",
    after: "",
  },
  "snapshot-without-users": {
    file: "store/src/snapshot-stream.ts",
    before:
      "batch.push({ key: payload.subarray(at + 8, keyEnd), value: payload.subarray(keyEnd, valueEnd) });",
    // The bucket authUsers.
    after:
      "if (payload[at + 8] !== 0x75) batch.push({ key: payload.subarray(at + 8, keyEnd), value: payload.subarray(keyEnd, valueEnd) });",
  },
  "token-outlives-its-user": {
    file: "store/src/auth/apply-auth.ts",
    before: "state.deleteUser(name);\n  state.observer?.invalidated(name);",
    after: "state.deleteUser(name);",
  },
  "token-outlives-its-password": {
    file: "store/src/auth/apply-auth.ts",
    before: "state.putUser({ ...user, password });\n  state.observer?.invalidated(user.name);",
    after: "state.putUser({ ...user, password });",
  },
  "token-outlives-its-user-in-the-log": {
    file: "store/src/auth/authorize.ts",
    before: 'return authRevision < createdAt ? "InvalidAuthToken" : undefined;',
    after: "return undefined;",
  },
  "start-forgets-creations": {
    file: "store/src/auth/auth-state.ts",
    before: "state.#notesCreations = isOn(backend.get(Bucket.auth, USER_CREATIONS));",
    after: "",
  },
  "roles-of-a-token-lost-in-the-log": {
    file: "store/src/requests/token-roles.ts",
    before: "identity: { username, authRevision, roles },",
    after: "identity: { username, authRevision },",
  },
  "serializable-read-unchecked": {
    file: "member/src/entry-points.ts",
    before: "if (!request.linearizable) return this.#read(caller, request);",
    after: "if (!request.linearizable) return Promise.resolve().then(request.run);",
  },
  "keep-alive-unchecked": {
    file: "member/src/lease/leases.ts",
    before: 'const admission = authority.admit(caller, { kind: "leaseKeepAlive", request: id });',
    after: "const admission = undefined as unknown;",
  },
  "lease-keys-of-the-leader-unchecked": {
    file: "services/src/v3/lease.ts",
    before:
      'if (keys.length > 0) await member.permit(caller, { kind: "leaseKeys", request: keys });',
    after: "",
  },
  "watch-outlives-its-permission": {
    file: "member/src/identity/access-control.ts",
    before: "this.#deps.watches.recheck();",
    after: "",
  },
  "watch-takes-what-came-after": {
    file: "member/src/watch/watch-stream.ts",
    before: "if (!mayTake(watcher, this.#client, this.#owner.permissions)) return true;",
    after: "",
  },
  "watch-waits-for-no-signature": {
    file: "member/src/identity/user-authority.ts",
    before: "return identity instanceof Promise ? identity.then(() => {}) : undefined;",
    after: "return undefined;",
  },
  "login-by-an-old-password": {
    file: "services/src/v3/auth.ts",
    before: "if (checkedRevision !== revision) continue;",
    after: "",
  },
} as const satisfies Readonly<Record<string, SourceBug>>;
