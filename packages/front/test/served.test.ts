/** Calls through the rings as the services and the clients see them, and front-ends that cheat. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { fromUtf8, GrpcCode, toUtf8 } from "@quorate/proto";
import {
  type CallContext,
  joinMessage,
  LOCAL_CALL,
  StatusError,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
} from "@quorate/rpc";
import { CallerSlots } from "../src/caller-slots.ts";
import { encodeTexts, MAX_CALLS, ToMember, WINDOW_BYTES } from "../src/protocol.ts";
import { RingError, RingWriter } from "../src/ring.ts";
import { Client, Context, start } from "./started-twin.ts";

test("a unary call has its client, its metadata and its time, and its response or its status", async () => {
  const seen: unknown[] = [];
  const { twin, clock, settle, errors } = start({
    unary: {
      "/a/Echo": async (request, context) => {
        seen.push([
          context.path,
          context.peerAddress,
          context.peerCommonName,
          context.peerSubject,
          context.metadata("token"),
          context.metadata("other"),
          (context.deadlineMs ?? Number.NaN) - clock.monotonicMs(),
        ]);
        return [request, fromUtf8("!")];
      },
      "/a/Now": (request) => request,
      "/a/Fail": () => {
        throw new StatusError(GrpcCode.NotFound, "schlüssel");
      },
    },
  });
  const call = (path: string, context: CallContext, text: string) =>
    Promise.resolve(twin.services.unary.get(path)!(fromUtf8(text), context));
  const deadline = clock.monotonicMs() + 500;
  const echo = call("/a/Echo", new Context("/a/Echo", { token: "t", other: "o" }, deadline), "hi");
  const now = call("/a/Now", new Context("/a/Now"), "now");
  const fail = call("/a/Fail", new Context("/a/Fail"), "");
  const failed = assert.rejects(fail, { code: GrpcCode.NotFound, message: "schlüssel" });
  await settle();
  assert.equal(toUtf8(joinMessage(await echo)), "hi!");
  assert.equal(toUtf8(joinMessage(await now)), "now");
  await failed;
  assert.deepEqual(seen, [["/a/Echo", "127.0.0.1:1", "ann", "CN=ann", "t", undefined, 500]]);
  assert.equal(twin.served.openCalls, 0);
  assert.deepEqual(errors, []);
});

test("a call whose client is gone is cancelled, and counts until the service has ended it", async () => {
  const working = Promise.withResolvers<Uint8Array>();
  let wasCancelled = false;
  const { twin, settle } = start({
    unary: {
      "/a/Wait": (_request, context) => {
        context.onCancel(() => {
          wasCancelled = true;
        });
        return working.promise;
      },
    },
  });
  const context = new Context("/a/Wait");
  const result = Promise.resolve(twin.services.unary.get("/a/Wait")!(new Uint8Array(0), context));
  const ended = assert.rejects(result, { code: GrpcCode.Canceled });
  await settle();
  context.cancel();
  await settle();
  assert.ok(wasCancelled);
  assert.equal(twin.served.openCalls, 1);
  working.resolve(new Uint8Array(0));
  await settle();
  await ended;
  assert.equal(twin.served.openCalls, 0);
});

test("messages longer than the ring, and more of them than it holds, arrive whole and in order", async () => {
  const { twin, settle, errors } = start({
    unary: { "/a/Echo": (request) => [request.subarray(0, 1000), request.subarray(1000)] },
    deps: { ringBytes: 128 * 1024 },
  });
  const random = new SeededRandom(3n);
  const results: Promise<void>[] = [];
  for (let i = 0; i < 60; i++) {
    const request = new Uint8Array(1000 + random.below(i % 10 === 0 ? 500_000 : 5000)).fill(i);
    const response = Promise.resolve(
      twin.services.unary.get("/a/Echo")!(request, new Context("/a/Echo")),
    );
    results.push(response.then((bytes) => assert.deepEqual(joinMessage(bytes), request)));
  }
  await settle();
  await Promise.all(results);
  assert.deepEqual(errors, []);
});

test("streams: messages both ways, pauses, windows, and the end", async () => {
  const got: string[] = [];
  let call: StreamCall | undefined;
  const { twin, settle, errors } = start({
    stream: {
      "/a/Chat": (one) => {
        call = one;
        return {
          message: (bytes) => void got.push(toUtf8(bytes)),
          halfClosed: () => void got.push("half-closed"),
          drained: () => void got.push("drained"),
          cancelled: () => void got.push("cancelled"),
        };
      },
    },
  });
  const client = new Client("/a/Chat");
  const sender = twin.services.stream.get("/a/Chat")!(client);
  sender.message!(fromUtf8("one"));
  await settle();
  call!.pause();
  await settle();
  assert.ok(client.isPaused);
  sender.message!(fromUtf8("two"));
  await settle();
  assert.deepEqual(got, ["one"]);
  call!.resume();
  await settle();
  assert.ok(!client.isPaused);
  assert.deepEqual(got, ["one", "two"]);
  // A client that does not read: the service is told to stop, and hears when it may go on.
  client.isReading = false;
  const piece = new Uint8Array(100_000);
  let sent = 0;
  while (call!.send(piece)) sent++;
  assert.ok(sent * piece.length <= WINDOW_BYTES && sent > 5);
  await settle();
  // It may send all the same, as a watch does with what it has queued.
  for (let i = 0; i < 3; i++) call!.send(piece);
  await settle();
  assert.ok(call!.bufferedBytes > WINDOW_BYTES);
  assert.deepEqual(got, ["one", "two"]);
  client.isReading = true;
  sender.drained!();
  await settle();
  assert.deepEqual(got, ["one", "two", "drained"]);
  assert.equal(call!.bufferedBytes, 0);
  sender.halfClosed!();
  await settle();
  call!.end({ code: GrpcCode.Aborted, message: "enough" });
  await settle();
  assert.deepEqual(client.ending, { code: GrpcCode.Aborted, message: "enough" });
  assert.equal(client.messages.length, sent + 4);
  assert.deepEqual(got, ["one", "two", "drained", "half-closed"]);
  assert.equal(twin.served.openCalls, 0);
  assert.deepEqual(errors, []);
});

test("a service that takes no messages holds its client back, and no other one", async () => {
  const calls: StreamCall[] = [];
  const { twin, settle } = start({
    stream: {
      "/a/Chat": (one) => {
        calls.push(one);
        return {};
      },
    },
  });
  const clients = [new Client("/a/Chat"), new Client("/a/Chat")];
  const senders = clients.map((client) => twin.services.stream.get("/a/Chat")!(client));
  await settle();
  calls[0].pause();
  while (!clients[0].isPaused) {
    senders[0].message!(new Uint8Array(100_000));
    await settle();
  }
  assert.ok(clients[0].isPaused);
  for (let i = 0; i < 12; i++) {
    senders[1].message!(new Uint8Array(100_000));
    await settle();
    assert.ok(!clients[1].isPaused);
  }
  calls[0].resume();
  await settle();
  assert.ok(!clients[0].isPaused);
});

test("when a front-end is gone its calls are cancelled, and those of no other", async () => {
  const got: string[] = [];
  const streams: Record<string, StreamHandler> = {
    "/a/Chat": () => ({ cancelled: () => void got.push("stream cancelled") }),
  };
  const { twin, settle } = start({
    stream: streams,
    unary: {
      "/a/Wait": (_request, context) => {
        context.onCancel(() => void got.push("unary cancelled"));
        return new Promise(() => {});
      },
    },
  });
  twin.services.stream.get("/a/Chat")!(new Client("/a/Chat"));
  void Promise.resolve(
    twin.services.unary.get("/a/Wait")!(new Uint8Array(0), new Context("/a/Wait")),
  );
  await settle();
  twin.served.close();
  assert.deepEqual(got.toSorted(), ["stream cancelled", "unary cancelled"]);
  assert.equal(twin.served.openCalls, 0);
});

/** What a front-end sends in these: whole records, with fields that are near what is right. */
function randomRecord(random: SeededRandom, writer: RingWriter): void {
  const identity = encodeTexts(["127.0.0.1:1", "ann", undefined, "t", undefined, undefined, "3"]);
  const exchange = encodeTexts([
    "GET",
    "/",
    "",
    "127.0.0.1:1",
    undefined,
    undefined,
    undefined,
    undefined,
    "1",
    "host",
    "a",
  ]);
  const payloads = [identity, exchange, new Uint8Array(random.below(50)), identity.subarray(0, 9)];
  const payload = payloads[random.below(payloads.length)];
  const right = [ToMember.Identity, ToMember.Unary, ToMember.Stream, ToMember.Exchange] as number[];
  const isOdd = random.below(60) === 0;
  const kind = isOdd ? random.below(256) : 1 + random.below(9);
  const fits =
    kind === ToMember.Identity ? identity : kind === ToMember.Exchange ? exchange : payload;
  const head = {
    kind,
    detail: isOdd ? random.below(65_536) : 0,
    call: right.includes(kind) && !isOdd ? random.uint32() : random.below(20),
    value: isOdd ? random.uint32() : 0,
    timeMs: [Number.NaN, Number.POSITIVE_INFINITY, -1, 0, 5000, 1e300][random.below(6)],
  };
  writer.write(head, isOdd ? payload : fits, (isOdd ? payload : fits).length, random.below(80) > 0);
}

