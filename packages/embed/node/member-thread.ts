/**
 * A member on a thread of its own. This file is its own worker: the program's thread loads it to
 * start one.
 *
 *     to it:    {kind: "stop"}
 *     from it:  {kind: "serves", ...} or {kind: "failed", ...}, then events and lines of the log
 */
import { EventEmitter } from "node:events";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { connect } from "@quorate/client/node";
import { type LogFields, type Logger, silentLogger } from "@quorate/host";
import { ConfigError } from "@quorate/member";
import {
  End,
  launch,
  type MemberEvents,
  type MemberOptions,
  type RunningMember,
  StartError,
} from "./launch.ts";

/** What says that this file runs as the worker. */
const ROLE = "quorate member";

/** An error on its way between threads, where classes do not go. */
interface SentError {
  readonly name: string;
  readonly message: string;
  readonly code: string | undefined;
  readonly stack: string | undefined;
}

type LogLevel = Exclude<keyof Logger, "child">;

type FromThread =
  | {
      readonly kind: "serves";
      readonly endpoints: readonly string[];
      readonly dataDir: string;
    }
  | { readonly kind: "failed"; readonly error: SentError }
  | { readonly kind: "event"; readonly name: keyof MemberEvents; readonly values: unknown[] }
  | { readonly kind: "closed"; readonly error: SentError | undefined }
  | {
      readonly kind: "log";
      readonly path: readonly string[];
      readonly level: LogLevel;
      readonly msg: string;
      readonly fields: LogFields;
    };

/** What the thread is started with. */
interface ThreadData {
  readonly role: typeof ROLE;
  readonly options: Omit<MemberOptions, "logger">;
  readonly hasLogger: boolean;
}

/** Starts a member on a new thread; as startMember. */
export async function startThread(options: MemberOptions): Promise<RunningMember> {
  const { logger, ...rest } = options;
  const data: ThreadData = { role: ROLE, options: rest, hasLogger: logger !== undefined };
  const worker = new Worker(new URL(import.meta.url), { workerData: data });
  const events = new EventEmitter<MemberEvents>();
  const started = Promise.withResolvers<Extract<FromThread, { kind: "serves" }>>();
  const ready = Promise.withResolvers<void>();
  const end = new End(events);
  worker.on("message", (message: FromThread) => {
    if (message.kind === "serves") started.resolve(message);
    else if (message.kind === "failed") started.reject(received(message.error));
    else if (message.kind === "log") {
      const child = message.path.reduce((one, name) => one.child(name), logger ?? silentLogger);
      child[message.level](message.msg, message.fields);
    } else if (message.kind === "closed")
      end.over(message.error === undefined ? undefined : received(message.error));
    else {
      if (message.name === "ready") ready.resolve();
      events.emit(message.name, ...(message.values as never));
    }
  });
  worker.on("error", (error) => {
    started.reject(error);
    end.over(error);
  });
  const exited = new Promise<void>((resolve) => {
    worker.on("exit", () => {
      end.over(new Error("the member's thread has ended"));
      resolve();
    });
  });
  const { endpoints, dataDir } = await started.promise;
  const stop = async (): Promise<void> => {
    worker.postMessage({ kind: "stop" });
    await exited;
  };
  return {
    endpoints,
    dataDir,
    events,
    ready: ready.promise,
    ended: end.promise,
    client: (clientOptions = {}) => connect({ endpoints, ...clientOptions }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function received({ name, message, code, stack }: SentError): Error {
  const error =
    name === "ConfigError"
      ? new ConfigError(code as ConfigError["code"], message)
      : name === "StartError"
        ? new StartError(code as StartError["code"], message)
        : Object.assign(new Error(message), { name, code });
  if (stack !== undefined) error.stack = stack;
  return error;
}

function sent(error: unknown): SentError {
  const { name, message, code, stack } = error as NodeJS.ErrnoException;
  return { name, message, code, stack };
}

/** A logger whose lines go to the program's thread. */
function sentLogger(
  send: (message: FromThread) => void,
  path: readonly string[] = [],
  common: LogFields = {},
): Logger {
  const line = (level: LogLevel): Logger["info"] => {
    return (msg, fields) =>
      send({ kind: "log", path, level, msg, fields: { ...common, ...fields } });
  };
  return {
    debug: line("debug"),
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    child: (caller, fields) => sentLogger(send, [...path, caller], { ...common, ...fields }),
  };
}

const isThread = (data: unknown): data is ThreadData =>
  (data as ThreadData | undefined)?.role === ROLE;

if (parentPort !== null && isThread(workerData)) {
  const port = parentPort;
  const send = (message: FromThread): void => port.postMessage(message);
  const { options, hasLogger } = workerData;
  const logger = hasLogger ? { logger: sentLogger(send) } : {};
  try {
    const member = await launch({ ...options, ...logger });
    for (const name of ["leader", "alarms", "held"] as const)
      member.events.on(name, (...values: unknown[]) => send({ kind: "event", name, values }));
    void member.ready.then(() => send({ kind: "event", name: "ready", values: [] }));
    member.events.once("closed", (error) => {
      send({ kind: "closed", error: error === undefined ? undefined : sent(error) });
      port.close();
    });
    port.once("message", () => void member.stop());
    send({ kind: "serves", endpoints: member.endpoints, dataDir: member.dataDir });
  } catch (error) {
    send({ kind: "failed", error: sent(error) });
  }
}
