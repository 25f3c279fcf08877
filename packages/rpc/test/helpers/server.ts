/** A server on a free port of 127.0.0.1, with time under the test's hand, and clients for it. */
import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { type ChannelCredentials, Client, type ClientOptions, credentials } from "@grpc/grpc-js";
import type { HttpExchangeHandler, HttpHandler, LogFields, Logger } from "@quorate/host";
import type { TlsOptions, TlsSource } from "@quorate/host/node";
import { ManualClock } from "@quorate/host/testing";
import type { RpcObserver, StreamHandler, UnaryHandler } from "@quorate/rpc";
import { EngineServer, type EngineServerOptions } from "@quorate/rpc/node";
import { exchangeHandler } from "./exchange-handler.ts";

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly msg: string;
  readonly fields: LogFields;
}

/** A logger that keeps its lines, and lets a test wait for one. */
export class RecordingLogger implements Logger {
  readonly lines: LogLine[] = [];
  #waiting: { readonly msg: string; readonly resolve: (line: LogLine) => void }[] = [];

  debug(msg: string, fields: LogFields = {}): void {
    this.#add({ level: "debug", msg, fields });
  }
  info(msg: string, fields: LogFields = {}): void {
    this.#add({ level: "info", msg, fields });
  }
  warn(msg: string, fields: LogFields = {}): void {
    this.#add({ level: "warn", msg, fields });
  }
  error(msg: string, fields: LogFields = {}): void {
    this.#add({ level: "error", msg, fields });
  }
  child(): Logger {
    return this;
  }

  /** The first line with this message, present or future. */
  line(msg: string): Promise<LogLine> {
    const found = this.lines.find((line) => line.msg === msg);
    return found
      ? Promise.resolve(found)
      : new Promise((resolve) => this.#waiting.push({ msg, resolve }));
  }

  #add(line: LogLine): void {
    this.lines.push(line);
    for (const one of this.#waiting.filter(({ msg }) => msg === line.msg)) one.resolve(line);
    this.#waiting = this.#waiting.filter(({ msg }) => msg !== line.msg);
  }
}

export interface ServerUnderTest {
  readonly unary?: Record<string, UnaryHandler>;
  readonly stream?: Record<string, StreamHandler>;
  readonly http?: HttpHandler;
  /** Instead of `http`, for requests and responses as streams. */
  readonly exchange?: HttpExchangeHandler;
  readonly maxHttpBodyBytes?: number;
  readonly observer?: RpcObserver;
  readonly options?: Partial<EngineServerOptions>;
  readonly tls?: TlsOptions | TlsSource;
}

export interface RunningServer {
  readonly server: EngineServer;
  readonly port: number;
  readonly clock: ManualClock;
  readonly logger: RecordingLogger;
  /** A client that ends with the test. */
  client(options?: ClientOptions, secure?: ChannelCredentials): Client;
  /** A plain connection that ends with the test. */
  socket(): Promise<Socket>;
}

/** Starts a server that ends with the test. */
export async function startServer(t: TestContext, what: ServerUnderTest): Promise<RunningServer> {
  const clock = new ManualClock();
  const logger = new RecordingLogger();
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
      http: exchangeHandler(what, logger),
      clock,
      logger,
      observer: what.observer,
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
    logger,
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

/** A promise and what settles it. */
export function deferred<T = void>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
} {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