test("whatever a front-end sends, its link breaks at the worst: nothing is thrown, no call is left", async () => {
  let broken = 0;
  let calls = 0;
  for (let seed = 1n; seed <= 100n; seed++) {
    const random = new SeededRandom(seed);
    const listener: StreamListener = { cancelled() {} };
    const { twin, errors, settle } = start(
      {
        unary: {
          "/a/Echo": (request) => {
            calls++;
            return request;
          },
        },
        stream: { "/a/Chat": () => listener },
      },
      seed,
    );
    // Beside the twin's own front-end, which does nothing.
    const writer = new RingWriter(twin.toMember);
    for (let batch = 0; batch < 5 && errors.length === 0; batch++) {
      for (let i = 0; i < 8; i++) randomRecord(random, writer);
      writer.publish();
      twin.served.woken();
    }
    await settle();
    if (errors.length > 0) {
      broken++;
      assert.equal(errors.length, 1);
      assert.ok(errors[0] instanceof RingError, String(errors[0].stack));
      assert.equal(twin.served.openCalls, 0);
    }
    twin.served.close();
    assert.equal(twin.served.openCalls, 0);
  }
  assert.ok(broken > 20 && calls > 20, `${broken} broken, ${calls} calls`);
});

test("random bytes in the memory break the link at the worst", async () => {
  let broken = 0;
  for (let seed = 1n; seed <= 100n; seed++) {
    const random = new SeededRandom(seed);
    const unary = { "/a/Echo": (request: Uint8Array) => request };
    const { twin, errors, frontErrors, settle } = start({ unary }, seed);
    for (let i = 0; i < 5; i++)
      void Promise.resolve(
        twin.services.unary.get("/a/Echo")!(new Uint8Array(40), new Context("/a/Echo")),
      ).catch(() => {});
    const memory = random.below(2) === 0 ? twin.toMember : twin.toFront;
    const words = new Int32Array(memory);
    for (let i = 0; i < 40; i++) {
      const word = random.below(2) === 0 ? random.below(160) : random.below(words.length);
      words[word] = random.uint32() | 0;
    }
    twin.served.woken();
    await settle();
    const all = [...errors, ...frontErrors];
    if (all.length > 0) broken++;
    for (const error of all) assert.ok(error instanceof RingError, String(error.stack));
    twin.served.close();
  }
  assert.ok(broken > 30, `${broken} broken`);
});

