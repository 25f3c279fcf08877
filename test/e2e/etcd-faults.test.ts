/**
 * Faults that etcd's own robustness tests have found, or users have, and that no other test here
 * names: 14571, 17247, 18055, 20426, 20573, 20655, and the windows of revisions of 20349.
 * @slow
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AuthService,
  Event,
  fromUtf8,
  GrpcCode,
  KeyValue,
  KVService,
  MaintenanceService,
  toUtf8,
} from "@quorate/proto";
import { AuthClient, CHEAP_LOGINS, enableAuth } from "../support/auth.ts";
import { assertEqualHashes, leaderOf } from "../support/checks.ts";
import { CallError, TestClient } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import { metric } from "../support/http.ts";
import type { TestMember } from "../support/member.ts";
import { until } from "../support/until.ts";
import { WatchClient } from "../support/watch.ts";

const { Put, Range, Txn, DeleteRange, Compact } = KVService.methods;
const { Status } = MaintenanceService.methods;
const SHORT_LOG = ["--snapshot-count=50", "--snapshot-catchup-entries=10"];
const received = "etcd_network_snapshot_receive_success";
const key = fromUtf8("k/1");
const all = { key: fromUtf8("k/"), rangeEnd: fromUtf8("k0") };

/** A change as a watch shows it. */
interface Seen {
  readonly watchId: number;
  readonly kind: string;
  readonly key: string;
  readonly revision: number;
}

function eventsOf(watch: WatchClient): Seen[] {
  return watch.responses.flatMap(({ watchId, events }) =>
    events.map((bytes) => {
      const { type, kv } = Event.decode(bytes);
      const { key: name, modRevision } = KeyValue.decode(kv!);
      return {
        watchId: Number(watchId),
        kind: String(type),
        key: toUtf8(name),
        revision: modRevision,
      };
    }),
  );
}

async function follower(cluster: TestCluster): Promise<TestMember> {
  const leader = await leaderOf(cluster);
  return cluster.members.find((member) => member !== leader)!;
}

test("14571: a member that gets users by a snapshot asks for them, also restarted", async () => {
  await withCluster({ flags: [...SHORT_LOG, ...CHEAP_LOGINS] }, async (cluster) => {
    const away = await follower(cluster);
    const [other] = cluster.members.filter((member) => member !== away);
    await away.kill();
    const root = new AuthClient(other.clientAddress);
    const stranger = new AuthClient(away.clientAddress);
    const own = new AuthClient(away.clientAddress);
    try {
      await enableAuth(root, { ann: [["k/", "k0", "readwrite"]] });
      await root.login("root");
      for (let i = 0; i < 200; i++) await root.call(Put, { key, value: fromUtf8(String(i)) });
      away.start();
      await away.waitReady();
      assert.ok((await metric(cluster, away, received)) >= 1, "it came by the log");
      const refused = async (): Promise<void> => {
        for (const serializable of [true, false]) {
          const { code } = await stranger.try(Range, { key, serializable });
          assert.equal(code, GrpcCode.InvalidArgument, "etcdserver: user name is empty");
        }
        const { code } = await stranger.try(Put, { key, value: key });
        assert.equal(code, GrpcCode.InvalidArgument);
        await own.login("ann");
        await own.call(Put, { key, value: key });
        assert.notEqual((await own.try(Put, { key: fromUtf8("other"), value: key })).code, 0);
      };
      await refused();
      const revisions = async () =>
        Promise.all(
          [root, own].map(async (client) => {
            await client.login("root");
            return (await client.call(AuthService.methods.AuthStatus, {})).authRevision;
          }),
        );
      const [one, two] = await revisions();
      assert.equal(one, two);
      await away.kill();
      away.start();
      await away.waitReady();
      await refused();
    } finally {
      for (const client of [root, stranger, own]) client.close();
    }
  });
});

test("17247: transactions that also read and compare show each event once", async () => {
  await withCluster({ size: 1 }, async (cluster) => {
    const client = new TestClient(cluster.members[0].clientAddress);
    const watch = new WatchClient(cluster.members[0].clientAddress);
    try {
      watch.create({ ...all, startRevision: 1 });
      await watch.take(1);
      const put = (name: string, value: string) => ({
        request: {
          case: "requestPut" as const,
          value: { key: fromUtf8(name), value: fromUtf8(value) },
        },
      });
      const get = { request: { case: "requestRange" as const, value: { ...all } } };
      const rounds = 30;
      for (let i = 0; i < rounds; i++)
        await client.call(Txn, {
          compare: [
            { target: 0, result: 1, key, targetUnion: { case: "version", value: -1 } },
          ] as never,
          success: [get, put("k/1", `${i}`), get, put("k/2", `${i}`)] as never,
          failure: [get, put("k/3", `${i}`), get] as never,
        });
      await client.call(Put, { key: fromUtf8("k/end"), value: key });
      await watch.until(() => eventsOf(watch).some((event) => event.key === "k/end"));
      const names = eventsOf(watch).map((event) => JSON.stringify(event));
      assert.equal(new Set(names).size, names.length, "an event came twice");
      const { kvs, header } = await client.call(Range, all);
      assert.equal(header!.revision, 1 + rounds + 1);
      const versions = kvs.reduce((sum, kv) => sum + KeyValue.decode(kv).version, 0);
      assert.equal(names.length, versions, "each change is one event");
    } finally {
      watch.close();
      client.close();
    }
  });
});

