/** Which endpoint an attempt goes to: circuits, the leader, and endpoints that are found. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { GrpcCode, MaintenanceService } from "@quorate/proto";
import { connect } from "../node/connect.ts";
import { Endpoints, type EndpointsOptions, type Outcome } from "../src/endpoints.ts";
import type { ClientError } from "../src/errors.ts";
import { Failover } from "../src/failover.ts";
import { type Link, LinkError } from "../src/link.ts";

const OK = new Uint8Array(0);
const { Status } = MaintenanceService.methods;
const read = { path: "/read", request: OK, repeatable: true, metadata: { token: undefined } };
const write = { ...read, path: "/write", repeatable: false };

class ManualClock {
  timeMs = 0;
  nowMs(): number {
    return this.timeMs;
  }
  async sleep(delayMs: number): Promise<void> {
    this.timeMs += delayMs;
  }
}

/** Links that answer, fail, or say what they are told to; `calls` has the endpoints in order. */
class World {
  readonly clock = new ManualClock();
  readonly calls: string[] = [];
  readonly down = new Set<string>();
  readonly closed: string[] = [];
  /** How a call at one of `down` fails. */
  fail = (): LinkError => new LinkError(GrpcCode.Unavailable, "connection refused", false);
  /** The leader's member id and the term, as each endpoint knows them. */
  status = new Map<string, { readonly leader: bigint; readonly raftTerm: number }>();

  link = (endpoint: string): Link => ({
    endpoint,
    call: async (path) => {
      if (path !== Status.path) this.calls.push(endpoint);
      if (this.down.has(endpoint)) throw this.fail();
      if (path !== Status.path) return OK;
      const memberId = BigInt(endpoint.slice(1));
      const header = { memberId, clusterId: 1n, revision: 1, raftTerm: 1 };
      return Status.responseType.encode({ header, ...this.status.get(endpoint) });
    },
    stream: () => assert.fail("no stream is opened"),
    close: () => void this.closed.push(endpoint),
  });

  failover(names: readonly string[], more: Partial<EndpointsOptions> = {}): Failover {
    const circuit = { failures: 3, openMs: 1000 };
    const options = { first: 0, circuit, openLink: this.link, ...more };
    const endpoints = new Endpoints(names.map(this.link), this.clock, options);
    const limits = { timeoutMs: 5000, dialTimeoutMs: 700, maxPendingCalls: 10 };
    return new Failover(endpoints, { ...limits, prefersLeader: this.status.size > 0 }, this.clock);
  }

  /** The endpoints of calls since the last look. */
  seen(): string {
    return this.calls.splice(0).join(" ");
  }
}

test("a circuit opens after failures in a row, and lets one attempt through after its pause", () => {
  const world = new World();
  const circuit = { failures: 2, openMs: 1000 };
  const endpoints = new Endpoints(["e1", "e2"].map(world.link), world.clock, { first: 0, circuit });
  /** Where attempts go that end so. */
  const attempts = (...outcomes: Outcome[]): string =>
    outcomes
      .map((outcome) => {
        const place = endpoints.take();
        assert.ok(place);
        endpoints.end(place, outcome);
        return place.link.endpoint;
      })
      .join(" ");
  assert.equal(attempts("failed", "failed", "failed", "answered"), "e1 e2 e1 e2");
  // Its circuit is open: the other is used, also after a failure there.
  assert.equal(attempts("failed", "answered"), "e2 e2");
  world.clock.timeMs = 1000;
  // An attempt goes there, whose failure opens the circuit for twice as long.
  assert.equal(attempts("failed", "failed", "answered"), "e2 e1 e2");
  world.clock.timeMs = 2999;
  assert.equal(attempts("failed", "answered"), "e2 e2");
  world.clock.timeMs = 3000;
  assert.equal(attempts("failed", "answered"), "e2 e1");
  // It is closed: a failure is the first one again.
  assert.equal(attempts("failed", "failed", "answered"), "e1 e2 e1");
});

test("while a circuit is half open, one attempt at a time goes there", async () => {
  const world = new World();
  const circuit = { failures: 1, openMs: 100 };
  const endpoints = new Endpoints(["e1", "e2"].map(world.link), world.clock, { first: 0, circuit });
  const take = () => {
    const place = endpoints.take();
    assert.ok(place);
    return place;
  };
  endpoints.end(take(), "failed");
  const second = take();
  assert.equal(second.link.endpoint, "e2");
  world.clock.timeMs = 100;
  endpoints.end(second, "failed");
  const probe = take();
  assert.equal(probe.link.endpoint, "e1");
  // The other's circuit is open, too, and the probe is under way.
  assert.equal(take().link.endpoint, "e1");
  endpoints.end(probe, "unknown");
  assert.equal(take().link.endpoint, "e1");
});

test("where all circuits are open, calls go through all in turn", async () => {
  const world = new World();
  const failover = world.failover(["e1", "e2"]);
  world.down.add("e1").add("e2");
  await assert.rejects(failover.call(read), { code: "DeadlineExceeded" });
  world.calls.length = 0;
  world.down.clear();
  await failover.call(write);
  await failover.call(write);
  assert.match(world.seen(), /^(e\d) \1$/);
});