test("a front-end that takes no responses is ended when they hold too much", async () => {
  // Nothing is woken, and so nothing is read.
  const never: (() => void)[] = [];
  const { twin, errors } = start({
    unary: { "/a/Large": () => new Uint8Array(8 << 20) },
    deps: { later: (task) => void never.push(task) },
  });
  const writer = new RingWriter(twin.toMember);
  const identity = encodeTexts(["127.0.0.1:1", ...Array<undefined>(6).fill(undefined)]);
  const head = { kind: ToMember.Identity as number, detail: 0, call: 0, value: 0, timeMs: -1 };
  writer.write(head, identity, identity.length, true);
  head.kind = ToMember.Unary;
  for (head.call = 1; head.call < 20; head.call++) writer.write(head, new Uint8Array(0), 0, true);
  writer.publish();
  twin.served.woken();
  assert.match(errors.map(({ message }) => message).join(), /takes too little/);
  assert.equal(twin.served.openCalls, 0);
});

test("calls beyond the most are refused by the front-end", async () => {
  const { twin, errors, settle } = start({ unary: { "/a/Wait": () => new Promise(() => {}) } });
  const wait = twin.services.unary.get("/a/Wait")!;
  const context = new Context("/a/Wait");
  for (let i = 0; i < MAX_CALLS; i++) void Promise.resolve(wait(new Uint8Array(0), context));
  assert.throws(() => wait(new Uint8Array(0), context), { code: GrpcCode.ResourceExhausted });
  await settle();
  assert.equal(twin.served.openCalls, MAX_CALLS);
  assert.deepEqual(errors, []);
  twin.served.close();
});

test("the slots of identities: one for a connection, the oldest is given away", () => {
  const slots = new CallerSlots(["token"], 3);
  const of = (address: string, token: string) => {
    const { slot, isNew, texts } = slots.slotOf({
      ...LOCAL_CALL,
      path: "/a/b",
      peerAddress: address,
      peerCommonName: "ann",
      peerSubject: "CN=ann",
      metadata: () => token,
    });
    return [slot, isNew, texts.join()];
  };
  assert.deepEqual(of("a", "1"), [0, true, "a,ann,CN=ann,1"]);
  assert.deepEqual(of("a", "1"), [0, false, "a,ann,CN=ann,1"]);
  assert.deepEqual(of("a", "2"), [0, true, "a,ann,CN=ann,2"]);
  assert.deepEqual(of("b", "1"), [1, true, "b,ann,CN=ann,1"]);
  assert.deepEqual(of("c", "1"), [2, true, "c,ann,CN=ann,1"]);
  assert.deepEqual(of("d", "1"), [0, true, "d,ann,CN=ann,1"]);
  assert.deepEqual(of("b", "1"), [1, false, "b,ann,CN=ann,1"]);
  assert.deepEqual(of("a", "2"), [1, true, "a,ann,CN=ann,2"]);
  assert.deepEqual(of("b", "1"), [2, true, "b,ann,CN=ann,1"]);
});
