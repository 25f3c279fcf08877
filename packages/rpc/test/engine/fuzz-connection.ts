/**
 * A connection under frames of every kind, right, wrong and mutated, in chunks of any size, while
 * services answer at their own pace. Whatever comes, nothing throws, what goes out can be read, the
 * same bytes have the same answer however they are cut, and when the connection is gone nothing of
 * it is left.
 */
import assert from "node:assert/strict";
import type { Random } from "@quorate/host";
import { concat, fromLatin1 } from "@quorate/proto";
import type { StreamCall } from "@quorate/rpc";
import { Indexing } from "../../src/hpack/hpack.ts";
import { FrameType, PREFACE, Setting } from "../../src/http2/constants.ts";
import {
  CoreClient,
  data,
  frame,
  GET,
  MIB,
  rstStream,
  settingsFrame,
  windowUpdate,
  words,
} from "./core.ts";
import { mutate, randomBytes } from "./fuzz-hpack.ts";
import { CALL, GrpcClient, message } from "./grpc.ts";
import { Recorder } from "./recorder.ts";

const LIMITS = {
  maxConcurrentStreams: 20,
  streamWindowBytes: 70_000,
  connectionWindowBytes: 100_000,
  maxHeldBytes: 60_000,
  maxPendingBytes: 100_000,
  maxIdleFramesBurst: 200,
  maxResetsBurst: 50,
  maxHeaderListBytes: 4000,
  maxHeaderBlockBytes: 4000,
};

/**
 * Whole answers that may be buffered beyond what waits for windows: headers and trailers of
 * streams, refusals, acknowledgements.
 */
const MAX_OUTPUT_PER_INPUT_BYTE = 60;

