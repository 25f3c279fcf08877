/**
 * The periodic work of a backup, with given times: lag, leases, hashes, bases; and the bounds of
 * its requests.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readSegment } from "@quorate/backup";
import type { Client } from "@quorate/client";
import { MemoryDisk } from "@quorate/host/testing";
import { AuthService, errorOf, fromUtf8, LeaseService } from "@quorate/proto";
import type { LaterUsers } from "@quorate/store";
import { ClusterView } from "../node/cluster-view.ts";
import { Duties, type DutyOptions, MAX_BEHIND_MS } from "../node/duties.ts";
import { Journal } from "../src/journal.ts";

const DIR = "/b";
const START_MS = 1_767_225_600_000;

class ClientError extends Error {
  override readonly name = "ClientError";
}

async function setUp(options: Partial<DutyOptions> = {}) {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  const journal = new Journal(disk, DIR, () => START_MS);
  await journal.begin({ clusterId: 1n, revision: 10, leases: new Map() });
  const cluster = {
    revision: 10,
    leases: new Map<bigint, number>(),
    isSilent: false,
    users: undefined as LaterUsers | undefined,
  };
  const seen = { warnings: [] as string[], elsewhere: 0, bases: 0, nowMs: START_MS };
  const answer = <T>(value: T): Promise<T> =>
    cluster.isSilent
      ? Promise.reject(new ClientError("context deadline exceeded"))
      : Promise.resolve(value);
  const duties = new Duties(
    { dir: DIR, retainMs: 0, intervalMs: 0, hashIntervalMs: 60_000, ...options },
    {
      view: {
        state: () => answer({ clusterId: 1n, revision: cluster.revision }),
        leaseIds: () => answer([...cluster.leases.keys()]),
        timesToLive: (ids) => answer(new Map(ids.map((id) => [id, cluster.leases.get(id)!]))),
        hashAt: (revision) => answer({ hash: revision, compactRevision: -1 }),
        usersSince: (revision) =>
          answer(cluster.users?.authRevision === revision ? undefined : cluster.users),
      },
      disk,
      journal,
      nowMs: () => seen.nowMs,
      takeBase: async () => {
        seen.bases++;
        if (cluster.isSilent) throw new ClientError("context deadline exceeded");
        return seen.nowMs;
      },
      switchMember: () => seen.elsewhere++,
      report: () => {},
      warn: (text) => seen.warnings.push(text),
    },
    START_MS,
  );
  /** Ticks twice a second, as a run does, and ignores a cluster that does not respond. */
  const run = async (fromMs: number, toMs: number): Promise<void> => {
    for (let atMs = fromMs; atMs < toMs; atMs += 500) {
      seen.nowMs = START_MS + atMs;
      await duties
        .tick(seen.nowMs)
        .catch((error: Error) => assert.equal(error.name, "ClientError"));
    }
  };
  const recorded = () => [...readSegment(disk, `${DIR}/segment-00000001.qbk`)];
  return { journal, cluster, seen, duties, run, recorded };
}

