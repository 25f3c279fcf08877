/** The contract of HttpExchange through the rings. */
import assert from "node:assert/strict";
import { type HttpExchangeHandler, silentLogger } from "@quorate/host";
import {
  type ExchangesUnderTest,
  httpExchangeContract,
  ManualClock,
  MemoryExchange,
} from "@quorate/host/testing";
import { FrontTwin } from "../testing/index.ts";

const HOLD_BUDGET_BYTES = 100_000;

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn();
}

async function throughRings(): Promise<ExchangesUnderTest> {
  let next: HttpExchangeHandler = () => assert.fail("no request is expected");
  const twin = new FrontTwin({
    services: { unary: new Map(), stream: new Map() },
    http: (exchange) => next(exchange),
    clock: new ManualClock(),
    logger: silentLogger,
    later: (task) => void setImmediate(task),
    broken: (error) => assert.fail(error),
    maxHeldBytes: HOLD_BUDGET_BYTES,
  });
  return {
    holdBudgetBytes: HOLD_BUDGET_BYTES,
    async request({ method, path, headers = {} }, handler) {
      next = handler;
      const [target, ...query] = path.split("?");
      const fields = new Map(
        Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
      );
      const exchange = new MemoryExchange({
        method,
        path: target,
        query: query.join("?"),
        headers: fields,
      });
      exchange.serve(twin.http, [], true);
      return {
        send: (text) => exchange.receive(Buffer.from(text)),
        end: () => exchange.receive(undefined),
        leave: () => exchange.leave(),
        async head() {
          await until(() => exchange.status !== undefined);
          const pairs = Object.entries(exchange.headers);
          const answered = pairs.map(([name, value]) => [name.toLowerCase(), value] as const);
          return { status: exchange.status ?? 0, headers: new Map(answered) };
        },
        async body(sizeBytes) {
          await until(() => exchange.text.length >= sizeBytes);
          return exchange.text;
        },
        async outcome() {
          await until(() => exchange.state === "ended" || exchange.state === "aborted");
          return exchange.state === "ended" ? "ended" : "aborted";
        },
      };
    },
    settled: async () => {
      for (let turns = 0; turns < 20; turns++) await turn();
    },
    close: async () => twin.served.close(),
  };
}

httpExchangeContract("through the rings", throughRings);
