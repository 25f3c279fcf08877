/**
 * A mirror between fake clusters: retries, reports, and errors that end it.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Client, ClientError } from "@quorate/client";
import {
  Event,
  Event_EventType,
  fromUtf8,
  GrpcCode,
  KeyValue,
  type PutRequest,
  type RequestOp,
  toUtf8,
} from "@quorate/proto";
import { Mirror, type MirrorListener } from "../src/mirror/mirror.ts";

const refused = new ClientError(GrpcCode.DeadlineExceeded, "context deadline exceeded", {
  endpoint: "http://far:1",
});
const noSpace = new ClientError(
  GrpcCode.ResourceExhausted,
  "etcdserver: mvcc: database space exceeded",
  { endpoint: "http://far:1" },
);
const denied = new ClientError(GrpcCode.PermissionDenied, "etcdserver: permission denied", {
  endpoint: "http://far:1",
});
const tooLong = new ClientError(
  GrpcCode.ResourceExhausted,
  "trying to send message larger than max (9 vs. 8)",
  { endpoint: "http://far:1" },
);

function change(key: string, revision: number): Uint8Array {
  const kv = KeyValue.encode({
    key: fromUtf8(key),
    value: fromUtf8(`at ${revision}`),
    modRevision: revision,
  });
  return Event.encode({ type: Event_EventType.PUT, kv });
}

/** Waits are over at once. */
const timer = {
  after(_delayMs: number, task: () => void): () => void {
    setImmediate(task);
    return () => {};
  },
};

/**
 * Responses of watches, one list per opened watch; after the last one nothing comes. An error is
 * thrown.
 */
class Source {
  readonly opened: number[] = [];
  readonly #watches: (object | Error)[][];
  readonly timer = timer;

  constructor(...watches: (object | Error)[][]) {
    this.#watches = watches;
  }

  watch(_key: Uint8Array, { revision }: { revision: number }): object {
    this.opened.push(revision);
    const responses = this.#watches[this.opened.length - 1];
    const cancelled = Promise.withResolvers<void>();
    return {
      cancel: cancelled.resolve,
      async *[Symbol.asyncIterator]() {
        for (const response of responses ?? []) {
          if (response instanceof Error) throw response;
          yield { events: [], compactRevision: 0, canceled: false, ...response };
        }
        await cancelled.promise;
      },
    };
  }
}

/** A destination that fails with the given errors, then accepts everything. */
class Destination {
  readonly keys: string[] = [];
  readonly #failures: ClientError[];
  onPut: () => void = () => {};

  constructor(...failures: ClientError[]) {
    this.#failures = failures;
  }

  async call(_method: object, { success }: { success: RequestOp[] }): Promise<void> {
    const failure = this.#failures.shift();
    if (failure !== undefined) throw failure;
    for (const { request } of success) {
      const { key, value } = request!.value as PutRequest;
      this.keys.push(`${toUtf8(key)} ${toUtf8(value)}`);
    }
    this.onPut();
  }
}

/** Runs a mirror from revision 5 until the destination has `keys` keys. */
async function run(source: Source, destination: Destination, keys: number): Promise<string[]> {
  const reports: string[] = [];
  const listener: MirrorListener = {
    watchBroke: ({ message }) => void reports.push(`watch: ${message}`),
    callFailed: ({ message }) => void reports.push(`call: ${message}`),
    wentOn: (endpoint) => void reports.push(`on at ${endpoint}`),
  };
  const stop = new AbortController();
  destination.onPut = () => {
    if (destination.keys.length >= keys) setImmediate(() => stop.abort());
  };
  const options = { prefix: "a/", destPrefix: "b/", revision: 5, maxTxnOps: 10 };
  await new Mirror(
    source as unknown as Client,
    destination as unknown as Client,
    options,
    listener,
  ).run(stop.signal);
  return reports;
}

describe("a mirror", () => {
  test("retries while the destination is unavailable or full, and reports when it continues", async () => {
    const source = new Source([{ events: [change("a/x", 5)] }, { events: [change("a/y", 6)] }]);
    const destination = new Destination(refused, noSpace, refused);
    assert.deepEqual(await run(source, destination, 2), [
      `call: ${refused.message}`,
      `call: ${noSpace.message}`,
      `call: ${refused.message}`,
      "on at http://far:1",
    ]);
    assert.deepEqual(destination.keys, ["b/x at 5", "b/y at 6"]);
    assert.deepEqual(source.opened, [5]);
  });

  test("reopens a failed watch behind the mirrored revision", async () => {
    const source = new Source(
      [{ events: [change("a/x", 7)] }, refused],
      [{ events: [change("a/x", 9)] }],
    );
    const destination = new Destination();
    assert.deepEqual(await run(source, destination, 2), [`watch: ${refused.message}`]);
    assert.deepEqual(source.opened, [5, 8]);
    assert.deepEqual(destination.keys, ["b/x at 7", "b/x at 9"]);
  });

  test("ends for errors that a retry cannot fix", async () => {
    for (const error of [denied, tooLong]) {
      await assert.rejects(
        run(new Source([{ events: [change("a/x", 5)] }]), new Destination(error), 1),
        error,
      );
    }
    const compacted = new Source([{ compactRevision: 8, canceled: true }]);
    await assert.rejects(run(compacted, new Destination(), 1), {
      message: "etcdserver: mvcc: required revision has been compacted",
    });
  });

  test("ends at once when stopped, also during a call", async () => {
    const stop = new AbortController();
    const called = Promise.withResolvers<void>();
    const silent = {
      call(): Promise<never> {
        called.resolve();
        return new Promise(() => {});
      },
    };
    const options = { prefix: "", destPrefix: "", revision: 5, maxTxnOps: 10 };
    const unexpected = (): never => assert.fail("nothing failed");
    const listener = { watchBroke: unexpected, callFailed: unexpected, wentOn: unexpected };
    const source = new Source([{ events: [change("x", 5)] }]);
    const running = new Mirror(
      source as unknown as Client,
      silent as unknown as Client,
      options,
      listener,
    ).run(stop.signal);
    await called.promise;
    stop.abort();
    await running;
  });
});
