/** An EngineServer on a free port, with time under the test's hand. */
import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { type ChannelCredentials, Client, type ClientOptions, credentials } from "@grpc/grpc-js";
import type { HttpExchangeHandler, HttpHandler } from "@quorate/host";
import { silentLogger } from "@quorate/host";
import type { TlsOptions } from "@quorate/host/node";
import { ManualClock } from "@quorate/host/testing";
import type { StreamHandler, UnaryHandler } from "@quorate/rpc";
import { EngineServer, type EngineServerOptions } from "@quorate/rpc/node";
import { exchangeHandler } from "../helpers/exchange-handler.ts";

export interface EngineUnderTest {
  readonly unary?: Record<string, UnaryHandler>;
  readonly stream?: Record<string, StreamHandler>;
  readonly http?: HttpHandler;
  /** Instead of `http`, for requests and responses as streams. */
  readonly exchange?: HttpExchangeHandler;
  readonly maxHttpBodyBytes?: number;
  readonly options?: Partial<EngineServerOptions>;
  readonly tls?: TlsOptions;
}

export interface RunningEngine {
  readonly server: EngineServer;
  readonly port: number;
  readonly clock: ManualClock;
  /** A grpc-js client that ends with the test. */
  client(options?: ClientOptions, secure?: ChannelCredentials): Client;
  /** A plain connection that ends with the test. */
  socket(): Promise<Socket>;
}

export async function startEngine(t: TestContext, what: EngineUnderTest): Promise<RunningEngine> {
  const clock = new ManualClock();
  const server = new EngineServer(
    {
      listen: [{ host: "127.0.0.1", port: 0, secure: what.tls !== undefined }],
      tls: what.tls,
      ...what.options,
    },
    {
      services: {
        unary: new Map(Object.entries(what.unary ?? {})),
        stream: new Map(Object.entries(what.stream ?? {})),
      },
      http: exchangeHandler(what, silentLogger),
      clock,
      logger: silentLogger,
    },
  );
  const [bound] = await server.listen();
  t.after(async () => {
    const closed = server.close(0);
    clock.advance(1);
    await closed;
  });
  const port = bound.port ?? 0;
  return {
    server,
    port,
    clock,
    client(options = {}, secure = credentials.createInsecure()) {
      const client = new Client(`127.0.0.1:${port}`, secure, {
        "grpc.use_local_subchannel_pool": 1,
        ...options,
      });
      t.after(() => client.close());
      return client;
    },
    socket: () =>
      new Promise((resolve) => {
        const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(socket));
        socket.on("error", () => {});
        t.after(() => socket.destroy());
      }),
  };
}

/** How long a condition may take to come true; far more than it ever does. */
const PATIENCE_MS = 120_000;

/**
 * Resolves once `condition` holds; looks again in each turn of the event loop. Rejects if it does
 * not come to hold at all.
 */
export async function until(condition: () => boolean): Promise<void> {
  const lastMs = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > lastMs) throw new Error(`this does not come true: ${condition}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Resolves once a value has stayed the same for some turns of the event loop. */
export async function unchanged(value: () => number): Promise<void> {
  for (let same = 0, last = value(); same < 50; same++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (value() !== last) same = 0;
    last = value();
  }
}
