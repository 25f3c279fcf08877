/**
 * Ten faults, as npm's etcd3 and its shape over our client meet them. Each is a program against the
 * shape that both have, and judges itself: it holds if what a program may count on happens in time.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createServer as createTlsServer } from "node:tls";
import { Etcd3 as OurEtcd3 } from "@quorate/client/etcd3";
import { Etcd3 } from "etcd3";
import { makeAuthority, makeCertificate } from "../../support/certs.ts";
import { startCluster, type TestCluster } from "../../support/cluster.ts";
import { quorate } from "../../support/executables.ts";

/** The client that a fault meets. */
export type Met = "npm" | "ours";

/** How a client met a fault: whether it holds, and what happened. */
export interface Verdict {
  readonly holds: boolean;
  readonly what: string;
}

/** A program has so long to get over a fault. */
const LIMIT_MS = 10_000;

interface World extends AsyncDisposable {
  cluster(size?: number, flags?: readonly string[]): Promise<TestCluster>;
  /** A client of the package that is looked at. */
  client(options: {
    hosts: string | string[];
    credentials?: { rootCertificate: Buffer };
    auth?: { username: string; password: string };
  }): Etcd3;
}

export interface Fault {
  readonly name: string;
  /** What holds. */
  readonly promise: string;
  run(world: World): Promise<Verdict>;
}

function worldOf(met: Met): World {
  const clusters: TestCluster[] = [];
  return {
    async cluster(size = 1, flags = []) {
      const cluster = await startCluster({ executable: quorate, size, flags });
      clusters.push(cluster);
      return cluster;
    },
    client: (options) =>
      met === "npm" ? new Etcd3(options) : (new OurEtcd3(options) as unknown as Etcd3),
    async [Symbol.asyncDispose]() {
      for (const cluster of clusters) await cluster.destroy();
    },
  };
}

/** The result, or "nothing for 10 s"; a failure is its message. */
async function within<T>(promise: PromiseLike<T>, limitMs = LIMIT_MS): Promise<T | string> {
  const late = delay(limitMs, `nothing for ${limitMs / 1000} s`, { ref: false });
  const failed = (error: Error): string => `${error.constructor.name}: ${error.message}`;
  return Promise.race([Promise.resolve(promise).catch(failed), late]);
}

/** A wire to a member. @param isSilent whether it takes bytes and delivers none */
class TestWire {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  isSilent = false;

