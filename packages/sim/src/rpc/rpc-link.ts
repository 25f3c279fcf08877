/**
 * One connection of clients to a process of a member: rpc's own connection and dispatcher on the
 * member's side, a client of HTTP/2 and gRPC on the other, and bytes between them that are cut,
 * delayed and changed.
 */
import { type Random, silentLogger } from "@quorate/host";
import { equals } from "@quorate/proto";
import {
  DEFAULT_HTTP2_LIMITS,
  DeadlineQueue,
  Dispatcher,
  Http2Connection,
  Http2Shared,
  HttpDate,
  Inflater,
  isPieceSource,
  type MessageBytes,
  ownedMessage,
  type ServiceTable,
  type StreamCall,
  type UnaryResponse,
  wrappedCall,
  wrappedListener,
} from "@quorate/rpc";
import { type Process, ProcessClock, type Scheduler } from "../base/scheduler.ts";
import { Violation, violate } from "../base/violation.ts";
import { cutAtRandom } from "../wire/cuts.ts";
import { type CallEvents, type GrpcCall, GrpcClient } from "./grpc-client.ts";

const MIB = 1024 * 1024;
/** Between the engine's looks at its timeouts, as in the real server. */
const SWEEP_PERIOD_MS = 1000;
/** In the metadata: which call it is, so that both ends can be compared. */
const CALL_KEY = "x-sim-call";
const SEND_BUDGET_BYTES = 64 * 1024;
const PREFACE_BYTES = 24;
/** The longest frame is 16 KiB: this bit in the first byte of its length is never set. */
const TOO_LONG = 0x80;

export interface RpcLinkDeps {
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Of the client's certificate. */
  readonly commonName?: string | undefined;
  latencyMs(): number;
  /** Whether a byte of the write that leaves now changes on its way. */
  isDamaged(): boolean;
  /** Something is wrong that no event would show. */
  fail(error: unknown): void;
}

/** What both ends of a call have sent and not received. */
interface Ledger {
  readonly requests: Uint8Array[];
  readonly answers: Uint8Array[];
}

export class RpcLink {
  readonly #deps: RpcLinkDeps;
  readonly #process: Process;
  readonly #client: GrpcClient;
  readonly #server: Http2Connection;
  readonly #ledgers = new Map<string, Ledger>();
  #isAwake = { client: false, server: false };
  #lastUpMs = 0;
  #lastDownMs = 0;
  #calls = 0;
  #isFirst = true;
  #isSweeping = false;
  isOver = false;
  readonly commonName: string | undefined;
  #wasDamaged = false;