describe("periodic work", () => {
  test("a watch that lags for ten seconds moves to another member, and so does one whose member does not respond", async () => {
    for (const how of ["behind", "silent"] as const) {
      const { cluster, seen, run, duties } = await setUp();
      await run(0, 4000);
      if (how === "behind") cluster.revision = 11;
      else cluster.isSilent = true;
      await run(4000, 4000 + MAX_BEHIND_MS);
      assert.equal(seen.elsewhere, 0);
      await run(4000 + MAX_BEHIND_MS, 4000 + MAX_BEHIND_MS + 6000);
      assert.equal(seen.elsewhere, 1);
      assert.match(
        seen.warnings[0],
        how === "behind"
          ? /at revision 10 and the cluster is at revision 11/
          : /its member does not respond/,
      );
      duties.opened();
      cluster.isSilent = false;
      cluster.revision = 10;
      await run(30_000, 60_000);
      assert.equal(seen.elsewhere, 1, "it caught up");
    }
  });

  test("a lease is recorded within five seconds of its grant or its end", async () => {
    const { cluster, journal, run } = await setUp();
    await run(0, 1000);
    cluster.leases.set(7n, 60);
    await run(1000, 6500);
    assert.deepEqual([...journal.leases], [[7n, 60]]);
    cluster.leases.delete(7n);
    await run(6500, 12_000);
    assert.deepEqual([...journal.leases], []);
  });

  test("users and roles are recorded within five seconds of a change, and not where they are hidden", async () => {
    const { cluster, run, recorded } = await setUp();
    const seen = () =>
      recorded().flatMap((record) => (record.kind === "users" ? [record.users] : []));
    await run(0, 11_000);
    assert.deepEqual(seen(), []);
    const perm = { permType: 2, key: fromUtf8("a"), rangeEnd: fromUtf8("b") };
    cluster.users = {
      isEnabled: true,
      authRevision: 7,
      users: new Map([
        ["ann", ["r"]],
        ["root", ["root"]],
      ]),
      roles: new Map([["r", [perm]]]),
    };
    await run(11_000, 16_500);
    assert.deepEqual(seen(), [cluster.users]);
    await run(16_500, 40_000);
    assert.equal(seen().length, 1);
    cluster.users = { ...cluster.users, authRevision: 8, users: new Map() };
    await run(40_000, 46_000);
    assert.deepEqual(seen().at(-1), cluster.users);
  });

  test("progress is recorded once a minute, a revision's hash once, a base each interval or a minute after a failure", async () => {
    const { cluster, seen, run, recorded } = await setUp({
      hashIntervalMs: 10_000,
      intervalMs: 100_000,
    });
    await run(0, 95_000);
    const kinds = () => recorded().map(({ kind }) => kind);
    assert.equal(kinds().filter((kind) => kind === "progress").length, 2);
    assert.equal(kinds().filter((kind) => kind === "hash").length, 1);
    assert.equal(seen.bases, 0);
    cluster.isSilent = true;
    await run(95_000, 159_000);
    assert.equal(seen.bases, 1);
    await run(159_000, 165_000);
    assert.equal(seen.bases, 2);
    cluster.isSilent = false;
    await run(165_000, 215_000);
    assert.equal(seen.bases, 2);
    await run(215_000, 240_000);
    assert.equal(seen.bases, 3);
  });
});

test("at most sixteen leases are requested concurrently", async () => {
  let pending = 0;
  let most = 0;
  const client = {
    async call(method: unknown, { ID }: { ID: bigint }) {
      assert.equal(method, LeaseService.methods.LeaseTimeToLive);
      most = Math.max(most, ++pending);
      await new Promise((resolve) => setImmediate(resolve));
      pending--;
      return ID % 10n === 0n ? { TTL: -1, grantedTTL: 0 } : { TTL: 5, grantedTTL: 60 };
    },
  };
  const ids = Array.from({ length: 100 }, (_, i) => BigInt(i));
  const found = await new ClusterView(client as unknown as Client).timesToLive(ids);
  assert.equal(found.size, 90);
  assert.equal(most, 16);
});

test("users are asked for sixteen at a time, as of one auth revision, by those that may", async () => {
  const { AuthStatus, UserList, UserGet, RoleList, RoleGet } = AuthService.methods;
  const users = Array.from({ length: 100 }, (_, i) => `u${i}`);
  const cluster = { authRevision: 7, pending: 0, most: 0, isHidden: false, isChanging: false };
  const client = {
    async call(method: unknown, { name }: { name?: string }) {
      if (method === AuthStatus) {
        if (cluster.isChanging) cluster.authRevision++;
        return { enabled: true, authRevision: cluster.authRevision };
      }
      if (cluster.isHidden) throw errorOf("PermissionDenied");
      if (method === UserList) return { users };
      if (method === RoleList) return { roles: ["r"] };
      if (method === RoleGet) return { perm: [] };
      assert.equal(method, UserGet);
      cluster.most = Math.max(cluster.most, ++cluster.pending);
      await new Promise((resolve) => setImmediate(resolve));
      cluster.pending--;
      return { roles: [name] };
    },
  };
  const view = new ClusterView(client as unknown as Client);
  assert.equal(await view.usersSince(7), undefined);
  const found = await view.usersSince(6);
  assert.deepEqual([found?.authRevision, found?.users.size, cluster.most], [7, 100, 16]);
  assert.deepEqual(found?.users.get("u7"), ["u7"]);
  cluster.isChanging = true;
  assert.equal(await view.usersSince(6), undefined);
  cluster.isHidden = true;
  assert.equal(await view.usersSince(6), undefined);
});
