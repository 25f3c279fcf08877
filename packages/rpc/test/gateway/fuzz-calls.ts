/**
 * Random calls: bodies in pieces, pauses, slow readers, clients that go, deadlines, handlers that
 * succeed, fail or never end. Whatever happens, no call throws, everything that ends has a whole
 * response of JSON, and nothing is kept when all is over.
 */
import assert from "node:assert/strict";
import type { Random } from "@quorate/host";
import { ManualClock, MemoryExchange } from "@quorate/host/testing";
import { httpRoutes } from "@quorate/proto";
import { Gateway } from "../../src/gateway/gateway.ts";
import type { GatewayLimits } from "../../src/gateway/settings.ts";
import { StatusError, type StreamCall, type StreamListener } from "../../src/service.ts";
import { cut, pick, randomBody, randomRoute } from "./bodies.ts";

export const FUZZ_LIMITS: GatewayLimits = {
  maxRequestBytes: 6000,
  maxBodyBytes: 12_000,
  maxResponseBytes: 1 << 24,
  sendBudgetBytes: 3000,
  maxLingeringBytes: 100_000,
  maxCalls: 4,
};

/** A gateway whose handlers do anything, and what must be so when all is over. */
export class RandomService {
  readonly clock = new ManualClock();
  readonly gateway: Gateway;
  readonly calls = new Set<StreamCall>();
  /** Handlers that have not answered: calls of these end them. */
  readonly open: (() => void)[] = [];
  started = 0;
  handled = 0;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
    const { clock } = this;
    this.gateway = new Gateway({
      services: {
        unary: new Map(
          httpRoutes()
            .filter(({ rpc }) => !rpc.requestStream && !rpc.responseStream)
            .map(({ rpc }) => [rpc.path, (request: Uint8Array) => this.#unary(request)]),
        ),
        stream: new Map(
          httpRoutes()
            .filter(({ rpc }) => rpc.requestStream || rpc.responseStream)
            .map(({ rpc }) => [rpc.path, (call: StreamCall) => this.#stream(call)]),
        ),
      },
      routes: httpRoutes(),
      clock,
      observer: {
        started: () => void this.started++,
        handled: () => void this.handled++,
        messageReceived: () => {},
        messageSent: () => {},
      },
      limits: FUZZ_LIMITS,
    });
  }

  #message(): Uint8Array {
    // A field of another number than any of the responses have, or nothing.
    return this.#random.below(2) === 0 ? new Uint8Array(0) : Uint8Array.of(0xf8, 0x3f, 1);
  }

  #unary(_request: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const kind = this.#random.below(4);
    if (kind === 0) return this.#message();
    if (kind === 1) throw new StatusError(this.#random.below(18), "no\u0001<");
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    this.open.push(() =>
      kind === 2 ? resolve(this.#message()) : reject(new StatusError(7, "denied")),
    );
    return promise;
  }

  #stream(call: StreamCall): StreamListener {
    if (this.#random.below(10) === 0) throw new StatusError(7, "denied");
    this.calls.add(call);
    const over = (): void => void this.calls.delete(call);
    return {
      message: () => {
        const kind = this.#random.below(8);
        if (kind === 0) call.pause();
        else if (kind === 1) throw new StatusError(3, "odd");
        else call.send(this.#message());
      },
      halfClosed: () => {
        if (this.#random.below(2) === 0) call.end();
      },
      cancelled: over,
    };
  }

  /** Something happens to the streams. */
  stir(): void {
    for (const call of this.calls) {
      const kind = this.#random.below(6);
      if (kind === 0) call.resume();
      else if (kind === 1) call.send(this.#message());
      else if (kind === 2) call.end({ code: this.#random.below(17), message: "over" });
    }
  }
}

export function fuzzGatewayCall(random: Random): void {
  const service = new RandomService(random);
  const exchanges: MemoryExchange[] = [];
  for (let i = 1 + random.below(8); i > 0; i--) {
    const exchange = randomExchange(random, service);
    exchanges.push(exchange);
    if (random.below(3) === 0) service.stir();
    if (random.below(4) === 0) service.clock.advance(random.below(100));
  }
  for (const one of exchanges) finish(service, one);
  service.clock.advance(10_000);
  for (const end of service.open) end();
  for (const one of exchanges) {
    assert.ok(one.heldBytes >= 0, "more was released than held");
    if (one.state !== "ended") continue;
    assertJson(one.text);
  }
  assert.deepEqual(service.gateway.calls, { running: 0, waiting: 0 });
  assert.equal(service.started, service.handled);
}

function randomExchange(random: Random, { gateway }: RandomService): MemoryExchange {
  const { path, request } = randomRoute(random);
  const headers = new Map<string, string>();
  if (random.below(4) === 0)
    headers.set("grpc-timeout", pick(random, ["1S", "10m", "0S", "-5m", "x", "999999999999H"]));
  if (random.below(8) === 0) headers.set("grpc-metadata-a-bin", pick(random, ["YQ==", "!", "YQ"]));
  const head = { path, method: random.below(20) === 0 ? "GET" : "POST", headers };
  const exchange = new MemoryExchange(head);
  exchange.sendBudgetBytes = pick(random, [0, 1000, Number.POSITIVE_INFINITY]);
  if (random.below(10) === 0) exchange.holdBudgetBytes = random.below(2000);
  exchange.serve(gateway.handler, [], true);
  for (const piece of cut(random, randomBody(random, request, 30))) {
    if (exchange.state === "ended" || exchange.paused) break;
    exchange.listener.data?.(piece);
    if (random.below(50) === 0) {
      exchange.abort();
      exchange.listener.aborted?.();
      return exchange;
    }
  }
  if (exchange.state !== "ended" && random.below(4) > 0) exchange.listener.ended?.();
  if (random.below(4) === 0) exchange.listener.drained?.();
  return exchange;
}

/** Clients that are still there go. */
function finish({ gateway }: RandomService, exchange: MemoryExchange): void {
  assert.ok(gateway.calls.running <= FUZZ_LIMITS.maxCalls);
  if (exchange.state === "ended" || exchange.state === "aborted") return;
  exchange.abort();
  exchange.listener.aborted?.();
}

/** Lines of JSON, one object each. */
export function assertJson(text: string): void {
  for (const line of text.split("\n")) {
    if (line === "") continue;
    assert.equal(typeof JSON.parse(line), "object");
  }
}
