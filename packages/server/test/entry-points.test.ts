/** The seam for users and roles: calls of an authority and a gate, and requests that they stop. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ClusterService,
  errorOf,
  fromUtf8,
  KVService,
  LeaseGrantRequest,
  LeaseService,
  LockService,
  MemberRemoveRequest,
  PutRequest,
  RangeRequest,
  v3lockpb,
  WatchCreateRequest,
} from "@quorate/proto";
import { LOCAL_CALL } from "@quorate/rpc";
import type { EntryUser, RequestGate } from "@quorate/store";
import type { Access, Authority } from "../src/member/authority.ts";
import { asMembersOwn, type Caller, callerOf, uncancelled } from "../src/member/caller.ts";
import { MemoryCall } from "./support/watching.ts";
import { call, put, World } from "./support/world.ts";

const key = fromUtf8("k");
const PUT = PutRequest.encode({ key, value: fromUtf8("v") });
const RANGE = RangeRequest.encode({ key });

/** Knows users by their tokens, and notes what it is called with. */
class TestAuthority implements Authority {
  revision = 3;
  /** Users that may do nothing. */
  readonly banned = new Set<string>();
  readonly admitted: string[] = [];

  identify({ token }: Caller) {
    if (token === undefined) return undefined;
    if (token === "forged") throw errorOf("InvalidAuthToken");
    return { user: token, authRevision: this.revision, provedBy: "token" } as const;
  }

  memberProposals = 0;

  memberIdentity() {
    this.memberProposals++;
    return { user: "root", authRevision: this.revision, provedBy: "member" } as const;
  }

  admit(caller: Caller, { kind }: Access) {
    const { user } = this.identify(caller) ?? { user: "" };
    this.admitted.push(`${kind} ${user}`);
    if (this.banned.has(user)) throw errorOf("PermissionDenied");
    const { revision } = this;
    return {
      confirm: () => {
        if (revision !== this.revision) throw errorOf("AuthOldRevision");
      },
    };
  }

  forbidsWatch({ token = "" }: Caller): string | undefined {
    return this.banned.has(token) ? "etcdserver: permission denied" : undefined;
  }
}

/** Permits what users of the list do at apply, and notes whose requests came. */
class TestGate implements RequestGate {
  readonly seen: string[] = [];
  readonly banned = new Set<string>();

  admit({ username, authRevision }: EntryUser, kind: string): void {
    this.seen.push(`${kind} ${username} ${authRevision}`);
    if (this.banned.has(username)) throw errorOf("PermissionDenied");
  }
}

async function started() {
  const world = new World(1);
  await world.startAll();
  const member = world.nodes[0].member!;
  const [authority, gate] = [new TestAuthority(), new TestGate()];
  member.authority = authority;
  member.store.gate = gate;
  const as = (token: string, path: string, request: Uint8Array) =>
    world.settled(call(member, path, request, { token }));
  return { world, member, authority, gate, as };
}

const { Put, Range } = KVService.methods;
const { Lock } = LockService.methods;
const { LeaseGrant } = LeaseService.methods;
const DENIED = { message: errorOf("PermissionDenied").message };

test("a proposal carries its caller's identity, and the gate decides by it at apply", async () => {
  const { world, member, gate, as } = await started();
  await as("ann", Put.path, PUT);
  await world.settled(put(member, "open", "v"));
  assert.deepEqual(gate.seen, ["put ann 3", "put  0"]);
  gate.banned.add("bob");
  const before = member.store.mvcc.currentRevision;
  await assert.rejects(as("bob", Put.path, PUT), DENIED);
  assert.equal(member.store.mvcc.currentRevision, before);
  const proposed = member.commitIndex;
  await assert.rejects(as("forged", Put.path, PUT), {
    message: errorOf("InvalidAuthToken").message,
  });
  assert.equal(member.commitIndex, proposed);
  await world.stopAll();
});

test("a read is admitted before its round and after it; a caller that may not costs no round", async () => {
  const { world, authority, as } = await started();
  await as("ann", Range.path, RANGE);
  assert.deepEqual(authority.admitted, ["range ann", "range ann"]);
  authority.admitted.length = 0;
  authority.banned.add("bob");
  await assert.rejects(as("bob", Range.path, RANGE), DENIED);
  assert.deepEqual(authority.admitted, ["range bob"]);
  await world.stopAll();
});

test("a read during which users or roles change is refused", async () => {
  const { world, authority, member } = await started();
  const caller = callerOf({ ...LOCAL_CALL, path: "" });
  const read = member.read(caller, {
    access: { kind: "status" },
    linearizable: false,
    run: () => {
      authority.revision++;
      return "secret";
    },
  });
  await assert.rejects(world.settled(read), { message: errorOf("AuthOldRevision").message });
  await world.stopAll();
});

test("a lock and its watch are the caller's; what the member does itself is root's", async () => {
  const { world, member, gate, authority, as } = await started();
  const lease = 77n;
  const lock = v3lockpb.LockRequest.encode({ name: fromUtf8("jobs"), lease });
  await as("ann", LeaseGrant.path, LeaseGrantRequest.encode({ ID: lease, TTL: 2 }));
  await as("ann", Lock.path, lock);
  assert.deepEqual(gate.seen, ["leaseGrant ann 3", "txn ann 3"]);
  gate.seen.length = 0;
  await world.until(() => member.store.lessor.get(lease) === undefined);
  assert.deepEqual(gate.seen, ["leaseRevoke root 3"]);
  assert.equal(authority.memberProposals, 1);
  await world.stopAll();
});

test("an operation is admitted before it begins", async () => {
  const { world, authority, as } = await started();
  authority.banned.add("bob");
  const request = MemberRemoveRequest.encode({ ID: 1n });
  await assert.rejects(as("bob", ClusterService.methods.MemberRemove.path, request), DENIED);
  assert.deepEqual(authority.admitted, ["memberRemove bob"]);
  await world.stopAll();
});

test("a watch is permitted by its caller when it is created, and again at a recheck", async () => {
  const { world, member, authority } = await started();
  const memory = new MemoryCall({ metadata: { token: "bob" } });
  const stream = member.watch(callerOf(memory.context), memory);
  stream.create(WatchCreateRequest.create({ key }));
  authority.banned.add("bob");
  member.watches.recheck();
  stream.create(WatchCreateRequest.create({ key }));
  assert.deepEqual(
    memory.read().map(({ created, canceled, cancelReason }) => [created, canceled, cancelReason]),
    [
      [true, false, ""],
      [false, true, "etcdserver: permission denied"],
      [true, true, "etcdserver: permission denied"],
    ],
  );
  await world.stopAll();
});

test("a caller of rpc's call: the token of the metadata, the certificate, the client's address", () => {
  const metadata = new Map([["authorization", "gateway"]]);
  const context = {
    ...LOCAL_CALL,
    path: Put.path,
    metadata: (name: string) => metadata.get(name),
    peerAddress: "10.0.0.9:1234",
    peerCommonName: "ann",
  };
  const caller = callerOf(context);
  assert.equal(caller.token, "gateway");
  metadata.set("token", "grpc");
  assert.deepEqual(
    [caller.token, caller.commonName, caller.client, caller.address, caller.origin],
    ["grpc", "ann", "CN ann", "10.0.0.9:1234", "client"],
  );
  const own = asMembersOwn(caller);
  assert.deepEqual([own.token, own.commonName, own.client], ["grpc", "ann", ""]);
  let cancelled = false;
  uncancelled(callerOf({ ...context, cancelled: true })).onCancel(() => {
    cancelled = true;
  });
  assert.equal(cancelled, false);
});
