import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import { Canceller, unlessAborted } from "@quorate/kube-storage";
import { until } from "../../../../test/support/until.ts";
import { Query, Target } from "../../src/handlers/target.ts";
import { WatchTable } from "../../src/server/api-metrics.ts";
import {
  levelOf,
  MAX_WAIT_MS,
  MAX_WAITING_PER_LEVEL,
  MAX_WAITING_PER_USER,
  PriorityLevels,
} from "../../src/server/priority-levels.ts";
import { ApiWorld, CONFIG_MAPS } from "../support/api-world.ts";

describe("filters", () => {
  it("know clients by their certificates, and refuse what they may not do", async (t) => {
    const world = await ApiWorld.open(t);
    const jane = { user: "jane", groups: ["dev"] };
    const review = { method: "POST", ...jane, body: { kind: "SelfSubjectReview" } };
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const whoami = await world.request(path, { ...review, groups: ["system:masters"] });
    assert.equal(whoami.json.status.userInfo.username, "jane");
    const refused = await world.request(CONFIG_MAPS, jane);
    assert.equal(refused.status, 403);
    assert.equal(
      refused.json.message,
      'configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in ' +
        'the namespace "default"',
    );
    const anonymous = await world.request("/version", { user: "", groups: [] });
    assert.equal(anonymous.status, 403);
    const badToken = { user: "", groups: [], headers: { authorization: "Bearer x.y.z" } };
    const { status, json } = await world.request("/version", badToken);
    assert.deepEqual([status, json.reason, json.message], [401, "Unauthorized", "Unauthorized"]);
    const asJane = { headers: { "impersonate-user": "jane" } };
    assert.equal((await world.request(CONFIG_MAPS, asJane)).status, 403);
  });

  it("keep a client's audit id, if it is a short one", async (t) => {
    const world = await ApiWorld.open(t);
    const idOf = async (id: string) => {
      const { headers } = await world.request("/version", { headers: { "audit-id": id } });
      return headers["audit-id"];
    };
    assert.equal(await idOf("mine"), "mine");
    assert.notEqual(await idOf("x".repeat(65)), "x".repeat(65));
  });

  it("end a request at its deadline with 504", async (t) => {
    const world = await ApiWorld.open(t, { requestTimeoutMs: 40 });
    const exchange = world.start(CONFIG_MAPS, { method: "POST" }, true);
    await exchange.done;
    assert.equal(exchange.status, 504);
    assert.equal(
      JSON.parse(exchange.text).message,
      "Timeout: request did not complete within the allotted timeout",
    );
    const watch = world.start(`${CONFIG_MAPS}?watch=1`);
    await until("the server has done it", () => watch.status === 200);
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(watch.state, "started", "a watch has no deadline");
    watch.leave();
    const own = await ApiWorld.open(t);
    const early = own.start(`${CONFIG_MAPS}?timeout=20ms`, { method: "POST" }, true);
    await early.done;
    assert.equal(early.status, 504);
  });

  it("let a response that has begun go on behind its deadline", async (t) => {
    const world = await ApiWorld.open(t, { requestTimeoutMs: 300 });
    for (const name of ["a", "b"]) {
      const data = { value: "x".repeat(100_000) };
      await world.ok(CONFIG_MAPS, { method: "POST", body: { metadata: { name }, data } });
    }
    const exchange = world.start(CONFIG_MAPS);
    exchange.sendBudgetBytes = 0;
    await until("the response has begun", () => exchange.status === 200);
    await new Promise((resolve) => setTimeout(resolve, 1200));
    assert.equal(exchange.state, "started", exchange.text.slice(0, 300));
    exchange.sendBudgetBytes = Number.POSITIVE_INFINITY;
    exchange.listener.drained?.();
    await exchange.done;
    assert.equal(JSON.parse(exchange.text).items.length, 2);
  });

  it("forget a client that leaves, and what it has sent so far", async (t) => {
    const world = await ApiWorld.open(t);
    const half = world.start(CONFIG_MAPS, { method: "POST" }, true);
    half.receive(new TextEncoder().encode('{"metadata":'));
    half.leave();
    await until("the server has done it", () => world.plane.server.openRequests === 0);
    assert.equal(half.status, undefined);
  });

  it("refuse bodies that the server has no memory for", async (t) => {
    const world = await ApiWorld.open(t);
    const exchange = world.start(CONFIG_MAPS, { method: "POST" }, true);
    exchange.holdBudgetBytes = 3;
    exchange.receive(new TextEncoder().encode("four"));
    await exchange.done;
    assert.equal(exchange.status, 503);
  });

  it("count requests, by bounded labels", async (t) => {
    const world = await ApiWorld.open(t);
    for (let i = 0; i < 20; i++) await world.request(`/no/such/path${i}`);
    await world.request(CONFIG_MAPS);
    await until("all are counted", () => world.plane.server.openRequests === 0);
    const { entries } = world.plane.server.metrics.registry;
    const requests = entries.find(({ name }) => name === "apiserver_request_total")!;
    const { series } = requests.metric as { series: ReadonlyMap<string, unknown> };
    assert.equal(series.size, 2);
  });
});

