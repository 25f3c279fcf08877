/** The rules of retrying a call at another endpoint, with fake links and a manual clock. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcCode, MaintenanceService } from "@quorate/proto";
import { Client } from "../src/client.ts";
import { Endpoints } from "../src/endpoints.ts";
import type { ClientError } from "../src/errors.ts";
import { Failover, type FailoverOptions } from "../src/failover.ts";
import { type CallMetadata, type Link, LinkError, type LinkStream } from "../src/link.ts";
import { mayResume } from "../src/resume.ts";

/** What a fake link does with a call: respond, or fail. */
type Behaviour = (call: {
  path: string;
  metadata: CallMetadata;
  timeoutMs: number;
}) => Uint8Array | LinkError | Promise<Uint8Array>;

class FakeLink implements Link {
  readonly endpoint: string;
  behaviour: Behaviour;
  readonly calls: {
    path: string;
    metadata: CallMetadata;
    dialTimeoutMs: number;
    timeoutMs: number;
  }[] = [];
  closed = false;

  constructor(endpoint: string, behaviour: Behaviour) {
    this.endpoint = endpoint;
    this.behaviour = behaviour;
  }

  async call(
    path: string,
    _request: Uint8Array,
    metadata: CallMetadata,
    dialTimeoutMs: number,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    this.calls.push({ path, metadata, dialTimeoutMs, timeoutMs });
    if (signal?.aborted) throw new LinkError(GrpcCode.Canceled, "context canceled", true);
    const result = await this.behaviour({ path, metadata, timeoutMs });
    if (result instanceof LinkError) throw result;
    return result;
  }

  async stream(path: string): Promise<LinkStream> {
    const result = await this.behaviour({ path, metadata: { token: undefined }, timeoutMs: 0 });
    if (result instanceof LinkError) throw result;
    const { endpoint } = this;
    return {
      send: () => {},
      finish: () => {},
      cancel: () => {},
      async *responses() {
        yield OK;
        throw new LinkError(GrpcCode.Unavailable, `${endpoint} went away`, true);
      },
    };
  }

  close(): void {
    this.closed = true;
  }
}

class FakeClock {
  timeMs = 0;
  readonly pauses: number[] = [];
  nowMs(): number {
    return this.timeMs;
  }
  async sleep(delayMs: number): Promise<void> {
    this.pauses.push(delayMs);
    this.timeMs += delayMs;
  }
}

const noTimer = { after: () => assert.fail("no timer is needed") };

const OK = new Uint8Array(0);
const answers: Behaviour = () => OK;
const refuses: Behaviour = () =>
  new LinkError(GrpcCode.Unavailable, "No connection established", false);
const drops: Behaviour = () => new LinkError(GrpcCode.Unavailable, "connection dropped", true);
const read = { path: "/read", request: OK, repeatable: true, metadata: { token: undefined } };
const write = { ...read, path: "/write", repeatable: false };

const LIMITS: FailoverOptions = {
  timeoutMs: 5000,
  dialTimeoutMs: 700,
  maxPendingCalls: 3,
  prefersLeader: false,
};
const CIRCUIT = { failures: 3, openMs: 1000 };

function over(links: readonly Link[], limits: FailoverOptions, clock: FakeClock): Failover {
  return new Failover(new Endpoints(links, clock, { first: 0, circuit: CIRCUIT }), limits, clock);
}

function setUp(...behaviours: Behaviour[]): {
  failover: Failover;
  links: FakeLink[];
  clock: FakeClock;
} {
  const links = behaviours.map((behaviour, index) => new FakeLink(`e${index}`, behaviour));
  const clock = new FakeClock();
  return {
    failover: over(links, LIMITS, clock),
    links,
    clock,
  };
}

const counts = (links: readonly FakeLink[]): number[] => links.map((link) => link.calls.length);

test("a client stays with an endpoint that responds", async () => {
  const { failover, links } = setUp(answers, answers);
  for (let i = 0; i < 5; i++) await failover.call(read);
  assert.deepEqual(counts(links), [5, 0]);
  assert.deepEqual(links[0].calls[0], {
    path: "/read",
    metadata: { token: undefined },
    dialTimeoutMs: 700,
    timeoutMs: 5000,
  });
});

test("reads and writes move on from endpoints that cannot be reached, and stay where they succeed", async () => {
  const { failover, links, clock } = setUp(refuses, refuses, answers);
  await failover.call(write);
  await failover.call(read);
  assert.deepEqual(counts(links), [1, 1, 2]);
  assert.deepEqual(clock.pauses, []);
});

