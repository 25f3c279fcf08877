/**
 * A link to a member in this process: its services are called directly, without sockets, frames or
 * copies but of what a caller could change.
 */
import { BriefSet, type Clock, type Timer } from "@quorate/host";
import { GrpcCode } from "@quorate/proto";
import {
  type CallContext,
  deliver,
  isLate,
  ownedMessage,
  type Receiver,
  type ServiceTable,
  type Status,
  type StreamCall,
  type StreamListener,
  statusOf,
  type UnaryHandler,
  type UnaryResponse,
} from "@quorate/rpc";
import { type CallMetadata, type Link, LinkError, type LinkStream } from "../src/link.ts";
import { CLOSED, EngineStream, type OpenedCall } from "./engine-link.ts";

/** The services behind a link, which come and go. */
export interface LocalServices {
  /** Undefined while no member serves. */
  readonly current: ServiceTable | undefined;
}

/** Bytes of a stream that wait for its client before the server is to hold back. */
const SEND_BUDGET_BYTES: number = 64 * 1024;

/** Something that ends when the link does, or at its deadline. */
interface Open {
  readonly deadlineMs: number | undefined;
  ended(status: Status): void;
}

const LATE: Status = { code: GrpcCode.DeadlineExceeded, message: "no response in time" };

const ABORTED: Status = { code: GrpcCode.Canceled, message: "context canceled" };

export class LocalLink implements Link {
  readonly endpoint: string;
  readonly #services: LocalServices;
  readonly #clock: Clock;
  readonly #open = new BriefSet<Open>();
  /** One timer for all deadlines, which stays when a call has ended: the next one needs it. */
  #timer: Timer | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  #isClosed = false;

  /** @param endpoint what stands in errors, and what calls to one endpoint name it by */
  constructor(endpoint: string, services: LocalServices, clock: Clock) {
    this.endpoint = endpoint;
    this.#services = services;
    this.#clock = clock;
  }

  call(
    path: string,
    request: Uint8Array,
    metadata: CallMetadata,
    _dialTimeoutMs: number,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const handler = this.#table().unary.get(path);
      if (handler === undefined) throw unimplemented(path);
      const deadlineMs = this.#clock.monotonicMs() + timeoutMs;
      const context = new LocalContext(path, metadata, deadlineMs);
      const call = new LocalCall(context, this.#open, signal, resolve, reject);
      if (deadlineMs < this.#timerMs) this.#setTimer(deadlineMs);
      call.start(handler, request);
    });
  }