  constructor(process: Process, services: ServiceTable, deps: RpcLinkDeps) {
    this.#process = process;
    this.#deps = deps;
    this.#client = new GrpcClient(deps.random, () => this.#clientWakes());
    const limits = DEFAULT_HTTP2_LIMITS;
    const shared = new Http2Shared(limits, 256 * MIB, 256 * MIB, 64 * MIB);
    const acceptor = new Dispatcher(this.#grpcOf(services), "grpc");
    const owner = {
      wake: () => this.#serverWakes(),
      settled: () => {},
      heldBack: () =>
        deps.scheduler.after(0, () => this.#server.goOn(this.#nowMs()), this.#process),
    };
    const peer = { peerAddress: "", peerCommonName: deps.commonName };
    this.commonName = deps.commonName;
    this.#server = new Http2Connection(shared, acceptor, owner, peer, this.#nowMs());
    process.onEnd(() => this.break("the connection broke", deps.latencyMs()));
    this.#clientWakes();
  }

  #nowMs(): number {
    return this.#deps.scheduler.nowMs;
  }

  #grpcOf(services: ServiceTable): ConstructorParameters<typeof Dispatcher>[0] {
    const clock = new ProcessClock(this.#deps.scheduler, this.#process, 1);
    const compressor = {
      decompressNow: () => violate("RPC-1", "a message that was not compressed is decompressed"),
      decompressLater: () => violate("RPC-1", "a message that was not compressed is decompressed"),
      compressNow: () => violate("RPC-1", "an answer is compressed, which no client accepts"),
      compressLater: () => violate("RPC-1", "an answer is compressed, which no client accepts"),
    };
    return {
      limits: {
        maxRequestBytes: 64 * MIB,
        maxResponseBytes: 256 * MIB,
        sendBudgetBytes: SEND_BUDGET_BYTES,
      },
      services: this.#watched(services),
      http: {
        handler: (exchange) => {
          exchange.respond({ status: 404, headers: {}, body: "" });
          return {};
        },
        logger: silentLogger,
        sendBudgetBytes: SEND_BUDGET_BYTES,
        date: new HttpDate(clock),
      },
      clock,
      logger: silentLogger,
      deadlines: new DeadlineQueue(clock),
      compressor,
      inflater: new Inflater(compressor, clock),
      observer: undefined,
    };
  }

  /** The services, with what they receive compared and what they answer written down (RPC-1). */
  #watched({ unary, stream }: ServiceTable): ServiceTable {
    const compare = (ledger: Ledger | undefined, bytes: Uint8Array) => {
      const sent = ledger?.requests.shift();
      if (sent !== undefined && equals(sent, bytes)) return;
      const text = `a request of ${bytes.length} bytes differs from what was sent`;
      // Thrown, it would be the answer of the call.
      this.#deps.fail(new Violation(`RPC-1: ${text}`));
    };
    const note = (ledger: Ledger | undefined, message: MessageBytes) => {
      ledger?.answers.push(ownedMessage(message));
      return message;
    };
    /** Pieces are made once: they are collected, and handed out again. */
    const noteAll = (ledger: Ledger | undefined, message: UnaryResponse): UnaryResponse => {
      if (!isPieceSource(message)) return note(ledger, message);
      const pieces: Uint8Array[] = [];
      for (let piece = message.next(); piece !== undefined; piece = message.next())
        pieces.push(piece);
      note(ledger, pieces);
      return { sizeBytes: message.sizeBytes, next: () => pieces.shift() };
    };
    const ledgerOf = (call: StreamCall["context"]) =>
      this.#ledgers.get(call.metadata(CALL_KEY) ?? "");
    return {
      unary: mapped(unary, (handler) => async (bytes, context) => {
        const ledger = ledgerOf(context);
        compare(ledger, bytes);
        return noteAll(ledger, await handler(bytes, context));
      }),
      stream: mapped(stream, (handler) => (call) => {
        const ledger = ledgerOf(call.context);
        const send = (message: MessageBytes) => call.send(note(ledger, message));
        const listener = handler(wrappedCall(call, call.context, { send }));
        return wrappedListener(listener, {
          message(bytes) {
            compare(ledger, bytes);
            listener.message?.(bytes);
          },
        });
      }),
    };
  }

