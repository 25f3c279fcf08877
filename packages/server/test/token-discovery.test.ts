/** Members of a new cluster that find each other by a token, with a service in memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogFields, Logger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import type { Registry, RegistryRecord } from "@quorate/member";
import { initialClusterText } from "@quorate/member";
import { DiscoveryError, discoverByToken } from "@quorate/member/testing";
import { loadConfig } from "../src/config/load.ts";
import type { ServerConfig } from "../src/config/server-config.ts";

const PREFIX = "/_etcd/registry/tok";

/** The service: keys with revisions, and calls that fail while it is away. */
class MemoryRegistry implements Registry {
  readonly keys = new Map<string, RegistryRecord>();
  revision = 1;
  isAway = false;
  /** Whether watches break at once. */
  watchesBreak = false;
  readonly #waiting: (() => void)[] = [];

  set(key: string, value: string): void {
    this.revision++;
    const createRevision = this.keys.get(key)?.createRevision ?? this.revision;
    this.keys.set(key, { key, value, createRevision });
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #reach(): void {
    if (this.isAway) throw new Error("connection refused");
  }

  async get(key: string): Promise<string | undefined> {
    this.#reach();
    return this.keys.get(key)?.value;
  }

  async put(key: string, value: string): Promise<void> {
    this.#reach();
    this.set(key, value);
  }

  async list(prefix: string, limit: number) {
    this.#reach();
    const records = [...this.keys.values()].filter(({ key }) => key.startsWith(prefix));
    return { records: records.slice(0, limit), revision: this.revision };
  }