test("a read is retried after a lost connection, a write is not", async () => {
  const reading = setUp(drops, answers);
  await reading.failover.call(read);
  assert.deepEqual(counts(reading.links), [1, 1]);
  const writing = setUp(drops, answers);
  await assert.rejects(writing.failover.call(write), {
    name: "ClientError",
    grpcCode: GrpcCode.Unavailable,
    message: "connection dropped",
    endpoint: "e0",
  });
  assert.deepEqual(counts(writing.links), [1, 0]);
});

test("errors other than UNAVAILABLE are not retried", async () => {
  const { failover, links } = setUp(
    () =>
      new LinkError(
        GrpcCode.OutOfRange,
        "etcdserver: mvcc: required revision has been compacted",
        true,
      ),
    answers,
  );
  await assert.rejects(failover.call(read), {
    grpcCode: GrpcCode.OutOfRange,
    code: "Compacted",
  });
  assert.deepEqual(counts(links), [1, 0]);
});

test("after a round without success it pauses, longer each time up to a second, until the timeout", async () => {
  const { failover, links, clock } = setUp(refuses, drops);
  const failure = await failover.call(read).then(
    () => assert.fail("it answered"),
    (error: ClientError) => error,
  );
  assert.equal(failure.grpcCode, GrpcCode.DeadlineExceeded);
  assert.equal(failure.message, "context deadline exceeded");
  assert.equal((failure.cause as LinkError).message, "connection dropped");
  assert.deepEqual(clock.pauses, [25, 50, 100, 200, 400, 800, 1000, 1000, 1000]);
  assert.deepEqual(counts(links), [10, 10]);
  // Each attempt gets the remaining time.
  assert.equal(
    links[0].calls.at(-1)!.timeoutMs,
    5000 - clock.pauses.reduce((sum, pause) => sum + pause),
  );
  assert.equal(links[0].calls.at(-1)!.dialTimeoutMs, 425);
});

test("when the timeout cuts the last attempt short, the error of the attempt before is reported", async () => {
  const { failover, clock } = setUp(() => {
    if (clock.timeMs < 4600)
      return new LinkError(GrpcCode.Unavailable, "connection refused", false);
    clock.timeMs = 5000;
    return new LinkError(GrpcCode.DeadlineExceeded, "no response in time", true);
  });
  const failure = (await failover.call(read).catch((error: unknown) => error)) as ClientError;
  assert.deepEqual(
    [failure.message, (failure.cause as LinkError).message],
    ["context deadline exceeded", "connection refused"],
  );
});

test("an endpoint that comes back is used again", async () => {
  const { failover, links, clock } = setUp(refuses);
  links[0].behaviour = () =>
    clock.timeMs < 300 ? new LinkError(GrpcCode.Unavailable, "", false) : OK;
  await failover.call(write);
  assert.deepEqual(clock.pauses, [25, 50, 100, 200]);
});

test("concurrent calls beyond the limit are refused", async () => {
  const { failover, links } = setUp(answers);
  const gate = Promise.withResolvers<Uint8Array>();
  links[0].behaviour = () => gate.promise;
  const pending = [failover.call(read), failover.call(read), failover.call(read)];
  await assert.rejects(failover.call(read), {
    grpcCode: GrpcCode.ResourceExhausted,
    message: "more than 3 calls are pending",
  });
  gate.resolve(OK);
  await Promise.all(pending);
  await failover.call(read);
});

test("a closed client refuses calls and closes its links", async () => {
  const { failover, links } = setUp(answers, answers);
  failover.close();
  assert.deepEqual(
    links.map((link) => link.closed),
    [true, true],
  );
  await assert.rejects(failover.call(read), { grpcCode: GrpcCode.Canceled });
});

test("closing ends the pauses of pending calls", async () => {
  const { failover, clock } = setUp(refuses);
  const sleeping = clock.sleep.bind(clock);
  clock.sleep = async (delayMs) => {
    await sleeping(delayMs);
    failover.close();
  };
  await assert.rejects(failover.call(read), { message: "No connection established" });
  assert.deepEqual(clock.pauses, [25]);
});

test("status calls the named endpoint, over a link of its own if needed", async () => {
  const { failover, links } = setUp(answers, answers);
  const opened: FakeLink[] = [];
  const open = (endpoint: string): Link => {
    opened.push(new FakeLink(endpoint, answers));
    return opened[0];
  };
  const client = new Client(failover, open, undefined, noTimer);
  await client.status("e1");
  assert.deepEqual(counts(links), [0, 1]);
  await client.hashKv("elsewhere");
  assert.equal(opened[0].calls.length, 1);
  assert.equal(opened[0].closed, true);
  assert.equal(links[1].closed, false);
});

/**
 * A server with users: hands out tokens, and takes the newest one only. @param refusal what it says
 * of others
 */
