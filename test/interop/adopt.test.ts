/**
 * A member that goes from etcd to Quorate and back by its files, as real processes: the same ids,
 * keys, history, leases, users and alarms on either side, and refusals that change nothing.
 * @slow
 */
import assert from "node:assert/strict";
import {
  closeSync,
  cpSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { adoptMember } from "@quorate/backup";
import { type Disk, DiskError, type DiskFile } from "@quorate/host";
import { isLocked, levelKeyspaces, nodeClock, nodeDisk } from "@quorate/host/node";
import {
  AlarmRequest_AlarmAction,
  AlarmType,
  AuthService,
  ClusterService,
  fromLatin1,
  KeyValue,
  KVService,
  LeaseService,
  MaintenanceService,
} from "@quorate/proto";
import { assertEqualHashes, leaderOf, withClient } from "../support/checks.ts";
import type { TestClient } from "../support/client.ts";
import { type TestCluster, withCluster } from "../support/cluster.ts";
import {
  type Executable,
  etcdNewest,
  etcdOf,
  quorate,
  skipWithoutEtcdNewest,
} from "../support/executables.ts";
import { TestMember } from "../support/member.ts";
import { SeededRandom, seedOf } from "../support/random.ts";
import { clientOf, ourTool, revisionOf, sendHistory, visibleState } from "../support/snapshots.ts";

const put = (key: string, value: string) => ({ key: fromLatin1(key), value: fromLatin1(value) });

/** The same member run by another program: only one of them runs at a time. */
function startAs(
  cluster: TestCluster,
  executable: Executable,
  dataDir = cluster.members[0].options.dataDir,
): TestMember {
  const { options } = cluster.members[0];
  const member = new TestMember({ ...options, command: executable.command });
  cluster.members[0] = member;
  // Here alarms end by themselves, in etcd they do not.
  member.start([
    `--data-dir=${dataDir}`,
    ...(executable.name === "quorate" ? ["--quota-auto-disarm=false"] : []),
  ]);
  return member;
}

/** The only member of its cluster, run by another program, when it responds. */
async function started(
  cluster: TestCluster,
  executable: Executable,
  dataDir?: string,
): Promise<TestClient> {
  const member = startAs(cluster, executable, dataDir);
  const client = clientOf(cluster);
  const endMs = performance.now() + 60_000;
  for (;;) {
    try {
      await revisionOf(client);
      return client;
    } catch (error) {
      // A raised alarm makes its health say no, and a user may be asked for.
      if (/user name is empty/.test(String(error))) return client;
      if (performance.now() > endMs || !member.isRunning) {
        client.close();
        throw new Error(`${String(error)}\n${member.logTail()}`);
      }
      await delay(50);
    }
  }
}

/** Puts until the member is gone; resolves with how many it has acknowledged. */
async function loaded(client: TestClient, member: TestMember): Promise<number> {
  for (let done = 0; ; done++) {
    try {
      await client.call(KVService.methods.Put, put("load", String(done)), 5000);
      if (done === 100) member.signal("SIGKILL");
    } catch {
      await member.exited;
      return done;
    }
  }
}

async function converted(command: "adopt" | "release", dir: string, ...flags: readonly string[]) {
  const { code, stdout, stderr } = await ourTool("quorateutl", command, dir, ...flags);
  assert.equal(code, 0, stderr);
  return stdout;
}

/** A disk that takes so many bytes. */
function fullAfter(freeBytes: number): Disk {
  let left = freeBytes;
  const bound = <T extends object>(target: T, name: keyof T): unknown => {
    const value = target[name];
    return typeof value === "function" ? value.bind(target) : value;
  };
  const limited = (file: DiskFile): DiskFile =>
    new Proxy(file, {
      get(target, name: keyof DiskFile) {
        if (name !== "write") return bound(target, name);
        return (chunks: readonly Uint8Array[], position: number) => {
          for (const { length } of chunks) left -= length;
          if (left < 0) throw new DiskError("NoSpace", target.path, "no space left on device");
          target.write(chunks, position);
        };
      },
    });
  return new Proxy(nodeDisk, {
    get(target, name: keyof Disk) {
      if (name !== "open") return bound(target, name);
      return (path: string, mode: "read" | "write" | "create") => limited(target.open(path, mode));
    },
  });
}

/** Ids and attributes of the members, the cluster's id, and the one that responds. */
async function identityOf(client: TestClient) {
  const { header, members } = await client.call(ClusterService.methods.MemberList, {});
  return { cluster: header!.clusterId, self: header!.memberId, members };
}

const alarm = { memberID: 5n, alarm: AlarmType.NOSPACE };
const steps = Number(process.env["QUORATE_STEPS"] ?? 400);

for (const release of ["3.5", "3.6", "3.7"] as const) {
  const theirs = release === "3.7" ? etcdNewest : etcdOf(release);
  const skip = theirs === undefined && `etcd ${release} is not installed`;
  test(`a member of etcd ${release} that was killed is adopted, released and adopted again`, {
    skip,
  }, async (t) => {
    const seed = seedOf(11);
    t.diagnostic(`seed ${seed} (QUORATE_SEED), ${steps} steps (QUORATE_STEPS)`);
    const random = new SeededRandom(seed);
    const flags = ["--snapshot-count=100"];
    await withCluster({ executable: theirs!, size: 1, flags }, async (cluster) => {
      const { dataDir } = cluster.members[0].options;
      let client = clientOf(cluster);
      try {
        const newest = await sendHistory(client, random, steps);
        await client.call(LeaseService.methods.LeaseGrant, { ID: 77n, TTL: 5000 });
        await client.call(KVService.methods.Put, { ...put("held", "1"), lease: 77n });
        // A learner that never comes: it is in the membership, the configuration and the log.
        await client.call(ClusterService.methods.MemberAdd, {
          peerURLs: ["http://127.0.0.1:1"],
          isLearner: true,
        });
        const activated = { ...alarm, action: AlarmRequest_AlarmAction.ACTIVATE };
        const ended = { ...alarm, action: AlarmRequest_AlarmAction.DEACTIVATE };
        const identity = await identityOf(client);
        const hashAt = async (revision: number): Promise<unknown> => {
          const response = await client.call(MaintenanceService.methods.HashKV, { revision });
          return [response.hash, response.compactRevision];
        };
        const hash = await hashAt(newest);
        const running = await ourTool("quorateutl", "adopt", dataDir);
        assert.equal(running.code, 1);
        assert.match(running.stderr, /a process has it open: stop the member first/);
        const acknowledged = await loaded(client, cluster.members[0]);
        client.close();
        assert.ok(acknowledged > 100);

        const said = await converted("adopt", dataDir, "--in-place");
        assert.match(said, /^Member [0-9a-f]+ \(m0\) of cluster [0-9a-f]+, of 2: revision /);
        assert.ok(existsSync(join(dataDir, "member.etcd/snap/db")));
        client = await started(cluster, quorate);
        assert.deepEqual(await identityOf(client), identity);
        assert.deepEqual(await hashAt(newest), hash);
        const { kvs } = await client.call(KVService.methods.Range, { key: fromLatin1("load") });
        assert.ok(KeyValue.decode(kvs[0]).version >= acknowledged);
        await client.call(MaintenanceService.methods.Alarm, activated);
        await client.call(MaintenanceService.methods.Alarm, ended);
        const further = await sendHistory(client, random, steps >> 1);
        assert.ok(further > newest);
        await client.call(MaintenanceService.methods.Alarm, activated);
        const grown = await visibleState(client, [newest, further]);
        client.close();

        await cluster.members[0].kill();
        await converted("release", dataDir, "--in-place");
        client = await started(cluster, theirs!);
        assert.deepEqual(await visibleState(client, [newest, further]), grown);
        assert.deepEqual(await identityOf(client), identity);
        await client.call(MaintenanceService.methods.Alarm, ended);
        const again = await sendHistory(client, random, steps >> 1);
        await client.call(MaintenanceService.methods.Alarm, activated);
        const last = await visibleState(client, [further, again]);
        client.close();
        await cluster.members[0].terminate();
        assert.doesNotMatch(cluster.members[0].log(), /"level":"(?:panic|fatal)"/);

        // The same files once more, to another directory.
        const other = join(cluster.dir, "adopted");
        await converted("adopt", dataDir, `--data-dir=${other}`);
        client = await started(cluster, quorate, other);
        assert.deepEqual(await visibleState(client, [further, again]), last);
        assert.deepEqual(await identityOf(client), identity);
      } finally {
        client.close();
        await cluster.members[0].kill();
      }
    });
  });
}

for (const release of ["3.5", "3.6", "3.7"] as const) {
  const theirs = release === "3.7" ? etcdNewest : etcdOf(release);
  const skip = theirs === undefined && `etcd ${release} is not installed`;
  test(`one of three members of etcd ${release} is adopted in its cluster, leads, and is released`, {
    skip,
  }, async () => {
    await withCluster({ executable: theirs!, size: 3 }, async (cluster) => {
      const { dataDir } = cluster.members[0].options;
      const identity = await withClient(cluster, cluster.members[0], identityOf);
      // By way of each, and each renews a lease of the others.
      const work = async (round: string): Promise<void> => {
        for (const [i, member] of cluster.members.entries()) {
          await withClient(cluster, member, async (client) => {
            const ID = BigInt(i + 1);
            if (round === "etcd")
              await client.call(LeaseService.methods.LeaseGrant, { ID, TTL: 900 });
            for (let k = 0; k < 20; k++)
              await client.call(KVService.methods.Put, {
                ...put(`${round}/${i}/${k}`, "v"),
                lease: ID,
              });
            const other = { ID: BigInt(((i + 1) % 3) + 1) };
            if (round === "etcd" && other.ID > ID) return;
            const { TTL } = await client.callStream(LeaseService.methods.LeaseKeepAlive, other);
            assert.equal(TTL, 900);
          });
        }
        await assertEqualHashes(cluster);
      };
      const replaced = async (command: "adopt" | "release", executable: Executable) => {
        await cluster.members[0].terminate();
        // The others go on meanwhile, and it catches up by its log.
        await withClient(cluster, cluster.members[1], (client) =>
          sendHistory(client, new SeededRandom(7), 60),
        );
        await converted(command, dataDir, "--in-place");
        await startAs(cluster, executable).waitReady();
        assert.deepEqual(await withClient(cluster, cluster.members[0], identityOf), identity);
        await assertEqualHashes(cluster);
      };
      const lead = async (): Promise<void> => {
        const leader = await leaderOf(cluster);
        if (leader !== cluster.members[0])
          await withClient(cluster, leader, (client) =>
            client.call(MaintenanceService.methods.MoveLeader, { targetID: identity.self }),
          );
        assert.equal(await leaderOf(cluster), cluster.members[0]);
      };
      await work("etcd");
      await replaced("adopt", quorate);
      await work("adopted");
      await lead();
      await work("leads");
      await replaced("release", theirs!);
      await work("released");
      await lead();
      await work("leads again");
      for (const member of cluster.members)
        assert.doesNotMatch(member.log(), /"level":"(?:panic|fatal)"/);
    });
  });
}

test("users and passwords go with the files", { skip: skipWithoutEtcdNewest }, async () => {
  await withCluster({ executable: etcdNewest!, size: 1 }, async (cluster) => {
    const first = clientOf(cluster);
    const { methods } = AuthService;
    await first.call(methods.UserAdd, { name: "root", password: "secret" });
    await first.call(methods.RoleAdd, { name: "root" });
    await first.call(methods.UserGrantRole, { user: "root", role: "root" });
    await first.call(methods.AuthEnable, {});
    first.close();
    const { dataDir } = cluster.members[0].options;
    for (const [command, executable] of [
      ["adopt", quorate],
      ["release", etcdNewest!],
    ] as const) {
      await cluster.members[0].terminate();
      await converted(command, dataDir, "--in-place");
      const client = await started(cluster, executable);
      await assert.rejects(client.call(KVService.methods.Put, put("a", "1")), /user name is empty/);
      const right = { name: "root", password: "secret" };
      assert.notEqual((await client.call(methods.Authenticate, right)).token, "");
      const wrong = { name: "root", password: "other" };
      await assert.rejects(client.call(methods.Authenticate, wrong), /authentication failed/);
      client.close();
    }
    await cluster.members[0].kill();
  });
});

test("what cannot be taken is refused with what to do, and changes nothing", {
  skip: skipWithoutEtcdNewest,
}, async () => {
  await withCluster({ executable: etcdNewest!, size: 1 }, async (cluster) => {
    const client = clientOf(cluster);
    for (let i = 0; i < 300; i++)
      await client.call(KVService.methods.Put, put(`k${i}`, "v".repeat(300)));
    client.close();
    await cluster.members[0].terminate();
    const { dataDir } = cluster.members[0].options;
    const copyOf = (name: string): string => {
      const copy = join(cluster.dir, name);
      cpSync(dataDir, copy, { recursive: true });
      return copy;
    };
    const refused = async (dir: string, reason: RegExp, ...flags: string[]): Promise<void> => {
      const { code, stderr } = await ourTool("quorateutl", "adopt", dir, ...flags);
      assert.equal(code, 1, stderr);
      assert.match(stderr, reason);
      assert.ok(!existsSync(`${dir}.quorate`) && !existsSync(`${dir}.quorate.new`));
    };
    const overwrite = (path: string, offset: number, bytes: string): void => {
      const file = openSync(path, "r+");
      writeSync(file, bytes, offset, "latin1");
      closeSync(file);
    };

    const database = copyOf("damaged-database");
    const pageBytes = 4096;
    const path = join(database, "member/snap/db");
    const pages = readFileSync(path).length / pageBytes;
    for (let page = 2; page < pages; page++) overwrite(path, page * pageBytes, "damaged.");
    await refused(database, /member\/snap\/db: .*What to do next: take the files of another/s);

    const log = copyOf("damaged-log");
    const [segment] = readdirSync(join(log, "member/wal")).filter((name) => name.endsWith(".wal"));
    overwrite(join(log, "member/wal", segment), 20_000, "damaged.");
    await refused(log, /member\/wal.*What to do next:/s);

    await refused(join(cluster.dir), /member\/snap\/db: there is no database of etcd/);
    const elsewhere = join(cluster.dir, "taken");
    cpSync(dataDir, elsewhere, { recursive: true });
    await refused(dataDir, /taken exists: move it away/, `--data-dir=${elsewhere}`);

    // A disk that becomes full: nothing is left of the new files, and the old ones start.
    for (const freeBytes of [0, 1_000_000]) {
      const made = join(cluster.dir, "full/member");
      const adopting = adoptMember(
        { memberDir: join(dataDir, "member"), walDir: join(dataDir, "member/wal") },
        { memberDir: made, walDir: join(made, "wal") },
        { disk: fullAfter(freeBytes), keyspaces: levelKeyspaces, clock: nodeClock, isLocked },
      );
      await assert.rejects(adopting, { name: "DiskError", code: "NoSpace" });
      assert.ok(!existsSync(made));
    }
    cluster.members[0].start();
    await cluster.waitReady();
  });
});
