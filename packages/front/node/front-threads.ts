/**
 * The front-ends of a member: their threads, the sockets of each, and what happens when one ends.
 *
 *     starting --ready--> serving --closed--> ended
 *          \                \-- error, out of memory, no beat, broken ring --> ended
 *           \-- error --> ended --pause--> starting
 *
 * The member's thread accepts, and hands each socket, unread, to the front-end that has the fewest.
 * A front-end gets a few at a time: the next ones when it has read from those, so that a crowd of
 * handshakes is not one long turn of it. What cannot be handed on waits, and has a bound.
 */
import type { AddressInfo, Socket } from "node:net";
import { type ResourceLimits, Worker } from "node:worker_threads";
import {
  Backoff,
  type Clock,
  type HttpExchangeHandler,
  type Logger,
  type Timer,
} from "@quorate/host";
import { type OpenDoor, threadProcessorMs } from "@quorate/host/node";
import type { RpcObserver, ServiceTable } from "@quorate/rpc";
import { methodPaths, ringMemory, ServedFront, type ServedFrontOptions } from "../index.ts";
import {
  BEAT,
  BEAT_PERIOD_MS,
  CLOSED_SOCKETS,
  FRONT_ROLE,
  type FromThread,
  STATUS_BYTES,
  TAKEN_SOCKETS,
  type ThreadData,
  type ToThread,
  WAKE,
} from "./thread-messages.ts";

/** Sockets that a front-end has been handed and has not read from. */
export const MAX_UNREAD_SOCKETS = 32;
/** Sockets that wait for a front-end; the newest is closed beyond. */
export const MAX_WAITING_SOCKETS = 4096;
/**
 * A front-end is ended when it has had so much processor time since its last beat. One that gets no
 * processor, because others have them all, is not to blame, and has longer.
 */
export const SILENT_PROCESSOR_MS = 1000;
export const SILENT_MS = 10_000;
/**
 * A thread that does not serve after this long is ended. It is long because a start takes a minute
 * where others have the processors, and one that is ended has to begin again.
 */
export const START_LIMIT_MS = 300_000;
/** A front-end that makes no report for so long, though it was asked, is passed over. */
const REPORT_LIMIT_MS = 250;
/** What a front-end may take longer than the grace it is given. */
const CLOSE_LIMIT_MS = 1000;

export interface FrontThreadsOptions extends ServedFrontOptions {
  readonly count: number;
  /** The program of a thread, which calls `runFront`. */
  readonly url: URL;
  /** What the program is given; it can be cloned. */
  program(): unknown;
  readonly resourceLimits: ResourceLimits;
}

export interface FrontThreadsDeps {
  readonly services: ServiceTable;
  readonly http: HttpExchangeHandler;
  readonly observer: RpcObserver | undefined;
  /** Sockets come through them. */
  readonly doors: readonly OpenDoor[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** A front-end has ended; `report` is its last one. */
  ended(report: unknown): void;
}

interface WaitingSocket {
  readonly socket: Socket;
  readonly place: number;
}

export class FrontThreads {
  readonly #options: FrontThreadsOptions;
  readonly #deps: FrontThreadsDeps;
  readonly #backoff = new Backoff({ quickMs: 10, firstMs: 100, mostMs: 5000 });
  readonly #threads = new Set<FrontThread>();
  readonly #waiting: WaitingSocket[] = [];
  #watchdog: Timer | undefined;
  #lastLookMs = 0;
  #isClosing = false;
  /** Threads that ended before they were to. */
  ended = 0;
  /** Sockets that were closed because no front-end took them. */
  refusedSockets = 0;

  constructor(options: FrontThreadsOptions, deps: FrontThreadsDeps) {
    this.#options = options;
    this.#deps = deps;
  }

