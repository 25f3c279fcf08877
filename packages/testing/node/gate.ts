/**
 * What stands between a member and its world in a test: it can be shut, and links of it can be cut.
 *
 *     shut: timers, turns, messages of peers and calls of clients wait, in order, until it opens
 *     cut:  messages from and to some members are dropped
 */
import { type Clock, type Timer, Turns } from "@quorate/host";
import type { MemberDeps, MemberTransport } from "@quorate/member";
import {
  type ServiceTable,
  StatusError,
  type StreamCall,
  type StreamHandler,
  type UnaryHandler,
} from "@quorate/rpc";

/** Messages and calls that wait at a gate; what comes beyond is lost, or refused. */
export const MAX_WAITING = 100_000;

export class Gate {
  readonly #waiting: (() => void)[] = [];
  /** So many of them have passed; shift() would move all others each time. */
  #passed = 0;
  #isShut = false;
  /** Ids of members that are cut off. */
  cut: ReadonlySet<bigint> = new Set();
  /** Their peer URLs. */
  cutUrls: ReadonlySet<string> = new Set();

  get isShut(): boolean {
    return this.#isShut;
  }

  shut(): void {
    this.#isShut = true;
  }

  open(): void {
    this.#isShut = false;
    // What runs may shut it again.
    while (!this.#isShut) {
      const next = this.#waiting[this.#passed];
      if (next === undefined) break;
      this.#passed++;
      next();
    }
    this.#waiting.splice(0, this.#passed);
    this.#passed = 0;
  }

  /** Drops what waits: its member is gone. */
  clear(): void {
    this.#waiting.length = 0;
    this.#passed = 0;
    this.#isShut = false;
  }

