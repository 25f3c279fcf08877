/** What only members of etcd write, the rules of a store that follows them, and their files. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  AuthEnableRequest,
  AuthRoleAddRequest,
  AuthRoleGrantPermissionRequest,
  AuthUserAddRequest,
  AuthUserGrantRoleRequest,
  authpb,
  CompactionRequest,
  DowngradeVersionTestRequest,
  etcdserverpb,
  fromUtf8,
  InternalRaftRequest,
  LeaseGrantRequest,
  membershippb,
  type raftpb,
  toLatin1,
} from "@quorate/proto";
import {
  checkEntryData,
  EtcdFileError,
  installReceived,
  receiveEtcdFile,
  Store,
  type StoreOptions,
} from "../index.ts";
import { addMember, applyEntry, Log, member } from "./store-log.ts";

const DIR = "/store";
const LIMITS = {
  maxTxnOps: 128,
  versionProblem: (ver: string) => (ver === "9.0.0" ? "too high" : undefined),
};

async function opened(options: StoreOptions = {}) {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  const keyspaces = new MemoryKeyspaceOpener(disk);
  return { disk, keyspaces, store: await Store.open(keyspaces, DIR, options) };
}

const v2 = (fields: Partial<etcdserverpb.Request>): Uint8Array =>
  etcdserverpb.Request.encode(etcdserverpb.Request.create({ ID: 7n, ...fields }));
const ATTRIBUTES = v2({
  Method: "PUT",
  Path: "/0/members/a/attributes",
  Val: '{"name":"ten","clientURLs":["http://c:1"]}',
});

/** A log with the member 10. */
function logOfTen(): Log {
  const log = new Log();
  log.change(addMember(member(10n)));
  return log;
}

async function applied(store: Store, { entries }: Log): Promise<void> {
  for (const entry of entries) applyEntry(store, entry);
}

test("entries of etcd's v2 store: names of members and the cluster's version, and nothing else", async () => {
  const { store } = await opened();
  const log = logOfTen();
  log.data(ATTRIBUTES);
  log.data(
    InternalRaftRequest.encode({ v2: v2({ Method: "PUT", Path: "/0/version", Val: "3.5.0" }) }),
  );
  for (const Method of ["QGET", "POST", "DELETE", "SYNC"]) log.data(v2({ Method, Path: "/1/key" }));
  log.data(v2({ Method: "PUT", Path: "/1/key", Val: "v" }));
  const before = store.mvcc.currentRevision;
  await applied(store, log);
  const [ten] = store.membership.members();
  assert.deepEqual([ten?.name, ten?.clientUrls], ["ten", ["http://c:1"]]);
  assert.equal(store.membership.clusterVersion, "3.5.0");
  assert.equal(store.mvcc.currentRevision, before);
  const bad = v2({ Method: "PUT", Path: "/0/members/a/attributes", Val: "{" });
  const index = log.entries.length + 1;
  const { error } = store.apply({ type: 0, index, term: 99, data: bad } as raftpb.Entry);
  assert.match(String(error), /the attributes of a member/);
  assert.equal(checkEntryData(ATTRIBUTES, LIMITS), 7n);
  const tooHigh = v2({ Method: "PUT", Path: "/0/version", Val: "9.0.0" });
  assert.throws(() => checkEntryData(tooHigh, LIMITS), /too high/);
});

test("a downgrade is noted, and a test of versions does nothing", async () => {
  const { store } = await opened();
  const log = new Log();
  const set = (enabled: boolean) =>
    log.request({
      downgradeInfoSet: membershippb.DowngradeInfoSetRequest.encode({ enabled, ver: "3.6.0" }),
    });
  set(true);
  log.request({ downgradeVersionTest: DowngradeVersionTestRequest.encode({ ver: "3.6.0" }) });
  await applied(store, log);
  assert.equal(store.membership.isDowngrading, true);
  set(false);
  applyEntry(store, log.entries[2]!);
  assert.equal(store.membership.isDowngrading, false);
});

const grant = (rangeEnd: string, permType: authpb.Permission_Type) =>
  AuthRoleGrantPermissionRequest.encode({
    name: "r",
    perm: { key: fromUtf8("a"), rangeEnd: fromUtf8(rangeEnd), permType },
  });