const MASTER = { name: "m", uid: "", groups: ["system:masters"], extra: {} };
const USER = { name: "u", uid: "", groups: ["system:authenticated"], extra: {} };
const ANON = { name: "system:anonymous", uid: "", groups: ["system:unauthenticated"], extra: {} };

describe("priority levels", () => {
  const level = (user: typeof USER, line: string) => {
    const [method, path] = line.split(" ");
    return levelOf(user, Target.of(method, path, new Query("")));
  };

  it("are chosen by user and request", () => {
    assert.equal(level(MASTER, "GET /api/v1/configmaps"), "exempt");
    assert.equal(level(ANON, "GET /readyz/etcd"), "exempt");
    assert.equal(level(ANON, "GET /api/v1/configmaps"), "catch-all");
    assert.equal(level(USER, "GET /api/v1/configmaps"), "workload");
    const lease = "PUT /apis/coordination.k8s.io/v1/namespaces/x/leases/y";
    assert.equal(level(USER, lease), "leader-election");
    const scheduler = { ...USER, name: "system:kube-scheduler" };
    assert.equal(level(scheduler, "GET /api/v1/pods"), "system");
  });

  it("serve the queues of users in turn", async () => {
    const levels = new PriorityLevels(145, new ManualClock());
    const seats: (() => void)[] = [];
    for (let i = 0; i < 5; i++) seats.push(await levels.seat("catch-all", "first"));
    const order: string[] = [];
    for (const user of ["a", "a", "a", "b"])
      void levels.seat("catch-all", user).then(() => order.push(user));
    for (const release of seats) release();
    await Promise.resolve();
    await new Promise(setImmediate);
    assert.deepEqual(order, ["a", "b", "a", "a"]);
    assert.deepEqual(levels.counts("catch-all"), { taken: 4, waiting: 0, rejected: 0 });
    seats[0]();
    assert.equal(levels.counts("catch-all").taken, 4, "a seat is released once");
  });

  it("refuse when too many wait, and after a while", async () => {
    const clock = new ManualClock();
    const levels = new PriorityLevels(1, clock);
    await levels.seat("workload", "x");
    const waiting: Promise<unknown>[] = [];
    const wait = (user: string) => {
      const seat = levels.seat("workload", user).catch((error) => error.httpStatus);
      waiting.push(seat);
      return seat;
    };
    for (let i = 0; i < MAX_WAITING_PER_USER; i++) void wait("u");
    assert.equal(await wait("u"), 429);
    for (let i = MAX_WAITING_PER_USER; i < MAX_WAITING_PER_LEVEL; i++) void wait(`other-${i}`);
    assert.equal(await wait("last"), 429);
    clock.advance(MAX_WAIT_MS);
    const results = new Set(await Promise.all(waiting));
    assert.deepEqual([...results], [429]);
    assert.equal(levels.counts("workload").waiting, 0);
  });
});

describe("open watches", () => {
  it("are bounded for each user and in all", async (t) => {
    const world = await ApiWorld.open(t);
    const { metrics } = world.plane.server;
    const watches = new WatchTable(metrics, { perUser: 2, total: 3 });
    const open = (name: string) => {
      const target = Target.of("GET", "/api/v1/configmaps", new Query("watch=1"));
      const call = { user: { ...USER, name }, target, header: () => "" };
      return watches.open(call as never, undefined as never, () => {});
    };
    const release = open("a");
    open("a");
    assert.throws(() => open("a"), { httpStatus: 429 });
    open("b");
    assert.throws(() => open("c"), { httpStatus: 429 });
    release();
    release();
    open("c");
    assert.equal(watches.count, 3);
  });
});

describe("a canceller", () => {
  it("rejects what waits, once", async () => {
    const canceller = new Canceller();
    const never = new Promise<never>(() => {});
    const waiting = unlessAborted(canceller, never);
    canceller.abort(new Error("gone"));
    canceller.abort(new Error("again"));
    await assert.rejects(waiting, { message: "gone" });
    await assert.rejects(unlessAborted(canceller, never), { message: "gone" });
    assert.equal(canceller.aborted, true);
  });
});