  /** Runs `task` now, or when the gate opens. False if too much waits: it never runs. */
  pass(task: () => void): boolean {
    if (!this.#isShut) task();
    else if (this.#waiting.length - this.#passed >= MAX_WAITING) return false;
    else this.#waiting.push(task);
    return true;
  }
}

/** A clock whose tasks pass a gate. */
export class GatedClock implements Clock {
  readonly turns: Turns = new Turns(this);
  readonly #clock: Clock;
  readonly #gate: Gate;

  constructor(clock: Clock, gate: Gate) {
    this.#clock = clock;
    this.#gate = gate;
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  after(delayMs: number, task: () => void): Timer {
    let isCancelled = false;
    const run = (): void => {
      if (!isCancelled) task();
    };
    const timer = this.#clock.after(delayMs, () => void this.#gate.pass(run));
    return {
      cancel() {
        isCancelled = true;
        timer.cancel();
      },
    };
  }

  every(periodMs: number, task: () => void): Timer {
    let isCancelled = false;
    let isWaiting = false;
    const run = (): void => {
      isWaiting = false;
      if (!isCancelled) task();
    };
    const timer = this.#clock.every(periodMs, () => {
      // Missed runs are skipped.
      if (isWaiting) return;
      isWaiting = true;
      if (!this.#gate.pass(run)) isWaiting = false;
    });
    return {
      cancel() {
        isCancelled = true;
        timer.cancel();
      },
    };
  }

  endOfTurn(task: () => void): void {
    this.#clock.endOfTurn(() => void this.#gate.pass(task));
  }
}

/** The clock of leases, which can be moved on alone. */
export class MovedClock implements Clock {
  readonly turns: Turns = new Turns(this);
  readonly #clock: Clock;
  readonly #offset: { ms: number };

  /** @param offset by how much it is ahead; only ever more */
  constructor(clock: Clock, offset: { ms: number }) {
    this.#clock = clock;
    this.#offset = offset;
  }

  wallMs(): number {
    return this.#clock.wallMs() + this.#offset.ms;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs() + this.#offset.ms;
  }

  after(delayMs: number, task: () => void): Timer {
    return this.#clock.after(delayMs, task);
  }

  every(periodMs: number, task: () => void): Timer {
    return this.#clock.every(periodMs, task);
  }

  endOfTurn(task: () => void): void {
    this.#clock.endOfTurn(task);
  }
}

/** Has what goes between members pass the gate. */
export function gatedPeers(gate: Gate, deps: MemberDeps): MemberDeps {
  const { callPeer } = deps;
  return {
    ...deps,
    ...(callPeer !== undefined && {
      callPeer: (url: string, path: string, body: Uint8Array | undefined, timeoutMs: number) =>
        gate.cutUrls.has(url)
          ? Promise.reject(new Error("the link is cut"))
          : callPeer(url, path, body, timeoutMs),
    }),
    makeTransport(request) {
      const { listener } = request;
      const inner = deps.makeTransport({
        ...request,
        listener: {
          received: (messages) => {
            const heard = messages.filter(({ from }) => !gate.cut.has(from));
            if (heard.length > 0) gate.pass(() => listener.received(heard));
          },
          snapshotReceived: (stream) =>
            gate.cut.has(stream.message.from)
              ? Promise.reject(new Error("the link is cut"))
              : listener.snapshotReceived(stream),
          unreachable: (id) => void gate.pass(() => listener.unreachable(id)),
          snapshotSent: (id, taken) => void gate.pass(() => listener.snapshotSent(id, taken)),
        },
      });
      return cuttable(gate, inner, (id) => listener.snapshotSent(id, false));
    },
  };
}

function cuttable(
  gate: Gate,
  inner: MemberTransport,
  notSent: (id: bigint) => void,
): MemberTransport {
  return {
    listen: () => inner.listen(),
    send: (messages) => inner.send(messages.filter(({ to }) => !gate.cut.has(to))),
    sendSnapshot: (stream) => {
      const { to } = stream.message;
      if (gate.cut.has(to)) queueMicrotask(() => notSent(to));
      else inner.sendSnapshot(stream);
    },
    addPeer: (id, urls) => inner.addPeer(id, urls),
    updatePeer: (id, urls) => inner.updatePeer(id, urls),
    removePeer: (id) => inner.removePeer(id),
    peers: () =>
      inner
        .peers()
        .map((peer) => (gate.cut.has(peer.id) ? { ...peer, activeSinceMs: undefined } : peer)),
    close: () => inner.close(),
  };
}

/** What tests do to calls. */
export interface CallFaults {
  /** The error of a call that is to fail now, and whether it is executed all the same. */
  failureOf(
    path: string,
  ): { readonly code: number; readonly message: string; readonly isExecuted: boolean } | undefined;
}

/** Streams that are open at a member. */
export class OpenStreams {
  readonly #ends = new Map<() => void, string>();

  add(path: string, end: () => void): void {
    this.#ends.set(end, path);
  }

  remove(end: () => void): void {
    this.#ends.delete(end);
  }

  /** Ends those of a path. */
  end(path: string): void {
    for (const [end, its] of [...this.#ends]) if (its === path) end();
  }
}

const UNAVAILABLE = 14;

/** Has calls pass the gate, and fail where a test says so. */
export function gatedServices(
  services: ServiceTable,
  gate: Gate,
  faults: CallFaults,
  streams: OpenStreams,
): ServiceTable {
  const passed = () =>
    new Promise<void>((resolve, reject) => {
      if (!gate.pass(resolve)) reject(new StatusError(UNAVAILABLE, "too many calls wait"));
    });
  const unary = (path: string, handler: UnaryHandler): UnaryHandler => {
    const slow: UnaryHandler = async (request, context) => {
      await passed();
      const failure = faults.failureOf(path);
      if (failure === undefined) return handler(request, context);
      if (failure.isExecuted) await handler(request, context);
      throw new StatusError(failure.code, failure.message);
    };
    return slow;
  };
  const stream = (path: string, handler: StreamHandler): StreamHandler => {
    return (call) => {
      const failure = faults.failureOf(path);
      if (failure !== undefined) throw new StatusError(failure.code, failure.message);
      return openStream(path, handler, call, gate, streams);
    };
  };
  return {
    unary: new Map([...services.unary].map(([path, one]) => [path, unary(path, one)])),
    stream: new Map([...services.stream].map(([path, one]) => [path, stream(path, one)])),
  };
}

function openStream(
  path: string,
  handler: StreamHandler,
  call: StreamCall,
  gate: Gate,
  streams: OpenStreams,
): ReturnType<StreamHandler> {
  let listener: ReturnType<StreamHandler> | undefined;
  const end = (): void => {
    streams.remove(end);
    call.end({ code: UNAVAILABLE, message: "the connection was cut" });
    listener?.cancelled?.();
  };
  streams.add(path, end);
  gate.pass(() => {
    listener = handler(call);
  });
  return {
    message: (bytes) => void gate.pass(() => listener?.message?.(bytes)),
    halfClosed: () => void gate.pass(() => listener?.halfClosed?.()),
    drained: () => void gate.pass(() => listener?.drained?.()),
    cancelled: () => {
      streams.remove(end);
      gate.pass(() => listener?.cancelled?.());
    },
  };
}
