/**
 * What lies between clients and members: calls and streams that take their time, break, and end
 * with the process they led to.
 */
import type { Random } from "@quorate/host";
import {
  type CallContext,
  LOCAL_CALL,
  type MessageBytes,
  type Status,
  type StreamCall,
  type StreamListener,
} from "@quorate/rpc";
import type { Node } from "./node.ts";
import type { SimOptions } from "./options.ts";
import type { Process, Scheduler } from "./scheduler.ts";

/** How a stream ends that its server ended in order. */
export const ENDED_BY_SERVER = "the server ended it";

/** What came of a call. */
export interface Reply {
  readonly bytes?: Uint8Array;
  readonly error?: string;
  /** The request reached nobody. */
  readonly unsent?: boolean;
}

/** A client's end of a stream. */
export interface ClientStream {
  send(bytes: Uint8Array): void;
  /** Ends the stream from this side; nothing more is heard of it. */
  close(): void;
}

export interface ClientStreamListener {
  message(bytes: Uint8Array): void;
  /** The stream is over, not by `close`. Called once. */
  ended(reason: string): void;
}

export interface ClientStreamOptions {
  /** The client wants a member that knows a leader. */
  readonly needsLeader?: boolean;
  /** How long the client takes over each message. */
  readonly readMs?: number;
  /** Bytes under way beyond which the server is told to hold back. */
  readonly budgetBytes?: number;
}

const LEADER_CONTEXT = {
  ...LOCAL_CALL,
  metadata: (key: string) => (key === "hasleader" ? "true" : undefined),
};

export class ClientNetwork {
  readonly #options: SimOptions;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  /** While false, no connection breaks by itself. */
  faulty = true;

  constructor(options: SimOptions, deps: { scheduler: Scheduler; random: Random }) {
    this.#options = options;
    this.#scheduler = deps.scheduler;
    this.#random = deps.random;
  }

  latencyMs(): number {
    return this.#options.latencyMs + this.#random.unit() * this.#options.jitterMs;
  }

  #breaks(): boolean {
    const { clientBreaks } = this.#options;
    return clientBreaks > 0 && this.faulty && this.#random.unit() < clientBreaks;
  }

  /**
   * There and back. Ends in an error if the process dies, the connection breaks, or when the time
   * is up.
   */
  exchange(node: Node, path: string, bytes: Uint8Array, timeoutMs: number): Promise<Reply> {
    const scheduler = this.#scheduler;
    return new Promise((resolve) => {
      let forget = () => {};
      let isDone = false;
      const done = (reply: Reply) => {
        if (isDone) return;
        isDone = true;
        forget();
        timer.cancel();
        resolve(reply);
      };
      const timer = scheduler.after(timeoutMs, () => done({ error: "the client's time is up" }));
      scheduler.after(this.latencyMs(), () => {
        const { process, services } = node;
        if (isDone) return;
        if (services === undefined || process === undefined || !process.alive) {
          done({ error: "nobody answers", unsent: true });
          return;
        }
        const broken = () => done({ error: "the connection broke" });
        forget = process.onEnd(() => scheduler.after(this.latencyMs(), broken));
        scheduler.after(
          0,
          () => {
            const back = (reply: Reply) => {
              if (process.alive) scheduler.after(this.latencyMs(), () => done(reply));
            };
            if (this.#breaks()) scheduler.after(this.latencyMs(), broken);
            const ask = async () => services.unary.get(path)!(bytes, { ...LOCAL_CALL, path });
            ask().then(
              (answer) => back({ bytes: joined(answer) }),
              (error: Error) => back({ error: error.message }),
            );
          },
          process,
        );
      });
    });
  }

  /** Opens a stream. What is sent on it before it is open waits; after its end it is lost. */
  open(
    node: Node,
    path: string,
    listener: ClientStreamListener,
    options: ClientStreamOptions = {},
  ): ClientStream {
    const stream = new SimStream(listener, options, { scheduler: this.#scheduler, network: this });
    this.#scheduler.after(this.latencyMs(), () => {
      const { process, services } = node;
      const handler = services?.stream.get(path);
      if (process === undefined || !process.alive || handler === undefined) {
        stream.broken("nobody answers");
        return;
      }
      const breaks = this.#breaks() ? this.#random.unit() * 1000 : undefined;
      stream.connect(
        process,
        { ...(options.needsLeader === true ? LEADER_CONTEXT : LOCAL_CALL), path },
        handler,
        breaks,
      );
    });
    return stream;
  }
}

/** Both ends of one stream. */
class SimStream implements ClientStream {
  readonly #client: ClientStreamListener;
  readonly #options: ClientStreamOptions;
  readonly #scheduler: Scheduler;
  readonly #network: ClientNetwork;
  #process: Process | undefined;
  #server: StreamListener | undefined;
  /** Messages that the server has not taken yet. */
  readonly #unread: Uint8Array[] = [];
  #serverPaused = false;
  #clientIsOver = false;
  #serverIsOver = false;
  #forget = () => {};
  #bufferedBytes = 0;
  #blocked = false;
  #lastUpMs = 0;
  #lastDownMs = 0;

