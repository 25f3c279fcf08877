/**
 * gRPC over the engine's core: services on a connection without a socket, with time under the
 * test's hand.
 */
import { gunzipSync, gzipSync } from "node:zlib";
import {
  type HttpExchangeHandler,
  type HttpHandler,
  type Logger,
  silentLogger,
} from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { concat } from "@quorate/proto";
import type { RpcObserver, StreamHandler, UnaryHandler } from "@quorate/rpc";
import { DeadlineQueue } from "../../src/deadlines.ts";
import { type Compressor, Inflater } from "../../src/grpc/compression.ts";
import { Dispatcher } from "../../src/grpc/dispatcher.ts";
import type { GrpcLimits, GrpcShared } from "../../src/grpc/shared.ts";
import { HttpDate } from "../../src/http/fields.ts";
import { exchangeHandler } from "../helpers/exchange-handler.ts";
import { CoreClient, type CoreOptions, data, MIB } from "./core.ts";

/** The header Date at the manual clock's start. */
export const DATE = "Thu, 01 Jan 2026 00:00:00 GMT";

/** A message with its prefix. */
export function message(bytes: Uint8Array, flag = 0): Uint8Array {
  const prefix = new Uint8Array(5);
  prefix[0] = flag;
  new DataView(prefix.buffer).setUint32(1, bytes.length);
  return concat([prefix, bytes]);
}

export const CALL: Record<string, string> = {
  ":method": "POST",
  ":scheme": "http",
  ":path": "/test.Echo/Now",
  ":authority": "test",
  "content-type": "application/grpc",
  te: "trailers",
};

/** Node's gzip, whose later results wait until the test lets them go. */
export class HeldCompressor implements Compressor {
  readonly #waiting: (() => void)[] = [];

  decompressNow(bytes: Uint8Array, maxBytes: number, mostBytes: number): Uint8Array | undefined {
    try {
      return gunzipSync(bytes, { maxOutputLength: Math.min(maxBytes, mostBytes) });
    } catch (error) {
      if ((error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE" && mostBytes < maxBytes)
        return undefined;
      throw error;
    }
  }

  decompressLater(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          resolve(gunzipSync(bytes, { maxOutputLength: maxBytes }));
        } catch (error) {
          reject(error as Error);
        }
      });
    });
  }

  compressNow(bytes: Uint8Array | readonly Uint8Array[]): Uint8Array {
    return gzipSync(bytes instanceof Uint8Array ? bytes : concat(bytes));
  }

  compressLater(bytes: Uint8Array | readonly Uint8Array[]): Promise<Uint8Array> {
    return new Promise((resolve) => this.#waiting.push(() => resolve(this.compressNow(bytes))));
  }

  /** Jobs that wait to be let go. */
  get held(): number {
    return this.#waiting.length;
  }

  release(): void {
    for (const one of this.#waiting.splice(0)) one();
  }
}

export interface GrpcOptions extends CoreOptions {
  readonly unary?: Record<string, UnaryHandler>;
  readonly stream?: Record<string, StreamHandler>;
  readonly http?: HttpHandler;
  readonly exchange?: HttpExchangeHandler;
  readonly maxHttpBodyBytes?: number;
  readonly observer?: RpcObserver;
  readonly serves?: "all" | "grpc" | "http";
  readonly grpcLimits?: Partial<GrpcLimits>;
  readonly logger?: Logger;
  /** Another client's, of whose server this one is too. */
  readonly grpc?: GrpcShared;
}

export class GrpcClient extends CoreClient {
  readonly clock: ManualClock;
  readonly compressor: HeldCompressor;
  readonly grpc: GrpcShared;

  constructor(options: GrpcOptions = {}) {
    const clock = new ManualClock();
    const logger = options.logger ?? silentLogger;
    const compressor = new HeldCompressor();
    const inflater = options.grpc?.inflater ?? new Inflater(compressor, clock);
    const grpc: GrpcShared = {
      limits: {
        maxRequestBytes: 2 * MIB,
        maxResponseBytes: 2 ** 31 - 1,
        sendBudgetBytes: 1000,
        ...options.grpcLimits,
      },
      services: {
        unary: new Map(Object.entries(options.unary ?? {})),
        stream: new Map(Object.entries(options.stream ?? {})),
      },
      http: {
        handler: exchangeHandler(options, logger),
        logger,
        date: new HttpDate(clock),
        sendBudgetBytes: options.grpcLimits?.sendBudgetBytes ?? 1000,
      },
      clock,
      logger,
      deadlines: new DeadlineQueue(clock),
      compressor,
      inflater,
      observer: options.observer,
    };
    super(new Dispatcher(grpc, options.serves ?? "all"), options);
    this.clock = clock;
    this.compressor = compressor;
    this.grpc = grpc;
    this.greet();
  }

  /** Sends a whole unary call. */
  call(streamId: number, body: Uint8Array, headers: Record<string, string> = {}): void {
    this.send(this.headers(streamId, { ...CALL, ...headers }), data(streamId, message(body), true));
  }

  /** Moves the clock, and the connection with it. */
  pass(ms: number): void {
    this.clock.advance(ms);
    this.sweep(ms);
  }
}

/** Lets settled promises run their reactions. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
