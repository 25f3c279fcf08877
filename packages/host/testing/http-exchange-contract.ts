/** The contract suite of HttpExchange: every HTTP version's, and the fake's. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HttpExchange, HttpExchangeHandler } from "../src/http-exchange.ts";

/** A request from the client's point of view. */
export interface ClientRequest {
  /** Sends a piece of the body. */
  send(text: string): void;
  /** Ends the body. */
  end(): void;
  /** Resolves when the response's head has arrived. */
  head(): Promise<{ readonly status: number; readonly headers: ReadonlyMap<string, string> }>;
  /** Resolves when so many bytes of the response's body have arrived, with all of it so far. */
  body(sizeBytes: number): Promise<string>;
  /** Resolves when the response is over: complete, or cut off. */
  outcome(): Promise<"ended" | "aborted">;
  /** Goes away. */
  leave(): void;
}

export interface ExchangesUnderTest {
  /** Bytes that an exchange can hold. */
  readonly holdBudgetBytes: number;
  /** Begins a request to `path`, which may have a query, that the handler serves. */
  request(
    head: { readonly method: string; readonly path: string; readonly headers?: object },
    handler: HttpExchangeHandler,
  ): Promise<ClientRequest>;
  /** Resolves when what was sent in both directions has arrived. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

const bytes = (text: string) => new TextEncoder().encode(text);

/** A handler that does nothing, its exchange, and what its listener was called with. */
function recorder() {
  const served = Promise.withResolvers<HttpExchange>();
  const calls: string[] = [];
  let waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const note = (call: string) => {
    calls.push(call);
    for (const one of waiting) if (calls.length >= one.count) one.resolve();
    waiting = waiting.filter((one) => calls.length < one.count);
  };
  const handler: HttpExchangeHandler = (exchange) => {
    served.resolve(exchange);
    return {
      data: (piece) => note(new TextDecoder().decode(piece)),
      ended: () => note("ended"),
      drained: () => note("drained"),
      aborted: () => note("aborted"),
    };
  };
  /** Resolves once there were so many calls. */
  const called = (count: number) =>
    new Promise<void>((resolve) => {
      if (calls.length >= count) resolve();
      else waiting.push({ count, resolve });
    });
  return { handler, calls, called, exchange: served.promise };
}

type Run = (what: string, body: (bed: ExchangesUnderTest) => Promise<void>) => void;

/** Registers the suite. */
export function httpExchangeContract(name: string, open: () => Promise<ExchangesUnderTest>): void {
  const run: Run = (what, body) =>
    void test(what, async () => {
      const bed = await open();
      try {
        await body(bed);
      } finally {
        await bed.close();
      }
    });
  describe(`HTTP exchange: ${name}`, () => {
    registerResponses(run);
    registerFlow(run);
    registerEnds(run);
  });
}

function registerResponses(run: Run): void {
  run("a head, a body in order and its end; a whole response, once", async (bed) => {
    const { handler, calls, called, exchange } = recorder();
    const head = { method: "POST", path: "/a%20/b?c=d?", headers: { "X-Own": "1" } };
    const request = await bed.request(head, handler);
    const one = await exchange;
    assert.deepEqual(
      [one.head.method, one.head.path, one.head.query, one.head.headers.get("x-own")],
      ["POST", "/a%20/b", "c=d?", "1"],
    );
    assert.match(one.head.peerAddress, /^127\.0\.0\.1:\d+$/);
    request.send("one");
    await called(1);
    request.send("two");
    await called(2);
    request.end();
    await called(3);
    assert.deepEqual(calls, ["one", "two", "ended"]);
    one.respond({ status: 201, headers: { "X-Answer": "2" }, body: "fine" });
    one.respond({ status: 500, headers: {}, body: "ignored" });
    one.start(500, {});
    assert.equal(one.send(bytes("ignored")), false);
    one.end();
    one.abort();
    const { status, headers } = await request.head();
    assert.deepEqual([status, headers.get("x-answer")], [201, "2"]);
    assert.equal(await request.body(4), "fine");
    assert.equal(await request.outcome(), "ended");
    assert.deepEqual(calls, ["one", "two", "ended"]);
  });

  run("a response in pieces that arrive while it goes on", async (bed) => {
    const { handler, calls, called, exchange } = recorder();
    const request = await bed.request({ method: "GET", path: "/" }, handler);
    request.end();
    await called(1);
    const one = await exchange;
    one.start(200, { "X-Answer": "3" });
    assert.equal((await request.head()).headers.get("x-answer"), "3");
    assert.equal(one.send(bytes("one ")), true);
    assert.equal(await request.body(4), "one ");
    one.send(bytes(""));
    one.send(bytes("two"));
    assert.equal(await request.body(7), "one two");
    one.respond({ status: 500, headers: {}, body: "ignored" });
    one.end();
    assert.equal(await request.outcome(), "ended");
    assert.deepEqual(calls, ["ended"]);
  });
}

function registerFlow(run: Run): void {
  run("a response during the request", async (bed) => {
    const { handler, calls, called, exchange } = recorder();
    const request = await bed.request({ method: "POST", path: "/" }, handler);
    const one = await exchange;
    one.start(200, {});
    assert.equal((await request.head()).status, 200);
    request.send("a");
    await called(1);
    one.send(bytes("b"));
    assert.equal(await request.body(1), "b");
    request.end();
    await called(2);
    one.end();
    assert.equal(await request.outcome(), "ended");
    assert.deepEqual(calls, ["a", "ended"]);
  });

  run("pause and resume, of pieces and of the end", async (bed) => {
    const { handler, calls, called, exchange } = recorder();
    const request = await bed.request({ method: "POST", path: "/" }, handler);
    const one = await exchange;
    request.send("a");
    await called(1);
    one.pause();
    request.send("b");
    await bed.settled();
    request.end();
    await bed.settled();
    assert.deepEqual(calls, ["a"]);
    one.resume();
    one.resume();
    await called(3);
    assert.deepEqual(calls, ["a", "b", "ended"]);
    one.respond({ status: 200, headers: {}, body: "" });
    assert.equal(await request.outcome(), "ended");
  });
}

function registerEnds(run: Run): void {
  run("a cut response, and a client that leaves", async (bed) => {
    const cut = recorder();
    const first = await bed.request({ method: "GET", path: "/" }, cut.handler);
    first.end();
    await cut.called(1);
    const one = await cut.exchange;
    one.start(200, {});
    await first.head();
    one.abort();
    assert.equal(await first.outcome(), "aborted");
    assert.equal(one.send(bytes("ignored")), false);
    one.end();
    assert.deepEqual(cut.calls, ["ended"]);
    const left = recorder();
    const second = await bed.request({ method: "POST", path: "/" }, left.handler);
    const other = await left.exchange;
    other.start(200, {});
    await second.head();
    second.leave();
    await left.called(1);
    assert.equal(other.send(bytes("ignored")), false);
    other.end();
    await bed.settled();
    assert.deepEqual(left.calls, ["aborted"]);
  });

  run("holding bytes within a budget, and no takeover where it was not asked for", async (bed) => {
    const { handler, called, exchange } = recorder();
    const request = await bed.request({ method: "GET", path: "/" }, handler);
    request.end();
    await called(1);
    const one = await exchange;
    assert.equal(one.hold(bed.holdBudgetBytes + 1), false);
    assert.equal(one.hold(bed.holdBudgetBytes), true);
    assert.equal(one.hold(1), false);
    one.release(10);
    assert.deepEqual([one.hold(11), one.hold(10)], [false, true]);
    assert.equal(one.upgrade({}), undefined);
    one.respond({ status: 200, headers: {}, body: "" });
    assert.equal(await request.outcome(), "ended");
  });
}
