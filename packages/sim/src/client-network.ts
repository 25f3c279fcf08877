/**
 * What lies between clients and members: calls and streams that take their time, break, and end
 * with the process they led to.
 */
import type { Random } from "@quorate/host";
import { defined, GrpcCode } from "@quorate/proto";
import {
  type CallContext,
  ownedMessage,
  type ServiceTable,
  type Status,
  type StatusError,
  type StreamCall,
  type StreamListener,
} from "@quorate/rpc";
import type { SimOptions } from "./base/options.ts";
import type { Process, Scheduler } from "./base/scheduler.ts";
import {
  type ClientStream,
  type ClientStreamListener,
  type ClientStreamOptions,
  type Credential,
  contextOf,
  ENDED_BY_SERVER,
  type Exchanges,
  type Metadata,
  metadataOf,
  NO_CREDENTIAL,
  type Reply,
} from "./exchanges.ts";
import type { Node } from "./node.ts";
import type { GrpcCall } from "./rpc/grpc-client.ts";
import { RpcLink } from "./rpc/rpc-link.ts";

/** Connections of all clients to one process. */
const MAX_LINKS = 3;
const BROKEN = "the connection broke";

export interface ClientNetworkDeps {
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Something is wrong that no event would show. */
  fail(error: unknown): void;
}

export class ClientNetwork implements Exchanges {
  readonly #options: SimOptions;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #fail: (error: unknown) => void;
  /** Connections of rpc to each process, where calls are bytes on them. */
  readonly #links = new WeakMap<Process, RpcLink[]>();
  /** While false, no connection breaks by itself. */
  faulty = true;

  constructor(options: SimOptions, deps: ClientNetworkDeps) {
    this.#options = options;
    this.#scheduler = deps.scheduler;
    this.#random = deps.random;
    this.#fail = (error) => deps.fail(error);
  }

  /** A connection to a process: one of a few that calls share. */
  #linkTo(process: Process, services: ServiceTable, { commonName }: Credential): RpcLink {
    const links = (this.#links.get(process) ?? []).filter(({ isOver }) => !isOver);
    this.#links.set(process, links);
    const own = links.filter((one) => one.commonName === commonName);
    const picked = own[this.#random.below(MAX_LINKS)];
    if (picked !== undefined) return picked;
    const { corruption } = this.#options;
    const link = new RpcLink(process, services, {
      commonName,
      scheduler: this.#scheduler,
      random: this.#random,
      latencyMs: () => this.latencyMs(),
      fail: this.#fail,
      isDamaged: () => corruption > 0 && this.faulty && this.#random.unit() < corruption,
    });
    links.push(link);
    return link;
  }

  latencyMs(): number {
    return this.#options.latencyMs + this.#random.unit() * this.#options.jitterMs;
  }

  #breaks(): boolean {
    const { clientBreaks } = this.#options;
    return clientBreaks > 0 && this.faulty && this.#random.unit() < clientBreaks;
  }

  exchange(
    node: Node,
    path: string,
    bytes: Uint8Array,
    timeoutMs: number,
    _client?: string,
    credential: Credential = NO_CREDENTIAL,
  ): Promise<Reply> {
    const scheduler = this.#scheduler;
    return new Promise((resolve) => {
      let forget = () => {};
      let cancel = () => {};
      let isDone = false;
      const done = (reply: Reply) => {
        if (isDone) return;
        isDone = true;
        forget();
        cancel();
        timer.cancel();
        resolve(reply);
      };
      const timer = scheduler.after(timeoutMs, () =>
        done({ error: "the client's time is up", code: GrpcCode.DeadlineExceeded }),
      );
      scheduler.after(this.latencyMs(), () => {
        const { process, services } = node;
        if (isDone) return;
        if (services === undefined || process === undefined || !process.alive) {
          done({ error: "no member answers", unsent: true });
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
            if (this.#options.clientWires) {
              forget();
              const link = this.#linkTo(process, services, credential);
              if (this.#breaks()) scheduler.after(this.latencyMs(), () => link.break(BROKEN));
              cancel = this.#askOver(link, path, bytes, { credential, done });
              return;
            }
            if (this.#breaks()) scheduler.after(this.latencyMs(), broken);
            const context = contextOf(path, credential, false);
            const ask = async () => defined(services.unary.get(path), path)(bytes, context);
            ask().then(
              (answer) => back({ bytes: ownedMessage(answer) }),
              ({ message, code }: Partial<StatusError> & Error) =>
                back({ error: message, ...(typeof code === "number" && { code }) }),
            );
          },
          process,
        );
      });
    });
  }

  /** One call on a connection of rpc; returns a function that removes it. */
  #askOver(
    link: RpcLink,
    path: string,
    bytes: Uint8Array,
    { credential, done }: { credential: Credential; done: (reply: Reply) => void },
  ): () => void {
    let answer: Uint8Array | undefined;
    const call = link.call(path, metadataOf(credential, false), {
      message(message, taken) {
        answer = message;
        taken();
      },
      ended: (code, text) => done(code === 0 ? { bytes: answer } : { error: text }),
    });
    call.send(bytes);
    call.end();
    return () => call.cancel();
  }