test("a call that waits in vain for as long as a dial leaves its endpoint; a shorter one does not", async () => {
  const world = new World();
  const failover = world.failover(["e1", "e2"]);
  world.down.add("e1");
  world.fail = () => {
    world.clock.timeMs += took;
    return new LinkError(GrpcCode.DeadlineExceeded, "no response in time", true);
  };
  let took = 699;
  await assert.rejects(failover.call(write), { code: "DeadlineExceeded" });
  took = 700;
  await assert.rejects(failover.call(write), { code: "DeadlineExceeded" });
  await failover.call(write);
  assert.equal(world.seen(), "e1 e1 e2");
});

test("a client that prefers the leader goes there, and leaves a member that knows none", async () => {
  const world = new World();
  const say = (leader: bigint, raftTerm: number, ...endpoints: string[]): void => {
    for (const endpoint of endpoints) world.status.set(endpoint, { leader, raftTerm });
  };
  say(3n, 5, "e1", "e2", "e3");
  const failover = world.failover(["e1", "e2", "e3"]);
  const call = async (): Promise<void> => {
    await failover.call(write);
    await turn();
  };
  await call();
  await call();
  assert.equal(world.seen(), "e1 e3");
  // Its leadership is over, and it does not know.
  say(2n, 6, "e1", "e2");
  world.clock.timeMs += 5000;
  await call();
  await call();
  assert.equal(world.seen(), "e3 e2");
  say(0n, 7, "e2");
  say(0n, 7, "e3");
  say(0n, 0, "e1");
  world.status.set("e1", { leader: 9n, raftTerm: 7 });
  world.clock.timeMs += 5000;
  await call();
  await call();
  assert.equal(world.seen(), "e2 e1");
});

test("endpoints are found at the first call, and again when all have failed", async () => {
  const world = new World();
  const answers: (readonly string[] | Error)[] = [
    new Error("dns lookup errors"),
    ["e1", "e2", "e1"],
    ["e2", "e3"],
  ];
  const find = async (): Promise<readonly string[]> => {
    const answer = answers.shift() ?? assert.fail("one look too many");
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const failover = world.failover([], { find });
  world.clock.sleep = () => new Promise(() => {});
  await assert.rejects(failover.call(read), {
    code: "Unavailable",
    message: "dns lookup errors",
    mayHaveHappened: false,
  });
  world.clock.timeMs += 1000;
  await Promise.all([failover.call(read), failover.call(read)]);
  assert.equal(world.seen(), "e1 e1");

  world.clock.timeMs += 1000;
  world.clock.sleep = async (delayMs) => {
    await turn();
    world.clock.timeMs += delayMs;
  };
  world.down.add("e1").add("e2");
  await failover.call(read);
  assert.match(world.seen(), /^e1 e2 (?:e2 )?e3$/);
  assert.deepEqual(world.closed, ["e1"]);
  failover.close();
  assert.deepEqual(world.closed, ["e1", "e2", "e3"]);
});

test("a link that is no endpoint any more ends with its last call", async () => {
  const world = new World();
  const finds = [["e1"], ["e2"]];
  const circuit = { failures: 3, openMs: 1000 };
  const endpoints = new Endpoints([], world.clock, {
    first: 0,
    circuit,
    find: async () => finds.shift() ?? assert.fail(),
    openLink: world.link,
  });
  await endpoints.found(new AbortController().signal);
  const place = endpoints.take();
  assert.ok(place);
  world.clock.timeMs += 1000;
  endpoints.lookAgain();
  await turn();
  assert.deepEqual(world.closed, []);
  endpoints.end(place, "answered");
  assert.deepEqual(world.closed, ["e1"]);
  assert.equal(endpoints.take()?.link.endpoint, "e2");
});

test("connect finds endpoints by SRV records, through a resolver of the program", async () => {
  const asked: string[] = [];
  const lookup = async (service: string, domain: string) => {
    asked.push(`_${service}._tcp.${domain}`);
    if (service.includes("ssl")) throw Object.assign(new Error("no"), { code: "ENOTFOUND" });
    return [{ host: "127.0.0.1", port: 1 }];
  };
  const discovery = { domain: "example.org", serviceName: "blue", lookup };
  await using client = connect({ discovery, timeoutMs: 50 });
  await assert.rejects(client.get("k"), { endpoint: "http://127.0.0.1:1" });
  assert.deepEqual(asked, [
    "_etcd-client-ssl-blue._tcp.example.org",
    "_etcd-client-blue._tcp.example.org",
  ]);
  await using secure = connect({ discovery, tls: {}, timeoutMs: 50 });
  await assert.rejects(secure.get("k"), (error: ClientError) => {
    return error.code === "Unavailable" && error.message === "no endpoints are found";
  });
  assert.throws(() => connect({ discovery, endpoints: ["a:1"] }), /not both/);
  assert.throws(() => connect({}), /no endpoints/);
});