for (const followsEtcd of [false, true]) {
  test(`a store ${followsEtcd ? "follows" : "does not follow"} etcd's rules`, async () => {
    const { READ, WRITE } = authpb.Permission_Type;
    const { store } = await opened({ followsEtcd, minLeaseTtlSeconds: 2 });
    assert.equal(store.followsEtcd, followsEtcd);
    const log = new Log();
    log.request({ authRoleAdd: AuthRoleAddRequest.encode({ name: "r" }) });
    for (const [end, type] of [
      ["b", READ],
      ["c", READ],
      ["c", WRITE],
    ] as const)
      log.request({ authRoleGrantPermission: grant(end, type) });
    log.request({ leaseGrant: LeaseGrantRequest.encode({ ID: 5n, TTL: 1 }) });
    await applied(store, log);
    const shown = store.auth.role("r")?.map((one) => `${toLatin1(one.rangeEnd)}${one.permType}`);
    const [b, c, added] = [`b${READ}`, `c${READ}`, `c${WRITE}`];
    assert.deepEqual(shown, followsEtcd ? [b, c, added] : [b, added]);
    assert.equal(store.lessor.get(5n)?.ttlSeconds, followsEtcd ? 2 : 1);
  });
}

for (const followsEtcd of [false, true]) {
  const taken = followsEtcd ? "taken" : "refused";
  test(`a compaction of a user without the role root is ${taken}`, async () => {
    const { store } = await opened({ followsEtcd });
    const log = new Log();
    log.put("k", "v");
    log.request({ authRoleAdd: AuthRoleAddRequest.encode({ name: "root" }) });
    for (const name of ["root", "ann"]) {
      const options = { noPassword: true };
      log.request({ authUserAdd: AuthUserAddRequest.encode({ name, options }) });
    }
    const granted = { user: "root", role: "root" };
    log.request({ authUserGrantRole: AuthUserGrantRoleRequest.encode(granted) });
    log.request({ authEnable: AuthEnableRequest.encode({}) });
    log.request({
      header: { ID: 99n, username: "ann", authRevision: 100 },
      compaction: CompactionRequest.encode({ revision: 2 }),
    });
    await applied(store, log);
    assert.equal(store.mvcc.compactRevision, followsEtcd ? 2 : -1);
  });
}

test("a member of etcd gets a file that becomes the same store, which follows etcd's rules", async () => {
  const { store, disk, keyspaces } = await opened();
  const log = logOfTen();
  log.data(ATTRIBUTES);
  log.put("k", "v");
  const confState = { voters: [10n], votersOutgoing: [], learners: [], learnersNext: [] };
  const conf = { ...confState, autoLeave: false };
  const [first, ...others] = log.entries;
  store.applyConfChange(first!, addMember(member(10n)), conf);
  for (const entry of others) applyEntry(store, entry);
  await store.flush();
  const snapshot = await store.snapshot();
  const file = await snapshot.etcdFile();
  const bytes: Uint8Array[] = [];
  for await (const chunk of file.chunks) bytes.push(chunk.slice());
  await snapshot.close();
  assert.match(new TextDecoder().decode(file.data), /"\/0\/members\/a\/attributes"/);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield* bytes;
  }
  const { position } = snapshot;
  const deps = { disk, keyspaces };
  const wrong = { ...position, confState: { ...conf, voters: [10n, 11n] } };
  await assert.rejects(receiveEtcdFile(deps, DIR, wrong, chunks()), EtcdFileError);
  const early = { ...position, index: position.index - 1 };
  await assert.rejects(receiveEtcdFile(deps, DIR, early, chunks()), /announced was/);
  assert.deepEqual(disk.list(DIR), ["db"]);
  await receiveEtcdFile(deps, DIR, position, chunks());
  const { hash } = await store.mvcc.hashKV(0);
  await store.close({ flush: true });
  installReceived(disk, DIR, position.index);
  const received = await Store.open(keyspaces, DIR);
  assert.equal((await received.mvcc.hashKV(0)).hash, hash);
  assert.deepEqual(received.position, position);
  assert.deepEqual(received.membership.members()[0]?.name, "ten");
  assert.equal(received.followsEtcd, true);
  await received.close({ flush: false });
});