test("18055, 20426, 20573: snapshots in quick succession, and a kill behind one", async () => {
  await withCluster({ flags: SHORT_LOG }, async (cluster) => {
    const away = await follower(cluster);
    const [other] = cluster.members.filter((member) => member !== away);
    const client = new TestClient(other.clientAddress);
    let written = 0;
    let isOver = false;
    let snapshots = 0;
    const write = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        await client.call(Put, { key, value: fromUtf8(String(written)) });
        written++;
      }
    };
    const revisionOf = async (): Promise<number> =>
      (await client.call(Range, { key })).header!.revision;
    try {
      await write(10);
      // Writes go on, so that the index has moved on whenever a snapshot is asked for.
      const busy = Promise.all(
        Array.from({ length: 8 }, async () => {
          while (!isOver) await write(1);
        }),
      );
      // A failure of it shows where it is awaited.
      busy.catch(() => {});
      for (let round = 0; round < 3; round++) {
        await away.kill();
        const before = written;
        await until("the log has left the member behind", () => written > before + 300);
        away.start();
        await away.waitReady();
        // As etcd's scenario: a watch of revisions that came by the snapshot, on that member.
        const start = (await revisionOf()) - 10;
        const watch = new WatchClient(away.clientAddress);
        watch.create({ ...all, startRevision: start });
        await watch.until(() => eventsOf(watch).length >= 10);
        const seen = eventsOf(watch).map(({ revision }) => revision);
        assert.deepEqual(
          seen,
          seen.map((_, i) => start + i),
          "without a gap, in order, each once",
        );
        watch.close();
        snapshots += await metric(cluster, away, received);
      }
      isOver = true;
      await busy;
      assert.ok(snapshots >= 1, "it came by the log each time");
      assert.ok(away.isRunning);
      await away.kill();
      away.start();
      await away.waitReady();
      await assertEqualHashes(cluster);
    } finally {
      isOver = true;
      client.close();
    }
  });
});

const MANY_WATCHES = 210;

test("20655: watches made in quick succession, from everywhere in history, miss nothing", async () => {
  await withCluster({ flags: SHORT_LOG }, async (cluster) => {
    const [first] = cluster.members;
    const client = new TestClient(first.clientAddress);
    const streams = cluster.members.map(({ clientAddress }) => new WatchClient(clientAddress));
    /** A watch of each stream: its id and the revision that it was made for. */
    const starts: number[] = [];
    const late = new AbortController();
    try {
      const put = async (): Promise<number> =>
        (await client.call(Put, { key, value: key })).header!.revision;
      let revision = 0;
      const write = async (): Promise<void> => {
        while (!late.signal.aborted && starts.length < MANY_WATCHES)
          revision = Math.max(revision, await put());
      };
      const writers = Promise.all([write(), write(), write()]);
      writers.catch(() => {});
      // Each round makes watches in the past, at the present and ahead of it, and one of a negative
      // revision, on all members, while others write.
      while (starts.length < MANY_WATCHES) {
        const now = await put();
        const present = [-20, -3, -1, 0, 1, 5].map((offset) => Math.max(2, now + offset));
        for (const startRevision of [-1, ...present]) {
          const watchId = starts.push(startRevision);
          for (const stream of streams) stream.create({ ...all, startRevision, watchId });
        }
      }
      await writers;
      for (let i = 0; i < 5; i++) await put();
      const last = await put();
      for (const stream of streams) {
        const seen = (): Map<number, number[]> => {
          const byWatch = new Map<number, number[]>();
          for (const { watchId, revision } of eventsOf(stream)) {
            const list = byWatch.get(watchId);
            if (list === undefined) byWatch.set(watchId, [revision]);
            else list.push(revision);
          }
          return byWatch;
        };
        const wanted = starts.filter((start) => start > 0).length;
        await until("each watch has the last change", () => {
          const ends = [...seen().values()].filter((revisions) => revisions.at(-1) === last);
          return ends.length === wanted;
        });
        const byWatch = seen();
        for (const [i, start] of starts.entries()) {
          const expected = Array.from({ length: last - start + 1 }, (_, j) => start + j);
          assert.deepEqual(byWatch.get(i + 1) ?? [], start < 0 ? [] : expected, `from ${start}`);
        }
        const refused = stream.responses.filter(({ canceled }) => canceled);
        assert.equal(refused.length, starts.length - wanted);
        for (const { cancelReason } of refused)
          assert.equal(cancelReason, "etcdserver: mvcc: required revision has been compacted");
      }
    } finally {
      late.abort();
      for (const stream of streams) stream.close();
      client.close();
    }
  });
});