  /** Begins a call. `events.ended` is not called after `cancel`. */
  call(path: string, metadata: Readonly<Record<string, string>>, events: CallEvents): GrpcCall {
    const key = `${this.#calls++}`;
    const ledger: Ledger = { requests: [], answers: [] };
    this.#ledgers.set(key, ledger);
    const call = this.#client.call(
      path,
      { ...metadata, [CALL_KEY]: key },
      {
        message(bytes, taken) {
          const sent = ledger.answers.shift();
          if (sent === undefined || !equals(sent, bytes))
            violate("RPC-1", `an answer of ${bytes.length} bytes differs from what was sent`);
          events.message(bytes, taken);
        },
        ended: (code, text) => {
          if (code === 0 && ledger.answers.length > 0)
            violate("RPC-1", `a call of ${path} ends well before ${ledger.answers.length} answers`);
          this.#ledgers.delete(key);
          events.ended(code, text);
        },
      },
    );
    const send = call.send.bind(call);
    call.send = (bytes) => {
      ledger.requests.push(bytes);
      send(bytes);
    };
    this.#sweepLater();
    return call;
  }

  /** The connection ends for both sides: for the client after a while. */
  break(reason: string, afterMs = 0): void {
    if (this.isOver) return;
    this.isOver = true;
    const { scheduler } = this.#deps;
    scheduler.after(afterMs, () => this.#client.lost(reason));
    if (this.#process.alive) scheduler.after(0, () => this.#server.lost(), this.#process);
  }

  #sweepLater(): void {
    if (this.#isSweeping || this.isOver) return;
    this.#isSweeping = true;
    const sweep = () => {
      this.#isSweeping = false;
      if (this.isOver) return;
      this.#server.sweep(this.#nowMs());
      if (this.#client.openCalls > 0) this.#sweepLater();
    };
    this.#deps.scheduler.after(SWEEP_PERIOD_MS, sweep, this.#process);
  }

  // --- From the client to the server ---

  #clientWakes(): void {
    if (this.#isAwake.client || this.isOver) return;
    this.#isAwake.client = true;
    this.#deps.scheduler.after(0, () => {
      this.#isAwake.client = false;
      this.#up();
    });
  }

  #up(): void {
    if (this.#client.over !== undefined) {
      this.break(this.#client.over);
      return;
    }
    const bytes = this.#client.takeOutput();
    if (bytes === undefined || this.isOver) return;
    const headAt = this.#isFirst ? PREFACE_BYTES : 0;
    this.#isFirst = false;
    const damage = this.#damage(bytes, headAt);
    if (damage === "sealed") return;
    const { scheduler, random } = this.#deps;
    const pieces = cutAtRandom(bytes, random);
    this.#lastUpMs = Math.max(this.#lastUpMs, this.#nowMs() + this.#deps.latencyMs());
    const read = () => {
      for (const piece of pieces) if (!this.isOver) this.#server.receive(piece, this.#nowMs());
      if (damage === "bare" && !this.isOver && !this.#server.ending)
        violate("RPC-3", "the server goes on after a frame that is too long");
    };
    scheduler.after(this.#lastUpMs - this.#nowMs(), () => {
      if (!this.isOver) scheduler.after(0, read, this.#process);
    });
  }

  // --- From the server to the client ---

  #serverWakes(): void {
    if (this.#isAwake.server || this.isOver) return;
    this.#isAwake.server = true;
    const flush = () => {
      this.#isAwake.server = false;
      this.#down();
    };
    this.#deps.scheduler.after(0, flush, this.#process);
  }

  #down(): void {
    if (this.isOver) return;
    const server = this.#server;
    const parts: Uint8Array[] = [];
    for (;;) {
      for (const chunk of server.takeOutput()) parts.push(chunk.slice());
      server.out.recycle();
      if (!server.sender.hasMore) break;
      server.sender.refill();
    }
    const isEnding = server.ending;
    const bytes = ownedMessage(parts);
    const { scheduler, random } = this.#deps;
    this.#lastDownMs = Math.max(this.#lastDownMs, this.#nowMs() + this.#deps.latencyMs());
    const delayMs = this.#lastDownMs - this.#nowMs();
    if (bytes.length > 0) {
      const damage = this.#damage(bytes, 0);
      if (damage === "sealed") return;
      const pieces = cutAtRandom(bytes, random);
      scheduler.after(delayMs, () => {
        if (this.isOver) return;
        for (const piece of pieces) this.#client.receive(piece);
        if (damage === "bare" && this.#client.over === undefined)
          violate("RPC-3", "the client goes on after a frame that is too long");
      });
    }
    if (!isEnding) return;
    if (!this.#wasDamaged)
      violate("RPC-1", "the server ends a connection on which no rule was broken");
    scheduler.after(delayMs, () => this.break("the server ended the connection"));
  }

  /**
   * Changes a byte of a write, now and then: "sealed" where TLS notices, and the connection ends;
   * "bare" where the length of a frame becomes one that no frame may have.
   */
  #damage(bytes: Uint8Array, headAt: number): "sealed" | "bare" | undefined {
    const { random, latencyMs } = this.#deps;
    if (!this.#deps.isDamaged()) return undefined;
    this.#wasDamaged = true;
    if (random.below(2) === 0) {
      this.break("the connection broke", latencyMs());
      return "sealed";
    }
    bytes[headAt] |= TOO_LONG;
    return "bare";
  }
}

function mapped<K, V>(map: ReadonlyMap<K, V>, change: (value: V) => V): ReadonlyMap<K, V> {
  return new Map([...map].map(([key, value]) => [key, change(value)]));
}