  constructor(to: string) {
    const [host, port] = to.replace("http://", "").split(":");
    this.#server = createServer((near) => {
      const far = connect(Number(port), host);
      for (const [from, into] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#open.add(from);
        let isLost = false;
        from.on("data", (bytes) => {
          // What is lost once never comes: later bytes would be another stream.
          isLost ||= this.isSilent;
          if (!isLost) into.write(bytes);
        });
        from.on("error", () => into.destroy());
        from.on("close", () => {
          this.#open.delete(from);
          into.destroy();
        });
      }
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** Resets all connections. */
  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

/** Tries until a call succeeds; the milliseconds until then, or Infinity. */
async function untilWorks(call: () => PromiseLike<unknown>): Promise<number> {
  const fromMs = performance.now();
  while (performance.now() - fromMs < LIMIT_MS) {
    let isOk = false;
    const done = (async () => call())().then(
      () => {
        isOk = true;
      },
      () => {},
    );
    await within(done, LIMIT_MS - (performance.now() - fromMs));
    if (isOk) return performance.now() - fromMs;
    await delay(50);
  }
  return Number.POSITIVE_INFINITY;
}

const seconds = (ms: number): string =>
  Number.isFinite(ms) ? `${(ms / 1000).toFixed(1)} s` : `not within ${LIMIT_MS / 1000} s`;

export const FAULTS: readonly Fault[] = [
  {
    name: "leader killed",
    promise: "puts go on within 10 s, none that was acknowledged is lost, none is made twice",
    async run(world) {
      const cluster = await world.cluster(3);
      const client = world.client({ hosts: cluster.endpoints });
      const acknowledged: string[] = [];
      const keys: string[] = [];
      let isOver = false;
      const writing = Array.from({ length: 8 }, async (_, writer) => {
        for (let i = 0; !isOver; i++) {
          const key = `k/${writer}/${i}`;
          keys.push(key);
          const result = await within(client.put(key).value("v").exec());
          if (typeof result === "object") acknowledged.push(key);
        }
      });
      await delay(1000);
      const statuses = await Promise.all(
        cluster.endpoints.map((hosts) => world.client({ hosts }).maintenance.status()),
      );
      const leads = statuses.findIndex(({ leader, header }) => leader === header.member_id);
      const before = acknowledged.length;
      await cluster.members[leads]!.kill();
      const recoveryMs = await untilWorks(() => client.put("after").value("v").exec());
      await delay(2000);
      isOver = true;
      await Promise.all(writing);
      const { kvs } = await client.getAll().prefix("k/").exec();
      const twice = kvs.filter(({ version }) => version !== "1").length;
      const there = new Set(kvs.map(({ key }) => key.toString()));
      const lost = acknowledged.filter((key) => !there.has(key)).length;
      const holds = Number.isFinite(recoveryMs) && lost === 0 && twice === 0;
      const goes = acknowledged.length > before ? "" : "; the writers' puts did not go on";
      return {
        holds: holds && goes === "",
        what: `a put after ${seconds(recoveryMs)}; lost ${lost}, made twice ${twice}${goes}`,
      };
    },
  },
  {
    name: "endpoint that swallows packets",
    promise: "20 gets succeed, with one of two hosts silent",
    async run(world) {
      const cluster = await world.cluster();
      const wire = new TestWire(cluster.endpoints[0]!);
      wire.isSilent = true;
      const client = world.client({ hosts: [await wire.listen(), cluster.endpoints[0]!] });
      let good = 0;
      for (let i = 0; i < 20; i++) {
        const result = await within(client.get("k").exec());
        if (typeof result !== "object") return { holds: false, what: `get ${i + 1}: ${result}` };
        good++;
      }
      return { holds: true, what: `${good} gets succeeded` };
    },
  },
  {
    name: "certificate expired",
    promise: "a call fails within 10 s and says why",
    async run(world) {
      const authority = makeAuthority();
      const { certPem: cert, keyPem: key } = makeCertificate({
        name: "localhost",
        issuer: authority,
        dnsNames: ["localhost"],
        validDays: -1,
      });
      const server = createTlsServer({ cert, key, ALPNProtocols: ["h2"] });
      server.on("tlsClientError", () => {});
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const { port } = server.address() as { port: number };
      const client = world.client({
        hosts: `localhost:${port}`,
        credentials: { rootCertificate: Buffer.from(authority.certPem) },
      });
      const what = await within(client.get("k").exec());
      server.close();
      return { holds: /expired/.test(String(what)), what: String(what) };
    },
  },
  {
    name: "lease lost while the program was paused",
    promise: "after SIGSTOP for 6 s, a lease of 2 s is lost within 2 s",
    async run(world) {
      const cluster = await world.cluster();
      const client = world.client({ hosts: cluster.endpoints });
      const lease = client.lease(2);
      await lease.put("k").value("v");
      let lostMs = Number.POSITIVE_INFINITY;
      lease.on("lost", () => {
        lostMs = performance.now();
      });
      const pause = `kill -STOP ${process.pid}; sleep 6; kill -CONT ${process.pid}`;
      spawn("sh", ["-c", pause], { stdio: "ignore", detached: true });
      const fromMs = performance.now();
      while (performance.now() - fromMs < 5000) await delay(20);
      const awakeMs = performance.now();
      await delay(2500);
      const lateMs = lostMs - awakeMs;
      return { holds: lateMs <= 2000, what: `lost after ${seconds(Math.max(0, lateMs))}` };
    },
  },
  {
    name: "compaction under a watch",
    promise: "a watch whose history was compacted while it was cut off says so within 10 s",
    async run(world) {
      const cluster = await world.cluster();
      const wire = new TestWire(cluster.endpoints[0]!);
      const watching = world.client({ hosts: await wire.listen() });
      const writing = world.client({ hosts: cluster.endpoints });
      const watcher = await watching.watch().key("k").create();
      const told = new Promise<string>((resolve) => {
        watcher.on("error", (error) => resolve(error.message));
      });
      wire.isSilent = true;
      wire.cut();
      for (let i = 0; i < 5; i++) await writing.put("k").value(`${i}`);
      const { header } = await writing.get("k").exec();
      await writing.kv.compact({ revision: header.revision, physical: true });
      wire.isSilent = false;
      wire.cut();
      const what = await within(told);
      return { holds: /compacted/.test(what), what };
    },
  },
  {
    name: "half-open connection",
    promise: "a call over a connection that went silent ends within 10 s, and the next works",
    async run(world) {
      const cluster = await world.cluster();
      const wire = new TestWire(cluster.endpoints[0]!);
      const client = world.client({ hosts: await wire.listen() });
      await client.put("k").value("v");
      wire.isSilent = true;
      const call = within(client.get("k").exec());
      await delay(100);
      // What is lost stays lost; a new connection would be good.
      const first = delay(1000).then(() => {
        wire.isSilent = false;
      });
      const result = await call;
      await first;
      const hangs = typeof result === "string" && result.startsWith("nothing");
      const nextMs = await untilWorks(() => client.get("k").exec());
      const said = typeof result === "string" ? result : "succeeded";
      return {
        holds: !hangs && Number.isFinite(nextMs),
        what: `the call: ${said}; the next one: ${seconds(nextMs)}`,
      };
    },
  },
  {
    name: "token expired",
    promise: "puts and gets go on after the token has expired",
    async run(world) {
      const cluster = await world.cluster(1, ["--auth-token-ttl=2"]);
      const root = world.client({ hosts: cluster.endpoints });
      await (await root.user("root").create("secret")).addRole(await root.role("root").create());
      await root.auth.authEnable();
      const auth = { username: "root", password: "secret" };
      const client = world.client({ hosts: cluster.endpoints, auth });
      await client.put("k").value("v");
      await delay(5000);
      const put = await within(client.put("k").value("w").exec());
      const get = await within(client.get("k").string());
      const holds = typeof put === "object" && get === "w";
      return { holds, what: holds ? "both succeeded" : `${JSON.stringify(put)}, ${get}` };
    },
  },
  {
    name: "quota full",
    promise: "each put fails with etcd's words, and gets go on at once",
    async run(world) {
      const cluster = await world.cluster(1, ["--quota-backend-bytes=1000000"]);
      const client = world.client({ hosts: cluster.endpoints });
      const value = "x".repeat(100_000);
      let result: unknown;
      for (let i = 0; i < 40 && typeof result !== "string"; i++)
        result = await within(client.put(`k${i}`).value(value).exec());
      const second = await within(client.put("more").value(value).exec());
      const get = await within(client.get("k0").string());
      const words = /database space exceeded/;
      const holds = words.test(String(result)) && words.test(String(second)) && get === value;
      const got = get === value ? "succeeds" : String(get);
      return { holds, what: `${result}; then ${second}; a get ${got}` };
    },
  },
  {
    name: "message too large",
    promise: "the put fails with etcd's words, and other calls go on",
    async run(world) {
      const cluster = await world.cluster();
      const client = world.client({ hosts: cluster.endpoints });
      const what = await within(client.put("k").value("x".repeat(1_600_000)).exec());
      const get = await within(client.put("l").value("v").exec());
      const holds = /request is too large/.test(String(what)) && typeof get === "object";
      return { holds, what: `${what}${typeof get === "object" ? "" : `; then ${get}`}` };
    },
  },
  {
    name: "server restarting",
    promise: "after 3 s without a member, calls, a watch and a lease go on without a gap",
    async run(world) {
      const cluster = await world.cluster();
      const client = world.client({ hosts: cluster.endpoints });
      const seen: string[] = [];
      const watcher = await client.watch().prefix("w/").create();
      watcher.on("put", ({ key }) => seen.push(key.toString()));
      const lease = client.lease(15);
      await lease.put("leased").value("v");
      let isLost = false;
      lease.on("lost", () => {
        isLost = true;
      });
      await client.put("w/1").value("v");
      const [member] = cluster.members;
      await member!.kill();
      await delay(3000);
      member!.start();
      await member!.waitReady();
      const worksMs = await untilWorks(() => client.put("w/2").value("v").exec());
      const fromMs = performance.now();
      while (!seen.includes("w/2") && performance.now() - fromMs < LIMIT_MS) await delay(20);
      const watchMs = seen.includes("w/2") ? performance.now() - fromMs : Number.POSITIVE_INFINITY;
      await delay(15_000);
      const isHeld = !isLost && (await within(client.get("leased").string())) === "v";
      const isWhole = seen.filter((key, i) => seen.indexOf(key) === i).join() === "w/1,w/2";
      const holds = Number.isFinite(worksMs) && isWhole && seen.length === 2 && isHeld;
      return {
        holds,
        what:
          `a put after ${seconds(worksMs)}, its event after ${seconds(watchMs)}, ` +
          `${seen.length} events for 2 puts, the lease ${isHeld ? "goes on" : "is lost"}`,
      };
    },
  },
];

/** Runs one fault in this process. What it throws is a verdict. */
export async function meetFault(met: Met, fault: Fault): Promise<Verdict> {
  await using world = worldOf(met);
  const limit = delay(120_000, { holds: false, what: "not at its end after 120 s" });
  return Promise.race([
    fault.run(world).catch((error: Error) => ({ holds: false, what: `it threw ${error.message}` })),
    limit,
  ]);
}