  /** Starts the threads; resolves when all serve, or have failed to and will be started again. */
  async start(): Promise<void> {
    const { clock } = this.#deps;
    this.#lastLookMs = clock.monotonicMs();
    this.#watchdog = clock.every(BEAT_PERIOD_MS, () => this.#look());
    await Promise.all(Array.from({ length: this.#options.count }, () => this.#startOne()));
  }

  /** Opens the doors. */
  listen(): void {
    const { doors, logger } = this.#deps;
    for (const [place, door] of doors.entries())
      door.serve({
        takesUnread: true,
        accept: (socket) => this.#accept(socket, place),
        failed: ({ message }) =>
          logger.warn("failed to accept client connection", { error: message }),
      });
  }

  /** Gives all front-ends a new setting; those that are started later have it from `program`. */
  set(value: unknown): void {
    for (const thread of this.#threads) thread.post({ kind: "set", value });
  }

  /**
   * The report of each front-end, made now. Of one that makes none within REPORT_LIMIT_MS it is the
   * last one that it made, if there is one. Not to be called before the call before has resolved.
   */
  async reports(): Promise<readonly unknown[]> {
    const late = Promise.withResolvers<void>();
    const timer = this.#deps.clock.after(REPORT_LIMIT_MS, late.resolve);
    const asked = Promise.all([...this.#threads].map((thread) => thread.ask()));
    await Promise.race([asked, late.promise]);
    timer.cancel();
    return [...this.#threads]
      .map((thread) => thread.report)
      .filter((report) => report !== undefined);
  }

  /** Front-ends that serve. */
  get serving(): number {
    return [...this.#threads].filter((thread) => thread.isServing).length;
  }

  /** Sockets of each front-end. */
  get connections(): readonly number[] {
    return [...this.#threads].map((thread) => thread.connections);
  }

  /** Has the connections end, and cuts them off after the grace. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    this.#watchdog?.cancel();
    for (const door of this.#deps.doors) void door.close();
    for (const { socket } of this.#waiting.splice(0)) socket.destroy();
    await Promise.all([...this.#threads].map((thread) => thread.close(graceMs)));
  }

  #startOne(): Promise<void> {
    const serving = Promise.withResolvers<void>();
    const thread = new FrontThread(this.#options, this.#deps, {
      ready: () => {
        this.#backoff.reset();
        serving.resolve();
        this.#handOver();
      },
      woken: () => this.#handOver(),
      ended: (reason) => {
        serving.resolve();
        this.#ended(thread, reason);
      },
    });
    this.#threads.add(thread);
    return serving.promise;
  }

  #ended(thread: FrontThread, reason: string): void {
    this.#threads.delete(thread);
    if (thread.report !== undefined) this.#deps.ended(thread.report);
    if (this.#isClosing) return;
    this.ended++;
    const { clock, logger } = this.#deps;
    logger.error("a front-end thread has ended; its connections are closed, and a new one starts", {
      error: reason,
      connections: thread.connections,
    });
    clock.after(this.#backoff.nextMs(), () => {
      if (!this.#isClosing) void this.#startOne();
    });
  }

  #accept(socket: Socket, place: number): void {
    socket.on("error", () => {});
    if (this.#isClosing || this.#waiting.length >= MAX_WAITING_SOCKETS) {
      this.refusedSockets++;
      socket.destroy();
      return;
    }
    this.#waiting.push({ socket, place });
    this.#handOver();
  }

  #handOver(): void {
    let taken = 0;
    for (const { socket, place } of this.#waiting) {
      const thread = this.#idlest();
      if (thread === undefined) break;
      taken++;
      if (!socket.destroyed) thread.take(socket, place);
    }
    if (taken > 0) this.#waiting.splice(0, taken);
  }

  /**
   * Of the front-ends that take a socket now, the one that has the fewest; undefined also where it
   * would have far more than one that takes none: that one will again, or will be ended.
   */
  #idlest(): FrontThread | undefined {
    let idlest: FrontThread | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const thread of this.#threads) {
      if (!thread.isServing) continue;
      fewest = Math.min(fewest, thread.connections);
      if (!thread.takesSockets) continue;
      if (idlest === undefined || thread.connections < idlest.connections) idlest = thread;
    }
    if (idlest === undefined || idlest.connections > fewest + MAX_UNREAD_SOCKETS) return undefined;
    return idlest;
  }

  #look(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    // A member that was held up itself cannot say of others that they were.
    const isLate = nowMs - this.#lastLookMs > 2 * BEAT_PERIOD_MS;
    this.#lastLookMs = nowMs;
    for (const thread of [...this.#threads]) thread.look(isLate, nowMs);
  }
}

interface FrontThreadOwner {
  ready(): void;
  woken(): void;
  ended(reason: string): void;
}

class FrontThread {
  readonly #worker: Worker;
  readonly #front: ServedFront;
  readonly #status: Int32Array;
  readonly #owner: FrontThreadOwner;
  readonly #deps: FrontThreadsDeps;
  readonly #startedMs: number;
  isServing = false;
  report: unknown;
  #isClosing = false;
  #handed = 0;
  #beat = 0;
  #thread: number | undefined;
  /** When it was first found without a beat, and what processor time it had had. */
  #silent: { readonly sinceMs: number; readonly processorMs: number } | undefined;
  #error: string | undefined;
  #ask = 0;
  #asked: PromiseWithResolvers<void> | undefined;
  readonly #over = Promise.withResolvers<void>();

  constructor(options: FrontThreadsOptions, deps: FrontThreadsDeps, owner: FrontThreadOwner) {
    const { services, http, observer, doors, clock, logger } = deps;
    this.#deps = deps;
    this.#owner = owner;
    this.#startedMs = clock.monotonicMs();
    const requests = ringMemory();
    const responses = ringMemory();
    const status = new SharedArrayBuffer(STATUS_BYTES);
    this.#status = new Int32Array(status);
    this.#front = new ServedFront({ inbound: requests, outbound: responses }, options, {
      services,
      http,
      observer,
      clock,
      logger,
      wake: () => this.post(WAKE),
      // Behind the promises of what was applied in this turn, and before the next turn.
      atTurnsEnd: (task) => process.nextTick(task),
      nextTurn: (task) => void setImmediate(task),
      broken: (error) => this.#fail(error.message),
    });
    const data: ThreadData = {
      role: FRONT_ROLE,
      rings: { inbound: responses, outbound: requests },
      status,
      options: { methods: methodPaths(services), fields: options.fields },
      places: doors.map(({ bound }) => bound as AddressInfo | string),
      program: options.program(),
    };
    const { resourceLimits } = options;
    const worker = new Worker(options.url, { workerData: data, resourceLimits });
    this.#worker = worker;
    worker.on("message", (message: FromThread) => this.#received(message));
    worker.on("error", (error) => {
      this.#error ??= error instanceof Error ? error.message : String(error);
    });
    worker.on("exit", () => {
      this.isServing = false;
      this.#front.close();
      this.#asked?.resolve();
      this.#over.resolve();
      owner.ended(this.#error ?? "the thread has exited");
    });
    this.#front.woken();
  }

  /** Sockets that it has, read or not. */
  get connections(): number {
    return (this.#handed - Atomics.load(this.#status, CLOSED_SOCKETS)) | 0;
  }

  get takesSockets(): boolean {
    const unread = (this.#handed - Atomics.load(this.#status, TAKEN_SOCKETS)) | 0;
    return this.isServing && unread < MAX_UNREAD_SOCKETS;
  }

  post(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  /** Resolves when it has made a report after this call, or has ended. */
  async ask(): Promise<void> {
    if (!this.isServing) return;
    this.#asked = Promise.withResolvers();
    this.post({ kind: "ask", ask: ++this.#ask });
    await this.#asked.promise;
  }

  take(socket: Socket, place: number): void {
    try {
      const message: ToThread = { kind: "socket", place, socket };
      // Node's types do not have sockets among what can be transferred.
      this.#worker.postMessage(message, [socket as object as ArrayBuffer]);
      this.#handed = (this.#handed + 1) | 0;
    } catch {
      // It was closed by its client meanwhile.
      socket.destroy();
    }
  }

  look(isLate: boolean, nowMs: number): void {
    if (!this.isServing) {
      if (nowMs - this.#startedMs > START_LIMIT_MS) this.#fail("it does not serve");
      return;
    }
    // Also where what it has written into the memory keeps it from waking this thread.
    this.#front.woken();
    const beat = Atomics.load(this.#status, BEAT);
    if (beat !== this.#beat || isLate) {
      this.#beat = beat;
      this.#silent = undefined;
      return;
    }
    const processorMs = this.#thread === undefined ? 0 : (threadProcessorMs(this.#thread) ?? 0);
    this.#silent ??= { sinceMs: nowMs, processorMs };
    const spentMs = processorMs - this.#silent.processorMs;
    // The beat that it owes was due when the silence was found, at the latest.
    if (spentMs + BEAT_PERIOD_MS >= SILENT_PROCESSOR_MS)
      this.#fail(`it does not answer, and takes the processor (${Math.round(spentMs)}ms)`);
    else if (nowMs - this.#silent.sinceMs >= SILENT_MS)
      this.#fail(`no answer for ${SILENT_MS / 1000}s`);
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    if (this.isServing) this.post({ kind: "close", graceMs });
    else void this.#worker.terminate();
    const late = this.#deps.clock.after(
      graceMs + CLOSE_LIMIT_MS,
      () => void this.#worker.terminate(),
    );
    await this.#over.promise;
    late.cancel();
  }

  #received(message: FromThread): void {
    if (message === WAKE) {
      this.#front.woken();
      this.#owner.woken();
      return;
    }
    switch (message.kind) {
      case "ready":
        this.isServing = !this.#isClosing;
        this.#thread = message.thread;
        this.#owner.ready();
        return;
      case "report":
        this.report = message.report;
        if (message.ask === this.#ask) this.#asked?.resolve();
        return;
      case "log":
        this.#deps.logger.child(message.caller)[message.level](message.msg, message.fields);
        return;
      case "closed":
        void this.#worker.terminate();
    }
  }

  #fail(reason: string): void {
    this.isServing = false;
    this.#error ??= reason;
    this.#front.close();
    void this.#worker.terminate();
  }
}
