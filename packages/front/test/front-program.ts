/** The program of a test's front-end: an engine, and paths by which a client has it misbehave. */
import { workerData } from "node:worker_threads";
import { runFront } from "@quorate/front/node";
import type { HttpExchangeHandler } from "@quorate/host";
import { EngineServer } from "@quorate/rpc/node";

/** Memory that is kept. */
const kept: unknown[] = [];

const MISCHIEF: Readonly<Record<string, () => void>> = {
  "/spin": () => {
    for (;;);
  },
  "/exhaust": () => {
    for (;;) kept.push(Array.from({ length: 10_000 }, (_, i) => ({ i })));
  },
  "/throw": () => {
    setImmediate(() => {
      throw new Error("mischief");
    });
  },
  "/garbage": () => {
    const { rings } = workerData as { rings: { outbound: SharedArrayBuffer } };
    const words = new Int32Array(rings.outbound);
    setInterval(() => {
      for (let i = 0; i < words.length; i++) words[i] = Math.imul(i + 1, 0x9e3779b1);
    }, 1);
  },
};

await runFront(async ({ services, http, doors, clock, logger, program }) => {
  /** Takes no processor and does nothing; says so in the first of two words. */
  const sleep = (): void => {
    const words = program as Int32Array;
    Atomics.store(words, 0, 1);
    Atomics.wait(words, 1, 0);
  };
  const handler: HttpExchangeHandler = (exchange) => {
    const { path } = exchange.head;
    const mischief = path === "/sleep" ? sleep : MISCHIEF[path];
    if (mischief === undefined) return http(exchange);
    mischief();
    return {};
  };
  const server = new EngineServer(
    { listen: doors.map((door) => ({ secure: false, door })) },
    { services, http: handler, clock, logger },
  );
  return {
    listen: () => server.listen(),
    close: (graceMs) => server.close(graceMs),
    report: () => server.counters().acceptedConnections,
    set: () => {},
  };
});