  async puts(prefix: string, revision: number) {
    if (this.watchesBreak) throw new Error("the watch has ended");
    for (;;) {
      const records = [...this.keys.values()].filter(
        ({ key, createRevision }) => key.startsWith(prefix) && createRevision >= revision,
      );
      if (records.length > 0) return { records, revision: this.revision };
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  async close(): Promise<void> {}
}

async function configOf(name: string, port: number): Promise<ServerConfig> {
  const url = `http://127.0.0.1:${port}`;
  const invocation = await loadConfig(
    [
      `--name=${name}`,
      "--discovery-endpoints=registry:2379",
      "--discovery-token=tok",
      `--listen-peer-urls=${url}`,
      `--initial-advertise-peer-urls=${url}`,
    ],
    {},
    () => "",
  );
  assert.ok(invocation.kind === "run");
  return invocation.config;
}

/** Keeps its lines. */
class Lines implements Logger {
  readonly lines: { readonly msg: string; readonly fields: LogFields }[] = [];
  debug = (msg: string, fields: LogFields = {}): void => void this.lines.push({ msg, fields });
  info = this.debug;
  warn = this.debug;
  error = this.debug;
  child(): Logger {
    return this;
  }
}

class Discovering {
  readonly registry = new MemoryRegistry();
  readonly clock = new ManualClock();
  readonly logger = new Lines();

  async join(name: string, port: number): Promise<string> {
    const config = await configOf(name, port);
    const deps = { open: async () => this.registry, clock: this.clock, logger: this.logger };
    return initialClusterText(await discoverByToken(config, config.discovery!, BigInt(port), deps));
  }

  /** Runs `promise` to its end, with time passing. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    let isDone = false;
    const done = promise.finally(() => {
      isDone = true;
    });
    done.catch(() => {});
    for (let i = 0; i < 200 && !isDone; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      this.clock.advance(1000);
    }
    assert.ok(isDone, "it does not end");
    return done;
  }
}

async function refused(joining: Promise<unknown>, code: string, message: RegExp): Promise<void> {
  await assert.rejects(joining, (error) => {
    assert.ok(error instanceof DiscoveryError);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    return true;
  });
}

test("three members that start in any order find the same cluster", async () => {
  const { registry, join, settled } = bound(new Discovering());
  registry.set(`${PREFIX}/_config/size`, "3");
  const joined = await settled(Promise.all([join("b", 2), join("c", 3), join("a", 1)]));
  assert.equal(new Set(joined).size, 1);
  assert.match(joined[0], /a=http:\/\/127\.0\.0\.1:1/);
  assert.equal(joined[0].split(",").length, 3);
});

test("a member that starts again finds its own registration", async () => {
  const { registry, join, settled } = bound(new Discovering());
  registry.set(`${PREFIX}/_config/size`, "1");
  const first = await settled(join("a", 1));
  assert.equal(await settled(join("a", 1)), first);
});

test("a service that is away is retried, with longer waits", async () => {
  const world = new Discovering();
  const { registry, join, settled } = bound(world);
  registry.isAway = true;
  const joining = join("a", 1);
  for (let i = 0; i < 40; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    world.clock.advance(1000);
  }
  const waits = world.logger.lines
    .filter(({ msg }) => msg === "retry connecting to discovery service")
    .map(({ fields }) => fields["backoff"]);
  assert.deepEqual(waits.slice(0, 4), ["2s", "4s", "8s", "16s"]);
  registry.isAway = false;
  registry.set(`${PREFIX}/_config/size`, "1");
  assert.equal(await settled(joining), "a=http://127.0.0.1:1");
});

test("where watches break, members are listed again", async () => {
  const { registry, join, settled } = bound(new Discovering());
  registry.watchesBreak = true;
  registry.set(`${PREFIX}/_config/size`, "2");
  const [one, two] = await settled(Promise.all([join("a", 1), join("b", 2)]));
  assert.equal(one, two);
});

const turns = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
};

test("who waits hears of each registration once, from where it has read", async () => {
  const { registry, join, settled } = bound(new Discovering());
  const asked: number[] = [];
  const puts = registry.puts.bind(registry);
  registry.puts = (prefix, revision) => {
    asked.push(revision);
    return puts(prefix, revision);
  };
  registry.set(`${PREFIX}/_config/size`, "3");
  const joining = join("a", 1);
  await turns();
  assert.deepEqual(asked, [registry.revision + 1]);
  registry.set(`${PREFIX}/members/b`, "b=http://127.0.0.1:2");
  await turns();
  assert.deepEqual(asked.slice(1), [registry.revision + 1]);
  registry.set(`${PREFIX}/members/c`, "c=http://127.0.0.1:3");
  assert.equal(
    await settled(joining),
    "a=http://127.0.0.1:1,b=http://127.0.0.1:2,c=http://127.0.0.1:3",
  );
});

test("a service that is away again is tried again as soon as the first time", async () => {
  const world = new Discovering();
  const { registry, join, settled } = bound(world);
  const waits = () =>
    world.logger.lines
      .filter(({ msg }) => msg === "retry connecting to discovery service")
      .map(({ fields }) => fields["backoff"]);
  const whileAway = async (count: number) => {
    registry.isAway = true;
    const { length } = waits();
    for (let i = 0; i < 100 && waits().length < length + count; i++) {
      await turns();
      world.clock.advance(1000);
    }
    registry.isAway = false;
  };
  registry.watchesBreak = true;
  registry.set(`${PREFIX}/_config/size`, "2");
  const joining = join("a", 1);
  await whileAway(2);
  for (let i = 0; i < 20; i++) {
    await turns();
    world.clock.advance(1000);
  }
  await whileAway(1);
  assert.deepEqual(waits(), ["2s", "4s", "2s"]);
  registry.set(`${PREFIX}/members/b`, "b=http://127.0.0.1:2");
  await settled(joining);
});

test("who comes when all have registered does not register", async () => {
  const { registry, join, settled } = bound(new Discovering());
  registry.set(`${PREFIX}/_config/size`, "2");
  for (const port of [2, 3])
    registry.set(`${PREFIX}/members/m${port}`, `m${port}=http://127.0.0.1:${port}`);
  const { size } = registry.keys;
  await refused(settled(join("a", 1)), "Full", /cluster is full/);
  assert.equal(registry.keys.size, size);
});

test("a cluster has a hundred members at most", async () => {
  const { registry, join, settled } = bound(new Discovering());
  registry.set(`${PREFIX}/_config/size`, "100");
  for (let port = 2; port <= 100; port++)
    registry.set(`${PREFIX}/members/m${port}`, `m${port}=http://127.0.0.1:${port}`);
  assert.equal((await settled(join("a", 1))).split(",").length, 100);
});

test("of members that register at once, the first ones are the cluster", async () => {
  const { registry, join, settled } = bound(new Discovering());
  registry.set(`${PREFIX}/_config/size`, "2");
  const results = await settled(
    Promise.allSettled([join("a", 1), join("b", 2), join("c", 3), join("d", 4)]),
  );
  const clusters = results.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  assert.equal(clusters.length, 2);
  assert.equal(clusters[0], clusters[1]);
  for (const one of results)
    if (one.status === "rejected") assert.equal((one.reason as DiscoveryError).code, "Full");
});

test("what is wrong with the service's keys is named", async () => {
  const world = new Discovering();
  const { registry, join, settled } = bound(world);
  await refused(settled(join("a", 1)), "SizeNotFound", /size key not found: put the number/);
  for (const size of ["", "x", "0", "-1", "101", "1e3", "3 4"]) {
    registry.set(`${PREFIX}/_config/size`, size);
    await refused(settled(join("a", 1)), "BadSize", /size key is bad: .* from 1 to 100, got "/);
  }
  registry.set(`${PREFIX}/_config/size`, "2");
  registry.set(`${PREFIX}/members/junk`, "no url");
  registry.set(`${PREFIX}/members/9`, "z=ftp://nowhere");
  await refused(settled(join("a", 1)), "BadUrls", /^discovery: invalid peer URL: /);
  assert.ok(world.logger.lines.some(({ msg }) => msg.startsWith("invalid peer info")));
  registry.keys.delete(`${PREFIX}/members/9`);
  registry.set(`${PREFIX}/members/8`, "z=http://127.0.0.1:1");
  await refused(settled(join("a", 1)), "DuplicateUrl", /has duplicate url$/);
  registry.set(`${PREFIX}/members/7`, "y=http://127.0.0.1:7");
  await refused(settled(join("b", 2)), "Full", /cluster is full: 2 members have registered/);
});

/** The world's parts, with methods that keep their receiver. */
function bound(world: Discovering) {
  return {
    registry: world.registry,
    join: (name: string, port: number) => world.join(name, port),
    settled: <T>(promise: Promise<T>) => world.settled(promise),
  };
}
