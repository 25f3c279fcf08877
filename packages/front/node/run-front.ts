/**
 * A front-end in its thread: the link to the member, the doors through which sockets come, and the
 * beat by which the member sees that the event loop runs. The program hands in the server.
 */

import type { AddressInfo, Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import type { Clock, HttpExchangeHandler, Logger } from "@quorate/host";
import {
  type DoorServant,
  nodeClock,
  type OpenDoor,
  threadNumber,
  writtenLogger,
} from "@quorate/host/node";
import { defined } from "@quorate/proto";
import type { ServiceTable } from "@quorate/rpc";
import { MemberServices } from "../index.ts";
import {
  BEAT,
  BEAT_PERIOD_MS,
  CLOSED_SOCKETS,
  FRONT_ROLE,
  type FromThread,
  TAKEN_SOCKETS,
  type ThreadData,
  type ToThread,
  WAKE,
} from "./thread-messages.ts";

const REPORT_PERIOD_MS = 1000;
/** Lines of one second; more are left out. */
const MAX_LINES_A_SECOND = 100;

/** What the server of a front-end is made of. */
export interface FrontParts {
  readonly services: ServiceTable;
  /** Serves by the member's HTTP handler. */
  readonly http: HttpExchangeHandler;
  /** In the order of the member's. */
  readonly doors: readonly OpenDoor[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly program: unknown;
}

export interface FrontServer {
  listen(): Promise<unknown>;
  close(graceMs: number): Promise<void>;
  /** What the member is told each second; it can be cloned. */
  report(): unknown;
  /** Takes a new setting of the member's. */
  set(value: unknown): void;
}

/**
 * Runs a front-end if this thread is one; does nothing elsewhere.
 * @param assemble makes the server, which has still to listen
 */
export async function runFront(
  assemble: (parts: FrontParts) => Promise<FrontServer>,
): Promise<void> {
  const data = workerData as ThreadData | null;
  if (parentPort === null || data?.role !== FRONT_ROLE) return;
  const port = parentPort;
  const post = (message: FromThread): void => port.postMessage(message);
  const status = new Int32Array(data.status);
  const link = new MemberServices(data.rings, data.options, {
    clock: nodeClock,
    wake: () => post(WAKE),
    // When what has arrived on all connections is read, so that it is one batch.
    atTurnsEnd: (task) => void setImmediate(task),
    nextTurn: (task) => void setImmediate(task),
    broken: (error) => {
      throw error;
    },
  });
  const doors = data.places.map((bound) => new HandedDoor(bound));
  const { services, http } = link;
  const logger = postingLogger(post, nodeClock, "rpc");
  const parts = { services, http, doors, clock: nodeClock, logger, program: data.program };
  const server = await assemble(parts);
  const taken = (): void => {
    Atomics.add(status, TAKEN_SOCKETS, 1);
    post(WAKE);
  };
  port.on("message", (message: ToThread) => {
    if (message === WAKE) {
      link.woken();
      return;
    }
    switch (message.kind) {
      case "socket":
        message.socket.on("close", () => Atomics.add(status, CLOSED_SOCKETS, 1));
        defined(doors[message.place], "the door").take(message.socket);
        // The next one when its first bytes are read: many at once would take one long turn.
        setImmediate(() => setImmediate(taken));
        return;
      case "set":
        server.set(message.value);
        return;
      case "ask":
        post({ kind: "report", report: server.report(), ask: message.ask });
        return;
      case "close":
        void server.close(message.graceMs).then(() => {
          post({ kind: "report", report: server.report() });
          post({ kind: "closed" });
        });
    }
  });
  nodeClock.every(BEAT_PERIOD_MS, () => Atomics.add(status, BEAT, 1));
  nodeClock.every(REPORT_PERIOD_MS, () => post({ kind: "report", report: server.report() }));
  await server.listen();
  link.woken();
  post({ kind: "ready", thread: threadNumber() });
}

/** The place of a door that another thread keeps: it is served what that thread accepts. */
class HandedDoor implements OpenDoor {
  readonly bound: AddressInfo | string;
  #servant: DoorServant | undefined;

  constructor(bound: AddressInfo | string) {
    this.bound = bound;
  }

  serve(servant: DoorServant): void {
    this.#servant = servant;
  }

  async close(): Promise<void> {
    this.#servant = undefined;
  }

  take(socket: Socket): void {
    if (this.#servant === undefined) socket.destroy();
    else this.#servant.accept(socket);
  }
}

/** A logger whose lines the member writes. */
function postingLogger(post: (message: FromThread) => void, clock: Clock, name: string): Logger {
  let second = 0;
  let lines = 0;
  return writtenLogger(name, (level, caller, msg, bound, fields) => {
    const now = Math.floor(clock.monotonicMs() / 1000);
    if (now !== second) {
      second = now;
      lines = 0;
    }
    if (lines++ < MAX_LINES_A_SECOND)
      post({ kind: "log", level, caller, msg, fields: { ...bound, ...fields } });
  });
}