  async stream(path: string, metadata: CallMetadata): Promise<LinkStream> {
    const handler = this.#table().stream.get(path);
    if (handler === undefined) throw unimplemented(path);
    const ignore = (): void => {};
    const client = new EngineStream(ignore, ignore);
    const context = new LocalContext(path, metadata, undefined);
    const stream = new LocalStream(context, client, () => this.#open.delete(stream));
    this.#open.add(stream);
    client.opened(stream.clientEnd());
    stream.start(handler);
    return client;
  }

  /** All that is open ends, as where a connection broke; later calls go through again. */
  lose(reason: string): void {
    for (const one of [...this.#open]) one.ended({ code: GrpcCode.Unavailable, message: reason });
    this.#open.clear();
  }

  /** Calls and streams end with CANCELED. */
  close(): void {
    this.#isClosed = true;
    for (const one of [...this.#open]) one.ended({ code: GrpcCode.Canceled, message: CLOSED });
    this.#open.clear();
    this.#timer?.cancel();
  }

  #setTimer(atMs: number): void {
    this.#timer?.cancel();
    this.#timerMs = atMs;
    this.#timer = this.#clock.after(atMs - this.#clock.monotonicMs(), () => {
      const nowMs = this.#clock.monotonicMs();
      let nextMs = Number.POSITIVE_INFINITY;
      for (const one of [...this.#open]) {
        if (one.deadlineMs === undefined) continue;
        if (one.deadlineMs <= nowMs) one.ended(LATE);
        else nextMs = Math.min(nextMs, one.deadlineMs);
      }
      this.#timerMs = Number.POSITIVE_INFINITY;
      if (nextMs < this.#timerMs) this.#setTimer(nextMs);
    });
  }

  #table(): ServiceTable {
    const { current } = this.#services;
    if (this.#isClosed) throw new LinkError(GrpcCode.Canceled, CLOSED, false);
    if (current === undefined)
      throw new LinkError(GrpcCode.Unavailable, "no member serves here", false);
    return current;
  }
}

function unimplemented(path: string): LinkError {
  return new LinkError(GrpcCode.Unimplemented, `unknown method ${path}`, false);
}

class LocalContext implements CallContext {
  readonly path: string;
  readonly deadlineMs: number | undefined;
  readonly peerAddress = "local";
  readonly peerCommonName = undefined;
  readonly trace = undefined;
  cancelled = false;
  readonly #metadata: CallMetadata;
  #listener: (() => void) | undefined;

  constructor(path: string, metadata: CallMetadata, deadlineMs: number | undefined) {
    this.path = path;
    this.#metadata = metadata;
    this.deadlineMs = deadlineMs;
  }

  metadata(key: string): string | undefined {
    if (key === "token") return this.#metadata.token || undefined;
    if (key === "hasleader") return this.#metadata.requireLeader === true ? "true" : undefined;
    return undefined;
  }

  onCancel(listener: () => void): void {
    if (this.cancelled) listener();
    else this.#listener = listener;
  }

  cancel(): void {
    this.cancelled = true;
    this.#listener?.();
  }
}

/** One call, from its start to its first end. */
class LocalCall implements Open, Receiver<UnaryResponse> {
  readonly #context: LocalContext;
  readonly #open: BriefSet<Open>;
  readonly #signal: AbortSignal | undefined;
  readonly #resolve: (response: Uint8Array) => void;
  readonly #reject: (error: LinkError) => void;
  readonly #stop: (() => void) | undefined;

  /** @param open the link's; the call is in it until it ends */
  constructor(
    context: LocalContext,
    open: BriefSet<Open>,
    signal: AbortSignal | undefined,
    resolve: (response: Uint8Array) => void,
    reject: (error: LinkError) => void,
  ) {
    this.#context = context;
    this.#open = open;
    this.#signal = signal;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#stop = signal && (() => this.ended(ABORTED));
    open.add(this);
    if (this.#stop !== undefined) signal?.addEventListener("abort", this.#stop);
  }

  get deadlineMs(): number | undefined {
    return this.#context.deadlineMs;
  }

  start(handler: UnaryHandler, request: Uint8Array): void {
    try {
      const result = handler(request, this.#context);
      if (isLate(result)) deliver(result, this);
      else this.resolved(result);
    } catch (error) {
      this.rejected(error);
    }
  }

  resolved(response: UnaryResponse): void {
    this.#over();
    this.#resolve(ownedMessage(response));
  }

  rejected(error: unknown): void {
    this.#fail(statusOf(error));
  }

  /** Aborted, late, or the link's end. */
  ended(status: Status): void {
    this.#context.cancel();
    this.#fail(status);
  }

  #fail({ code, message }: Status): void {
    this.#over();
    this.#reject(new LinkError(code, message, true));
  }

  #over(): void {
    this.#open.delete(this);
    if (this.#stop !== undefined) this.#signal?.removeEventListener("abort", this.#stop);
  }
}

/** One stream. What either end sends is at the other one at once. */
class LocalStream implements Open {
  readonly deadlineMs = undefined;
  readonly #context: LocalContext;
  readonly #client: EngineStream;
  readonly #over: () => void;
  #server: StreamListener | undefined;
  /** From the client, while the server has paused or is not there yet. */
  readonly #unread: Uint8Array[] = [];
  /** From the server, while the client has paused. */
  readonly #unsent: Uint8Array[] = [];
  #unsentBytes = 0;
  #hasServerPaused = false;
  #hasClientPaused = false;
  #isHeldBack = false;
  #isHalfClosed = false;
  /** How the server ended it, while the client has not taken all. */
  #status: Status | undefined;
  #isOver = false;

  /** @param over called when both ends are done with it */
  constructor(context: LocalContext, client: EngineStream, over: () => void) {
    this.#context = context;
    this.#client = client;
    this.#over = over;
  }

  start(handler: (call: StreamCall) => StreamListener): void {
    this.#guard(() => {
      this.#server = handler(this.#serverEnd());
    });
    this.#read();
  }

  /** The client's end. */
  clientEnd(): OpenedCall {
    return {
      send: (message) => {
        this.#unread.push(message);
        this.#read();
        return true;
      },
      finish: () => {
        this.#isHalfClosed = true;
        this.#read();
      },
      cancel: () => this.#cancel(),
      pause: () => {
        this.#hasClientPaused = true;
      },
      resume: () => {
        this.#hasClientPaused = false;
        this.#deliver();
      },
    };
  }

  /** The link is closed or lost. */
  ended(status: Status): void {
    this.#cancel();
    this.#client.ended(status);
  }

  #serverEnd(): StreamCall {
    const unsentBytes = () => this.#unsentBytes;
    return {
      context: this.#context,
      send: (message) => {
        if (this.#isOver || this.#status !== undefined) return false;
        const bytes = ownedMessage(message);
        this.#unsent.push(bytes);
        this.#unsentBytes += bytes.length;
        this.#deliver();
        this.#isHeldBack ||= this.#unsentBytes > SEND_BUDGET_BYTES;
        return !this.#isHeldBack;
      },
      get bufferedBytes() {
        return unsentBytes();
      },
      end: (status = { code: GrpcCode.OK, message: "" }) => {
        this.#status ??= status;
        this.#deliver();
      },
      pause: () => {
        this.#hasServerPaused = true;
      },
      resume: () => {
        this.#hasServerPaused = false;
        this.#read();
      },
    };
  }

  #read(): void {
    while (this.#isReading()) {
      const message = this.#unread.shift();
      if (message === undefined) {
        if (!this.#isHalfClosed) return;
        this.#isHalfClosed = false;
        this.#guard(() => this.#server?.halfClosed?.());
      } else this.#guard(() => this.#server?.message?.(message));
    }
  }

  #isReading(): boolean {
    const isOpen = !this.#isOver && this.#status === undefined && this.#server !== undefined;
    return isOpen && !this.#hasServerPaused && (this.#unread.length > 0 || this.#isHalfClosed);
  }

  #deliver(): void {
    while (!this.#hasClientPaused && !this.#isOver) {
      const bytes = this.#unsent.shift();
      if (bytes === undefined) break;
      this.#unsentBytes -= bytes.length;
      this.#client.message(bytes);
    }
    if (this.#isOver || this.#unsent.length > 0) return;
    if (this.#status !== undefined) {
      this.#isOver = true;
      this.#over();
      this.#client.ended(this.#status);
    } else if (this.#isHeldBack) {
      this.#isHeldBack = false;
      this.#server?.drained?.();
    }
  }

  #cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over();
    this.#context.cancel();
    if (this.#status === undefined) this.#server?.cancelled?.();
  }

  #guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#status ??= statusOf(error);
      this.#deliver();
    }
  }
}
