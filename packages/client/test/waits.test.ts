/**
 * All that waits for a member ends by its own timeout and by its signal, whether no member listens
 * or one takes the connection and says nothing. The client's own times are far longer than the test
 * may take.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import {
  addTo,
  Barrier,
  Cache,
  type Client,
  campaign,
  connect,
  electedLeader,
  lockNamed,
  observeElection,
  readLock,
  type Session,
  semaphorePermit,
  text,
  type WaitOptions,
  workQueue,
  writeLock,
} from "../index.ts";
import { Leadership } from "../src/election.ts";
import { Lock } from "../src/lock.ts";

const MOST = { timeout: 60_000 };
const LONG_MS = 600_000;
const entry = { key: "k/1", revision: 1 };
const session = { lease: 1n, signal: new AbortController().signal } as Session;
const KEY = Uint8Array.of(1);

async function read(values: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of values) assert.fail("nobody said it");
}

type Waits = (client: Client, wait: WaitOptions, endpoint: string) => Promise<unknown>;

/** By the name of the function or method, behind that of its object. */
const CALLS: Readonly<Record<string, Waits>> = {
  get: (client, wait) => client.get("k", wait),
  put: (client, wait) => client.put("k", "v", wait),
  delete: (client, wait) => client.delete("k", wait),
  txn: (client, wait) => client.txn({}, wait),
  transaction: (client, wait) => client.transaction((one) => one.get("k"), wait),
  getEach: (client, wait) => read(client.getEach("k", wait)),
  compact: (client, wait) => client.compact(1, wait),
  session: (client, wait) => client.session(wait),
  memberList: (client, wait) => client.memberList(wait),
  memberAdd: (client, wait) => client.memberAdd(["http://a:1"], wait),
  memberRemove: (client, wait) => client.memberRemove(1n, wait),
  memberUpdate: (client, wait) => client.memberUpdate(1n, ["http://a:1"], wait),
  memberPromote: (client, wait) => client.memberPromote(1n, wait),
  moveLeader: (client, wait, endpoint) => client.moveLeader(endpoint, 1n, wait),
  status: (client, wait, endpoint) => client.status(endpoint, wait),
  alarmList: (client, wait) => client.alarmList(wait),
  alarmDisarm: (client, wait) => client.alarmDisarm({ memberID: 1n, alarm: 1 }, wait),
  defragment: (client, wait, endpoint) => client.defragment(endpoint, wait),
  hash: (client, wait, endpoint) => client.hash(endpoint, wait),
  hashKv: (client, wait, endpoint) => client.hashKv(endpoint, 0, wait),
  downgrade: (client, wait) => client.downgrade("validate", "3.6", wait),
  "leases.grant": (client, wait) => client.leases.grant(60, 0n, wait),
  "leases.revoke": (client, wait) => client.leases.revoke(1n, wait),
  "leases.timeToLive": (client, wait) => client.leases.timeToLive(1n, wait),
  "leases.list": (client, wait) => client.leases.list(wait),
  "leases.keepAliveOnce": (client, wait) => client.leases.keepAliveOnce(1n, wait),
  "auth.enable": (client, wait) => client.auth.enable(wait),
  "auth.disable": (client, wait) => client.auth.disable(wait),
  "auth.status": (client, wait) => client.auth.status(wait),
  "auth.userAdd": (client, wait) => client.auth.userAdd("u", "p", wait),
  "auth.userDelete": (client, wait) => client.auth.userDelete("u", wait),
  "auth.userGet": (client, wait) => client.auth.userGet("u", wait),
  "auth.userList": (client, wait) => client.auth.userList(wait),
  "auth.userChangePassword": (client, wait) => client.auth.userChangePassword("u", "p", wait),
  "auth.userGrantRole": (client, wait) => client.auth.userGrantRole("u", "r", wait),
  "auth.userRevokeRole": (client, wait) => client.auth.userRevokeRole("u", "r", wait),
  "auth.roleAdd": (client, wait) => client.auth.roleAdd("r", wait),
  "auth.roleDelete": (client, wait) => client.auth.roleDelete("r", wait),
  "auth.roleGet": (client, wait) => client.auth.roleGet("r", wait),
  "auth.roleList": (client, wait) => client.auth.roleList(wait),
  "auth.roleGrantPermission": (client, wait) =>
    client.auth.roleGrantPermission("r", { permType: 0, key: KEY, rangeEnd: KEY }, wait),
  "auth.roleRevokePermission": (client, wait) =>
    client.auth.roleRevokePermission("r", KEY, KEY, wait),
  "namespace.get": (client, wait) => client.namespace("n/", text).get("k", wait),
  "namespace.put": (client, wait) => client.namespace("n/", text).put("k", "v", wait),
  "namespace.delete": (client, wait) => client.namespace("n/", text).delete("k", wait),
  "namespace.entries": (client, wait) => read(client.namespace("n/", text).entries(wait)),
  addTo: (client, wait) => addTo(client, "k", 1, wait),
  electedLeader: (client, wait) => electedLeader(client, "e", wait),
  "leadership.proclaim": (client, wait) =>
    new Leadership(client, session, entry).proclaim("v", wait),
  "leadership.resign": (client, wait) => new Leadership(client, session, entry).resign(wait),
  "lock.release": (client, wait) => new Lock(client, session, entry, 1).release(wait),
  lockNamed: (client, wait) => lockNamed(client, session, "l", wait),
  readLock: (client, wait) => readLock(client, session, "l", wait),
  writeLock: (client, wait) => writeLock(client, session, "l", wait),
  semaphorePermit: (client, wait) => semaphorePermit(client, session, "s", 2, wait),
  campaign: (client, wait) => campaign(client, session, "e", "v", wait),
  "barrier.hold": (client, wait) => new Barrier(client, "b").hold(wait),
  "barrier.release": (client, wait) => new Barrier(client, "b").release(wait),
  "barrier.wait": (client, wait) => new Barrier(client, "b").wait(wait),
  "workQueue.put": (client, wait) => workQueue(client, "q").put("v", wait),
  "workQueue.take": (client, wait) => workQueue(client, "q").take(wait),
  "Cache.open": (client, wait) => Cache.open(client, "k", wait),
};