function guarded(refusal = "etcdserver: invalid auth token"): Behaviour & { issued: number } {
  const behaviour: Behaviour = ({ path, metadata }) => {
    if (path.endsWith("/Authenticate")) return tokenAnswer(`t${++server.issued}`);
    return metadata.token === `t${server.issued}`
      ? OK
      : new LinkError(GrpcCode.Unauthenticated, refusal, true);
  };
  const server = Object.assign(behaviour, { issued: 0 });
  return server;
}

/** An AuthenticateResponse with a token: field 2, a string. */
function tokenAnswer(token: string): Uint8Array {
  return Uint8Array.from([
    0x12,
    token.length,
    ...token.split("").map((char) => char.charCodeAt(0)),
  ]);
}

test("a user's token is fetched once for many calls, and again when it has expired", async () => {
  const server = guarded();
  const { failover, links } = setUp(server);
  const client = new Client(failover, () => assert.fail(), { name: "u", password: "p" }, noTimer);
  await Promise.all([client.get("a"), client.put("b", "c")]);
  assert.equal(server.issued, 1);
  server.issued = 7;
  await client.put("b", "c");
  assert.equal(server.issued, 8);
  assert.equal(links[0].calls.at(-1)!.metadata.token, "t8");
});

test("a user's token is fetched again when users have changed since", async () => {
  const server = guarded("etcdserver: revision of auth store is old");
  const { failover } = setUp(server);
  const client = new Client(failover, () => assert.fail(), { name: "u", password: "p" }, noTimer);
  await client.put("b", "c");
  server.issued = 7;
  await client.put("b", "c");
  assert.equal(server.issued, 8);
});

test("a link whose clock reaches the deadline first ends the call with Go's text", async () => {
  const { failover } = setUp(
    () => new LinkError(GrpcCode.DeadlineExceeded, "no response in time", true),
  );
  const failure = (await failover.call(read).catch((error: unknown) => error)) as ClientError;
  assert.deepEqual(
    [failure.message, failure.grpcCode, (failure.cause as Error).message],
    ["context deadline exceeded", GrpcCode.DeadlineExceeded, "no response in time"],
  );
});

test("a configured token is sent and never fetched", async () => {
  const server = guarded();
  server.issued = 3;
  const { failover } = setUp(server);
  await new Client(failover, () => assert.fail(), { token: "t3" }, noTimer).get("a");
  await assert.rejects(
    new Client(failover, () => assert.fail(), { token: "old" }, noTimer).get("a"),
    { code: "InvalidAuthToken" },
  );
  assert.equal(server.issued, 3);
});

test("without authentication a name and password are ignored", async () => {
  const { failover, links } = setUp(({ path }) =>
    path.endsWith("/Authenticate")
      ? new LinkError(
          GrpcCode.FailedPrecondition,
          "etcdserver: authentication is not enabled",
          true,
        )
      : OK,
  );
  const client = new Client(failover, () => assert.fail(), { name: "u", password: "p" }, noTimer);
  await client.get("a");
  await client.get("a");
  assert.equal(links[0].calls.length, 3);
});

test("a stream is opened at the next endpoint where one cannot be reached, and after it has failed", async () => {
  const { failover } = setUp(refuses, answers, answers);
  const client = new Client(failover, () => assert.fail(), undefined, noTimer);
  const endpoints: (string | undefined)[] = [];
  for (let i = 0; i < 3; i++) {
    const read = async (): Promise<void> => {
      for await (const one of client.snapshot()) assert.equal(one.remainingBytes, 0);
    };
    await assert.rejects(read, (error: ClientError) => {
      endpoints.push(error.endpoint);
      return error.grpcCode === GrpcCode.Unavailable && /went away/.test(error.message);
    });
  }
  assert.deepEqual(endpoints, ["e1", "e2", "e1"]);
});

test("a stream that is abandoned leaves its endpoint, one that is cancelled does not", async () => {
  const { failover, links } = setUp(answers, answers);
  const client = new Client(failover, () => assert.fail(), undefined, noTimer);
  const method = MaintenanceService.methods.Snapshot;
  const endWith = async (how: "cancel" | "abandon"): Promise<void> => {
    const stream = await client.stream(method);
    for await (const _ of stream) {
      stream[how]();
      break;
    }
    await client.get("a");
  };
  await endWith("cancel");
  assert.deepEqual(counts(links), [1, 0]);
  await endWith("abandon");
  assert.deepEqual(counts(links), [1, 1]);
});