test("20349: windows of compacted, present and future revisions, on each member", async () => {
  await withCluster({ flags: SHORT_LOG }, async (cluster) => {
    const clients = cluster.members.map(({ clientAddress }) => new TestClient(clientAddress));
    const watches: WatchClient[] = [];
    try {
      const [first] = clients;
      for (let i = 0; i < 20; i++) await first.call(Put, { key, value: fromUtf8(String(i)) });
      const deleted = (await first.call(DeleteRange, { key })).header!.revision;
      await first.call(Compact, { revision: deleted, physical: true });
      for (let i = 0; i < 5; i++) await first.call(Put, { key, value: fromUtf8("new") });
      const present = (await first.call(Range, { key })).header!.revision;
      for (const client of clients) {
        await until("the member is up to date", async () => {
          const { header } = await client.call(Range, { key, serializable: true });
          return header!.revision >= present;
        });
        for (const serializable of [true, false]) {
          for (let revision = 1; revision <= present + 3; revision++) {
            const answer = await client
              .call(Range, { key, revision, serializable })
              .catch((error: CallError) => error.details);
            if (revision < deleted)
              assert.equal(answer, "etcdserver: mvcc: required revision has been compacted");
            else if (revision > present)
              assert.equal(answer, "etcdserver: mvcc: required revision is a future revision");
            else if (typeof answer === "string") assert.fail(`${revision}: ${answer}`);
            else assert.equal(answer.kvs.length, revision === deleted ? 0 : 1, String(revision));
          }
        }
      }
      // A future revision: nothing below it comes, neither an event nor a notification.
      const future = present + 4;
      for (const { clientAddress } of cluster.members) {
        const watch = new WatchClient(clientAddress);
        watches.push(watch);
        watch.create({ ...all, startRevision: future, progressNotify: true, watchId: 1 });
        watch.create({ ...all, startRevision: deleted - 1, watchId: 2 });
        watch.create({ ...all, startRevision: deleted, watchId: 3 });
        watch.progress();
      }
      for (let i = 0; i < 8; i++) await first.call(Put, { key, value: fromUtf8("later") });
      const last = (await first.call(Range, { key })).header!.revision;
      for (const watch of watches) {
        const eventsAt = (id: number): number[] =>
          eventsOf(watch)
            .filter(({ watchId }) => watchId === id)
            .map(({ revision }) => revision);
        await watch.until(() => eventsAt(1).at(-1) === last && eventsAt(3).at(-1) === last);
        const expected = (from: number): number[] =>
          Array.from({ length: last - from + 1 }, (_, i) => from + i);
        assert.deepEqual(eventsAt(1), expected(future));
        assert.deepEqual(eventsAt(2), []);
        assert.deepEqual(eventsAt(3), expected(deleted), "the deletion at the compacted revision");
        const cancelled = watch.responses.find(
          ({ watchId, canceled }) => Number(watchId) === 2 && canceled,
        );
        assert.equal(cancelled?.compactRevision, deleted);
        const early = watch.responses.filter(
          ({ watchId, created, events, header }) =>
            Number(watchId) === 1 && !created && events.length === 0 && header!.revision < future,
        );
        assert.equal(early.length, 0, "a notification below the watch's first revision");
      }
    } finally {
      for (const watch of watches) watch.close();
      for (const client of clients) client.close();
    }
  });
});

test("a member says of itself what the windows are made of", async () => {
  await withCluster({ size: 1 }, async (cluster) => {
    const client = new TestClient(cluster.members[0].clientAddress);
    try {
      const { header } = await client.call(Put, { key, value: key });
      const status = await client.call(Status, {});
      assert.equal(status.header!.revision, header!.revision);
      const answer = client.call(Compact, { revision: header!.revision + 1 });
      await assert.rejects(answer, (error: CallError) => {
        assert.ok(error instanceof CallError);
        assert.match(error.details, /required revision is a future revision/);
        return true;
      });
    } finally {
      client.close();
    }
  });
});