  constructor(
    client: ClientStreamListener,
    options: ClientStreamOptions,
    deps: { scheduler: Scheduler; network: ClientNetwork },
  ) {
    this.#client = client;
    this.#options = options;
    this.#scheduler = deps.scheduler;
    this.#network = deps.network;
  }

  connect(
    process: Process,
    context: CallContext,
    handler: (call: StreamCall) => StreamListener,
    breaksMs: number | undefined,
  ): void {
    if (this.#clientIsOver) return;
    this.#process = process;
    const broken = () => this.broken("the connection broke");
    this.#forget = process.onEnd(() => this.#scheduler.after(this.#network.latencyMs(), broken));
    if (breaksMs !== undefined) {
      this.#scheduler.after(breaksMs, () => {
        broken();
        this.#cancelServer();
      });
    }
    const start = () => {
      if (this.#serverIsOver) return;
      try {
        this.#server = handler(this.#call(context));
      } catch (error) {
        this.#endByServer({ code: 2, message: (error as Error).message });
        return;
      }
      this.#read();
    };
    this.#scheduler.after(0, start, process);
  }

  #call(context: CallContext): StreamCall {
    const self = this;
    return {
      context,
      send: (message) => this.#down(joined(message)),
      get bufferedBytes() {
        return self.#bufferedBytes;
      },
      end: (status) => this.#endByServer(status),
      pause: () => {
        this.#serverPaused = true;
      },
      resume: () => {
        if (!this.#serverPaused) return;
        this.#serverPaused = false;
        this.#scheduler.after(0, () => this.#read(), this.#process);
      },
    };
  }

  // --- From the client to the server ---

  send(bytes: Uint8Array): void {
    if (this.#clientIsOver) return;
    const now = this.#scheduler.nowMs;
    this.#lastUpMs = Math.max(this.#lastUpMs, now + this.#network.latencyMs());
    const arrive = () => {
      if (this.#serverIsOver) return;
      this.#unread.push(bytes);
      this.#scheduler.after(0, () => this.#read(), this.#process);
    };
    this.#scheduler.after(this.#lastUpMs - now, arrive);
  }

  #read(): void {
    while (
      this.#server !== undefined &&
      !this.#serverPaused &&
      !this.#serverIsOver &&
      this.#unread.length > 0
    ) {
      try {
        this.#server.message?.(this.#unread.shift()!);
      } catch (error) {
        this.#endByServer({ code: 2, message: (error as Error).message });
      }
    }
  }

  close(): void {
    this.#clientIsOver = true;
    this.#forget();
    this.#scheduler.after(this.#network.latencyMs(), () => this.#cancelServer());
  }

  #cancelServer(): void {
    if (this.#serverIsOver) return;
    this.#serverIsOver = true;
    const server = this.#server;
    if (server !== undefined) this.#scheduler.after(0, () => server.cancelled?.(), this.#process);
  }

  // --- From the server to the client ---

  #down(bytes: Uint8Array): boolean {
    const { readMs = 0, budgetBytes = 64 * 1024 } = this.#options;
    if (this.#serverIsOver) return false;
    const now = this.#scheduler.nowMs;
    this.#lastDownMs = Math.max(this.#lastDownMs + readMs, now + this.#network.latencyMs());
    this.#bufferedBytes += bytes.length;
    if (this.#bufferedBytes > budgetBytes) this.#blocked = true;
    this.#scheduler.after(this.#lastDownMs - now, () => {
      this.#bufferedBytes -= bytes.length;
      if (!this.#clientIsOver) this.#client.message(bytes);
      if (!this.#blocked || this.#bufferedBytes > budgetBytes / 2 || this.#serverIsOver) return;
      this.#blocked = false;
      const drained = () => {
        if (!this.#serverIsOver) this.#server?.drained?.();
      };
      this.#scheduler.after(0, drained, this.#process);
    });
    return !this.#blocked;
  }

  #endByServer(status: Status | undefined): void {
    if (this.#serverIsOver) return;
    this.#serverIsOver = true;
    const now = this.#scheduler.nowMs;
    this.#lastDownMs = Math.max(this.#lastDownMs, now + this.#network.latencyMs());
    this.#scheduler.after(this.#lastDownMs - now, () =>
      this.broken(status?.message ?? ENDED_BY_SERVER),
    );
  }

  /** The client learns that the stream is over. */
  broken(reason: string): void {
    if (this.#clientIsOver) return;
    this.#clientIsOver = true;
    this.#forget();
    this.#client.ended(reason);
  }
}

/** A message in one piece that nobody else holds. */
function joined(message: MessageBytes): Uint8Array {
  if (message instanceof Uint8Array) return message.slice();
  const whole = new Uint8Array(message.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of message) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
