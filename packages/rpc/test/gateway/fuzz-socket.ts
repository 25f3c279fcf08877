/** Random messages of WebSockets: what comes back is JSON, and the budget is free at the end. */
import assert from "node:assert/strict";
import type { Random } from "@quorate/host";
import { MAX_SOCKET_MESSAGE_BYTES, SocketExchange } from "../../src/gateway/socket-exchange.ts";
import { cut, pick, randomBody, randomRoute } from "./bodies.ts";
import { assertJson, RandomService } from "./fuzz-calls.ts";

export function fuzzSocket(random: Random): void {
  const service = new RandomService(random);
  const budget = { maxBytes: pick(random, [100, 5000, 100_000]), usedBytes: 0 };
  for (let i = 1 + random.below(4); i > 0; i--) {
    const { path, request, rpc } = randomRoute(random);
    const sent: string[] = [];
    let closed = 0;
    const headers = new Map([
      ["sec-websocket-protocol", pick(random, ["Bearer, t", "Bearer", "x"])],
    ]);
    const head = {
      method: "GET",
      path,
      query: "",
      headers,
      peerAddress: "",
      peerCommonName: undefined,
    };
    const exchange = new SocketExchange(head, rpc.requestStream, budget, {
      send: (bytes) => {
        assert.equal(closed, 0, "sent behind the close");
        assert.ok(bytes.length <= MAX_SOCKET_MESSAGE_BYTES);
        sent.push(new TextDecoder().decode(bytes));
        return random.below(3) > 0;
      },
      bufferedBytes: 0,
      pause: () => {},
      resume: () => {},
      close: () => {
        closed++;
      },
    });
    exchange.serve(service.gateway.handler);
    for (const piece of cut(random, randomBody(random, request, 30))) {
      exchange.message(piece);
      if (random.below(3) === 0) service.stir();
      if (random.below(3) === 0) exchange.drained();
    }
    exchange.closed();
    exchange.message(Uint8Array.of(0x7b));
    assert.ok(closed <= 1);
    for (const text of sent) assertJson(text);
  }
  service.clock.advance(10_000);
  assert.equal(budget.usedBytes, 0);
  assert.deepEqual(service.gateway.calls, { running: 0, waiting: 0 });
}
