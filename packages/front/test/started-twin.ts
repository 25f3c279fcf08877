/** A twin with services and clients, for tests. */
import { SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { GrpcCode } from "@quorate/proto";
import {
  type CallContext,
  joinMessage,
  type ServiceTable,
  type Status,
  type StreamCall,
  type StreamHandler,
  type UnaryHandler,
} from "@quorate/rpc";
import { FrontTwin, type FrontTwinDeps } from "../testing/index.ts";

interface Given {
  readonly unary?: Record<string, UnaryHandler>;
  readonly stream?: Record<string, StreamHandler>;
  readonly deps?: Partial<FrontTwinDeps>;
}

/** A twin whose wake-ups come in a random order, and what broke it. */
export function start({ unary = {}, stream = {}, deps = {} }: Given, seed = 1n) {
  const random = new SeededRandom(seed);
  const clock = new ManualClock();
  /** What the member has found wrong, and what the front-end has. */
  const errors: Error[] = [];
  const frontErrors: Error[] = [];
  const tasks: (() => void)[] = [];
  const services: ServiceTable = {
    unary: new Map(Object.entries(unary)),
    stream: new Map(Object.entries(stream)),
  };
  const twin = new FrontTwin({
    services,
    http: (exchange) => {
      exchange.respond({ status: 200, headers: {}, body: "" });
      return {};
    },
    clock,
    logger: silentLogger,
    later: (task) => void tasks.push(task),
    broken: (error, by) => void (by === "member" ? errors : frontErrors).push(error),
    ...deps,
  });
  /** Runs what there is to run, in a random order, until nothing is left. */
  const settle = async (): Promise<void> => {
    for (let idle = 0; idle < 3; ) {
      await new Promise((resolve) => setImmediate(resolve));
      if (tasks.length === 0) idle++;
      else idle = 0;
      while (tasks.length > 0) {
        const [task] = tasks.splice(random.below(tasks.length), 1);
        task();
      }
    }
  };
  return { twin, clock, errors, frontErrors, settle };
}

/** The context of a call as an engine has it, with metadata and an end that tests give it. */
export class Context implements CallContext {
  readonly path: string;
  readonly deadlineMs: number | undefined;
  readonly peerAddress: string = "127.0.0.1:1";
  readonly peerCommonName: string = "ann";
  readonly peerSubject: string = "CN=ann";
  readonly trace: undefined;
  readonly fields: Readonly<Record<string, string>>;
  cancelled = false;
  #listener: (() => void) | undefined;

  constructor(path: string, fields: Readonly<Record<string, string>> = {}, deadlineMs?: number) {
    this.path = path;
    this.fields = fields;
    this.deadlineMs = deadlineMs;
  }

  metadata(key: string): string | undefined {
    return this.fields[key];
  }

  onCancel(listener: () => void): void {
    this.#listener = listener;
  }

  cancel(): void {
    this.cancelled = true;
    this.#listener?.();
  }
}

/** The engine's side of a stream. */
export class Client implements StreamCall {
  readonly context: Context;
  readonly messages: Uint8Array[] = [];
  ending: Status | undefined;
  isPaused = false;
  /** The client reads on. */
  isReading = true;
  bufferedBytes = 0;

  constructor(path: string) {
    this.context = new Context(path);
  }

  send(message: Uint8Array | readonly Uint8Array[]): boolean {
    this.messages.push(joinMessage(message).slice());
    return this.isReading;
  }

  end(status?: Status): void {
    this.ending = status ?? { code: GrpcCode.OK, message: "" };
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }
}