test("a refused certificate is the end at once, where every endpoint has one", async () => {
  const untrusted = () => new LinkError(GrpcCode.Unavailable, "TLS with a: expired", false, true);
  const links = ["a", "b"].map((name) => new FakeLink(name, untrusted));
  const stopped = () => assert.fail("it waits");
  const clock = Object.assign(new FakeClock(), { sleep: stopped });
  const plan = { path: "p", request: OK, repeatable: true, metadata: { token: undefined } };
  const failover = over(links, LIMITS, clock);
  await assert.rejects(failover.call(plan), (error: ClientError) => {
    assert.equal(error.grpcCode, GrpcCode.Unavailable);
    assert.equal(error.message, "TLS with a: expired");
    assert.equal(mayResume(error), false, "watches and leases end, too");
    return true;
  });
  assert.deepEqual(
    links.map(({ calls }) => calls.length),
    [1, 1],
  );
  // One endpoint with another certificate is enough.
  links[1].behaviour = () => OK;
  assert.equal(await over(links, LIMITS, clock).call(plan), OK);
});

test("a failure says the method, the endpoint, the attempts, and whether it may have been executed", async () => {
  const fails = (grpcCode: number, message: string, sent: boolean): Behaviour => {
    return () => new LinkError(grpcCode, message, sent);
  };
  /** The behaviour of two endpoints, with what is known of a write that failed there. */
  const cases: readonly (readonly [Behaviour, Behaviour, object])[] = [
    [drops, answers, { code: "Unavailable", endpoint: "e0", attempts: 1, mayHaveHappened: true }],
    [refuses, drops, { code: "Unavailable", endpoint: "e1", attempts: 2, mayHaveHappened: true }],
    [
      fails(GrpcCode.InvalidArgument, "etcdserver: key is not provided", true),
      answers,
      { code: "EmptyKey", attempts: 1, mayHaveHappened: false },
    ],
    [
      fails(GrpcCode.ResourceExhausted, "etcdserver: mvcc: database space exceeded", true),
      answers,
      { code: "NoSpace", attempts: 1, mayHaveHappened: false },
    ],
    [
      fails(GrpcCode.ResourceExhausted, "the response is too large", true),
      answers,
      { code: "ResourceExhausted", attempts: 1, mayHaveHappened: true },
    ],
    [
      fails(GrpcCode.DeadlineExceeded, "no response in time", true),
      answers,
      { code: "DeadlineExceeded", attempts: 1, mayHaveHappened: true },
    ],
    [
      fails(GrpcCode.DeadlineExceeded, "no response in time", false),
      answers,
      { code: "DeadlineExceeded", attempts: 1, mayHaveHappened: false },
    ],
  ];
  for (const [first, second, known] of cases)
    await assert.rejects(setUp(first, second).failover.call(write), { method: "/write", ...known });
  // What an attempt left open stays open.
  let calls = 0;
  const once: Behaviour = () =>
    calls++ === 0
      ? new LinkError(GrpcCode.Unavailable, "connection dropped", true)
      : new LinkError(GrpcCode.PermissionDenied, "etcdserver: permission denied", true);
  await assert.rejects(setUp(once).failover.call({ ...write, repeatable: true }), {
    code: "PermissionDenied",
    attempts: 2,
    mayHaveHappened: true,
  });
});

test("a call ends with its own timeout, and with its signal, wherever it waits", async () => {
  const { failover, clock } = setUp(refuses);
  await assert.rejects(failover.call({ ...read, timeoutMs: 100 }), {
    code: "DeadlineExceeded",
    attempts: 3,
  });
  assert.deepEqual(clock.pauses, [25, 50]);

  const before = new AbortController();
  before.abort("enough");
  const never = setUp(answers);
  const canceled = { name: "ClientError", code: "Canceled", cause: "enough" };
  await assert.rejects(never.failover.call({ ...write, signal: before.signal }), {
    ...canceled,
    attempts: 0,
    mayHaveHappened: false,
  });
  assert.deepEqual(counts(never.links), [0]);

  const between = new AbortController();
  const paused = setUp(refuses);
  paused.clock.sleep = async () => between.abort("enough");
  await assert.rejects(paused.failover.call({ ...write, signal: between.signal }), {
    ...canceled,
    attempts: 1,
    mayHaveHappened: false,
  });

  const during = new AbortController();
  const sent = setUp(() => {
    during.abort("enough");
    return new LinkError(GrpcCode.Canceled, "context canceled", true);
  });
  await assert.rejects(sent.failover.call({ ...write, signal: during.signal }), {
    ...canceled,
    attempts: 1,
    mayHaveHappened: true,
  });
});

test("a signal that is of a time ends a call with DeadlineExceeded", async () => {
  const signal = AbortSignal.timeout(0);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  await assert.rejects(setUp(answers).failover.call({ ...read, signal }), {
    code: "DeadlineExceeded",
    message: "context deadline exceeded",
  });
});