class Services {
  readonly #random: Random;
  readonly waiting: (() => void)[] = [];
  readonly calls: StreamCall[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  readonly unary = {
    "/test.Echo/Now": (bytes: Uint8Array): Uint8Array => bytes,
    "/test.Echo/Later": (bytes: Uint8Array): Promise<Uint8Array> =>
      new Promise((resolve) => this.waiting.push(() => resolve(bytes))),
    "/test.Echo/Large": (): Uint8Array => new Uint8Array(this.#random.below(50_000)),
    "/test.Echo/Fail": (): never => {
      throw new Error("füil");
    },
  };

  readonly stream = {
    "/test.Chat/Talk": (call: StreamCall) => {
      this.calls.push(call);
      return {
        message: (bytes: Uint8Array) => void call.send(bytes),
        halfClosed: () => call.end(),
      };
    },
  };

  /** Something that services do by themselves. */
  act(): void {
    const call = this.calls[this.#random.below(this.calls.length || 1)];
    switch (this.#random.below(6)) {
      case 0:
        this.waiting.shift()?.();
        break;
      case 1:
        call?.pause();
        break;
      case 2:
        call?.resume();
        break;
      case 3:
        call?.send(new Uint8Array(this.#random.below(5000)));
        break;
      case 4:
        if (this.#random.below(4) === 0)
          call?.end({ code: this.#random.below(17), message: "bye" });
        break;
    }
  }
}

/** Frames of a client, mostly in order. */
class FrameSource {
  readonly #random: Random;
  readonly #client: CoreClient;
  #nextStream = 1;

  constructor(random: Random, client: CoreClient) {
    this.#random = random;
    this.#client = client;
  }

  #rarely(): boolean {
    return this.#random.below(30) === 0;
  }

  #anyStream(): number {
    return this.#random.below(400) === 0
      ? this.#random.below(60)
      : 1 + 2 * this.#random.below(Math.max(1, this.#nextStream >> 1));
  }

  next(): Uint8Array {
    const random = this.#random;
    this.#client.indexing = random.below(3) === 0 ? Indexing.None : Indexing.Add;
    // What comes before any stream is open is mostly a mistake.
    if (this.#nextStream === 1 && !this.#rarely()) return this.#call();
    switch (random.below(24)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        return this.#call();
      case 6:
        return this.#open(
          ["/test.Chat/Talk", "/no.Such/Method", "/"][random.below(3)],
          random.below(3) === 0,
        );
      case 7:
        return this.#client.headers(
          this.#nextStreamId(),
          { ...GET, big: "x".repeat(random.below(6000)) },
          true,
        );
      case 8:
      case 9:
      case 10:
        return data(
          this.#anyStream(),
          message(randomBytes(random, random.below(200))),
          random.below(4) === 0,
        );
      case 11:
        return data(this.#anyStream(), random.below(16_385), random.below(4) === 0);
      case 12:
        return data(this.#anyStream(), message(new Uint8Array(0)), true);
      case 13:
        return rstStream(this.#anyStream());
      case 14:
        return windowUpdate(
          random.below(2) * this.#anyStream(),
          this.#rarely() ? random.uint32() : 1 + random.below(100_000),
        );
      case 15:
        return this.#rarely()
          ? settingsFrame([1 + random.below(7), random.uint32()])
          : settingsFrame([99, 1], [Setting.MaxFrameSize, 16_384 + random.below(70_000)]);
      case 16:
        return settingsFrame(
          [Setting.InitialWindowSize, random.below(100_000)],
          [Setting.HeaderTableSize, random.below(5000)],
        );
      case 17:
        return frame(FrameType.Ping, random.below(2), 0, new Uint8Array(8));
      case 18:
        return frame(
          FrameType.Priority,
          0,
          this.#anyStream(),
          concat([words(random.below(20)), Uint8Array.of(1)]),
        );
      case 19:
        return this.#trailers();
      case 20:
        return this.#continued();
      case 21:
        if (!this.#rarely())
          return frame(
            16 + random.below(100),
            random.below(256),
            this.#anyStream(),
            randomBytes(random, random.below(40)),
          );
        return frame(
          random.below(12),
          random.below(256),
          this.#anyStream(),
          randomBytes(random, random.below(40)),
        );
      default:
        return this.#rarely() ? randomBytes(random, random.below(60)) : this.#call();
    }
  }

  #nextStreamId(): number {
    const id = this.#nextStream;
    this.#nextStream += 2;
    return id;
  }

  #open(path: string, end: boolean): Uint8Array {
    const headers: Record<string, string> = { ...CALL, ":path": path };
    if (this.#random.below(3) === 0) headers["grpc-timeout"] = `${this.#random.below(100)}m`;
    if (this.#random.below(12) === 0) headers["grpc-encoding"] = "gzip";
    return this.#client.headers(this.#nextStreamId(), headers, end);
  }

  #call(): Uint8Array {
    const random = this.#random;
    const path = `/test.Echo/${["Now", "Later", "Large", "Fail"][random.below(4)]}`;
    const id = this.#nextStream;
    return concat([
      this.#open(path, false),
      data(id, message(randomBytes(random, random.below(100))), true),
    ]);
  }

  /** Headers and trailers of a request, or trailers of one that may be long gone. */
  #trailers(): Uint8Array {
    const trailers = (id: number): Uint8Array =>
      this.#client.headers(id, { "x-trailer": "1" }, this.#random.below(4) > 0);
    if (this.#rarely()) return trailers(this.#anyStream());
    const id = this.#nextStream;
    return concat([
      this.#open("/test.Chat/Talk", false),
      data(id, message(new Uint8Array(3))),
      trailers(id),
    ]);
  }

  /** A request whose headers come in several frames. */
  #continued(): Uint8Array {
    const whole = this.#open("/test.Echo/Now", false);
    const block = whole.subarray(9);
    const id = this.#nextStream - 2;
    const at = this.#random.below(block.length);
    return concat([
      frame(FrameType.Headers, 0, id, block.slice(0, at)),
      frame(FrameType.Continuation, 4, id, block.slice(at)),
    ]);
  }
}

/** The bytes of a client's life, in frames. */
function script(random: Random): Uint8Array[] {
  const source = new FrameSource(random, new CoreClient(new Recorder()));
  const frames = Array.from({ length: random.below(120) }, () => source.next());
  for (let changes = random.below(3); changes > 0 && frames.length > 0; changes--) {
    const at = random.below(frames.length);
    if (random.below(3) === 0) frames[at] = mutate(random, frames[at]);
    else if (random.below(2) === 0) frames.splice(at, 1);
    else frames.splice(at, 0, frames[random.below(frames.length)]);
  }
  return frames;
}

/** A client's life, with services at work and time passing in between. */
export async function fuzzConnection(random: Random): Promise<void> {
  const services = new Services(random.fork("services"));
  const client = new GrpcClient({
    ...services,
    limits: LIMITS,
    maxHttpBodyBytes: 1000,
    grpcLimits: { maxRequestBytes: 30_000, sendBudgetBytes: 5000 },
  });
  let inputBytes = 0;
  let outputBytes = 0;
  for (const bytes of script(random)) {
    for (let at = 0; at < bytes.length; ) {
      const end = random.below(3) === 0 ? at + 1 + random.below(bytes.length - at) : bytes.length;
      client.send(bytes.slice(at, end));
      at = end;
    }
    inputBytes += bytes.length;
    if (random.below(4) === 0) services.act();
    if (random.below(8) === 0) client.connection.sender.setBlocked(random.below(3) === 0);
    if (random.below(6) === 0)
      await new Promise((resolve) => queueMicrotask(() => resolve(undefined)));
    if (random.below(20) === 0) client.pass(random.below(200));
    if (random.below(200) === 0) client.connection.drain(client.nowMs);
    if (random.below(3) === 0) outputBytes += bytesOf(client);
    const { held, pending } = client.shared;
    assert.ok(held.usedBytes >= 0 && held.usedBytes <= LIMITS.maxHeldBytes);
    assert.ok(pending.usedBytes >= 0 && pending.usedBytes <= LIMITS.maxPendingBytes);
    assert.ok(
      client.connection.streams.size + client.connection.lingeringCalls <=
        LIMITS.maxConcurrentStreams,
    );
    if (client.connection.ending) break;
  }
  client.connection.sender.setBlocked(false);
  outputBytes += bytesOf(client);
  const answers = services.calls.length * 5000 + client.shared.counters.streams * 50_000;
  assert.ok(
    outputBytes <= 1000 + answers + inputBytes * MAX_OUTPUT_PER_INPUT_BYTE,
    `${outputBytes} bytes out for ${inputBytes} in`,
  );
  client.connection.lost();
  for (const one of services.waiting) one();
  await new Promise((resolve) => setImmediate(resolve));
  const { held, pending, counters } = client.shared;
  assert.deepEqual(
    [held.usedBytes, pending.usedBytes, counters.openStreams, counters.openConnections],
    [0, 0, 0, 0],
  );
  assert.equal(client.connection.lingeringCalls, 0);
  for (const call of services.calls)
    assert.ok(!call.send(new Uint8Array(1)), "a stream outlives its connection");
}

/** Takes and reads the output; throws if it is no HTTP/2. */
function bytesOf(client: GrpcClient): number {
  return client.takeFrames().reduce((sum, one) => sum + 9 + one.payload.length, 0);
}

/** The same bytes in one chunk and in many have the same answer. */
export function fuzzChunks(random: Random): void {
  const bytes = concat(script(random));
  const run = (cut: (left: number) => number): string[] => {
    const client = new GrpcClient({
      unary: {
        "/test.Echo/Now": (request) => request,
        "/test.Echo/Large": () => new Uint8Array(30_000),
      },
      stream: {
        "/test.Chat/Talk": (call) => ({
          message: (one) => void call.send(one),
          halfClosed: () => call.end(),
        }),
      },
      limits: {
        ...LIMITS,
        maxIdleFramesPerSecond: 0,
        maxResetsPerSecond: 0,
        outputTargetBytes: MIB,
      },
    });
    for (let at = 0; at < bytes.length; ) {
      const size = Math.min(bytes.length - at, cut(bytes.length - at));
      client.send(bytes.slice(at, at + size));
      at += size;
    }
    return client.take();
  };
  const whole = run((left) => left);
  const pieces = random.fork("pieces");
  assert.deepEqual(
    run(() => 1 + pieces.below(40)),
    whole,
  );
}

/** Bytes that are nothing at all, behind a good preface or none. */
export function fuzzNoise(random: Random): void {
  const client = new CoreClient(new Recorder(), { limits: LIMITS });
  if (random.below(4) > 0)
    client.send(fromLatin1(PREFACE), random.below(4) > 0 ? settingsFrame() : new Uint8Array(0));
  for (let chunks = random.below(20); chunks > 0; chunks--)
    client.send(randomBytes(random, random.below(400)));
  client.take();
  client.connection.lost();
  assert.equal(client.shared.counters.openStreams, 0);
}