  #openOver(
    node: Node,
    path: string,
    listener: ClientStreamListener,
    { needsLeader = false, readMs = 0 }: ClientStreamOptions,
    credential: Credential,
  ): ClientStream {
    const stream = new WiredStream(listener, readMs, this.#scheduler);
    this.#scheduler.after(this.latencyMs(), () => {
      const { process, services } = node;
      if (process === undefined || !process.alive || services?.stream.has(path) !== true) {
        stream.broken("no member answers");
        return;
      }
      const link = this.#linkTo(process, services, credential);
      if (this.#breaks())
        this.#scheduler.after(this.#random.unit() * 1000, () => link.break(BROKEN));
      stream.connect(link, path, metadataOf(credential, needsLeader));
    });
    return stream;
  }

  open(
    node: Node,
    path: string,
    listener: ClientStreamListener,
    options: ClientStreamOptions = {},
    credential: Credential = NO_CREDENTIAL,
  ): ClientStream {
    if (this.#options.clientWires) return this.#openOver(node, path, listener, options, credential);
    const stream = new SimStream(listener, options, { scheduler: this.#scheduler, network: this });
    this.#scheduler.after(this.latencyMs(), () => {
      const { process, services } = node;
      const handler = services?.stream.get(path);
      if (process === undefined || !process.alive || handler === undefined) {
        stream.broken("no member answers");
        return;
      }
      const breaks = this.#breaks() ? this.#random.unit() * 1000 : undefined;
      stream.connect(
        process,
        contextOf(path, credential, options.needsLeader === true),
        handler,
        breaks,
      );
    });
    return stream;
  }
}

/** A stream on a connection of rpc. */
class WiredStream implements ClientStream {
  readonly #client: ClientStreamListener;
  readonly #readMs: number;
  readonly #scheduler: Scheduler;
  /** What was sent before the stream was open. */
  #early: Uint8Array[] = [];
  #call: GrpcCall | undefined;
  #isOver = false;
  #lastReadMs = 0;

  constructor(client: ClientStreamListener, readMs: number, scheduler: Scheduler) {
    this.#client = client;
    this.#readMs = readMs;
    this.#scheduler = scheduler;
  }

  connect(link: RpcLink, path: string, metadata: Metadata): void {
    if (this.#isOver) return;
    this.#call = link.call(path, metadata, {
      message: (bytes, taken) => this.#later(() => this.#message(bytes, taken)),
      ended: (code, text) => this.#later(() => this.broken(code === 0 ? ENDED_BY_SERVER : text)),
    });
    for (const bytes of this.#early) this.#call.send(bytes);
    this.#early = [];
  }

  /** The client takes its time over each message. */
  #later(run: () => void): void {
    const { nowMs } = this.#scheduler;
    this.#lastReadMs = Math.max(nowMs, this.#lastReadMs + this.#readMs);
    if (this.#lastReadMs === nowMs) run();
    else this.#scheduler.after(this.#lastReadMs - nowMs, run);
  }

  #message(bytes: Uint8Array, taken: () => void): void {
    if (this.#isOver) return;
    taken();
    this.#client.message(bytes);
  }

  send(bytes: Uint8Array): void {
    if (this.#isOver) return;
    if (this.#call === undefined) this.#early.push(bytes);
    else this.#call.send(bytes);
  }

  close(): void {
    this.#isOver = true;
    this.#call?.cancel();
  }

  broken(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#client.ended(reason);
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
      send: (message) => this.#down(ownedMessage(message)),
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
        this.#server.message?.(defined(this.#unread.shift(), "the message"));
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