/** Those that end at their signal without an error: loops. */
const LOOPS: Readonly<Record<string, Waits>> = {
  watch: (client, wait) => read(client.watch("k", wait).changes()),
  follow: (client, wait) => read(client.follow("k", wait)),
  "namespace.follow": (client, wait) => read(client.namespace("n/", text).follow(wait)),
  observeElection: (client, wait) => read(observeElection(client, "e", wait)),
  "workQueue.values": (client, wait) => read(workQueue(client, "q").values(wait)),
};

/** Takes connections and says nothing. */
const silent = createServer();
const sockets = new Set<Socket>();
const LONG = { timeoutMs: LONG_MS, dialTimeoutMs: LONG_MS };
/** Clients by what is at their endpoint. No process listens on port 1. */
const ends: [what: string, endpoint: string, client: Client][] = [];

before(async () => {
  silent.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  for (const [what, endpoint] of [
    ["no member", "http://127.0.0.1:1"],
    ["a silent one", `http://127.0.0.1:${port}`],
  ] as const)
    ends.push([what, endpoint, connect({ endpoints: [endpoint], ...LONG })]);
});

after(() => {
  for (const [, , client] of ends) client.close();
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test("what waits ends with DeadlineExceeded after its timeout", MOST, async () => {
  const all = { ...CALLS, ...LOOPS };
  for (const [what, endpoint, client] of ends)
    await Promise.all(
      Object.entries(all).map(([name, call]) =>
        assert.rejects(
          call(client, { timeoutMs: 20 }, endpoint),
          { name: "ClientError", code: "DeadlineExceeded" },
          `${name}, ${what}`,
        ),
      ),
    );
});

test("what waits ends when its signal is aborted: loops end, calls say why", MOST, async () => {
  const reason = new Error("enough");
  for (const [what, endpoint, client] of ends) {
    const stop = new AbortController();
    const wait = { signal: stop.signal };
    const loops = Object.values(LOOPS).map((call) => call(client, wait, endpoint));
    const calls = Object.entries(CALLS).map(([name, call]) =>
      assert.rejects(
        call(client, wait, endpoint),
        (error: Error) => error === reason || error.cause === reason,
        `${name}, ${what}`,
      ),
    );
    stop.abort(reason);
    await Promise.all([...loops, ...calls]);
  }
});

/** Methods that wait for nothing, or that end what is told in other ways. */
const OTHERS = new Set(["call", "stream", "login", "snapshot", "namespace", "close", "keepAlive"]);

test("the tables have every method of the client", () => {
  const [[, , client]] = ends as [(typeof ends)[number]];
  const parts = [
    ["", client] as const,
    ["leases.", client.leases],
    ["auth.", client.auth],
  ] as const;
  for (const [prefix, part] of parts)
    for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(part))) {
      const { value } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(part), name)!;
      if (typeof value !== "function" || name === "constructor" || OTHERS.has(name)) continue;
      assert.ok(`${prefix}${name}` in CALLS || name in LOOPS, name);
    }
});
