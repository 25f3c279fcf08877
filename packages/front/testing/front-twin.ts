/**
 * A front-end and the member's end of its rings in one thread: the same code as between two, with
 * the wake-ups under the owner's hand, who may delay them, and have them come in any order.
 */
import type { Clock, HttpExchangeHandler, Logger } from "@quorate/host";
import type { RpcObserver, ServiceTable } from "@quorate/rpc";
import { MemberServices, methodPaths, ringMemory, ServedFront } from "../index.ts";

const FIELDS = ["token", "authorization", "hasleader", "client-api-version"];
const MIB = 1024 * 1024;

export interface FrontTwinDeps {
  readonly services: ServiceTable;
  readonly http: HttpExchangeHandler;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer?: RpcObserver | undefined;
  /** Names of metadata fields beside those that a member's services read. */
  readonly fields?: readonly string[];
  /** Runs a wake-up, or the end of a turn, some time later. */
  later(task: () => void): void;
  /** The other end does what it may not. @param by who says so */
  broken(error: Error, by: "member" | "front-end"): void;
  /** Of a ring; a small one is full often. */
  readonly ringBytes?: number;
  readonly maxHeldBytes?: number;
}

export class FrontTwin {
  /** The services and the HTTP handler, as the front-end has them. */
  readonly services: ServiceTable;
  readonly http: HttpExchangeHandler;
  /** The member's end. */
  readonly served: ServedFront;
  /** What the front-end writes to and what the member does, for tests that break them. */
  readonly toMember: SharedArrayBuffer;
  readonly toFront: SharedArrayBuffer;

  constructor(deps: FrontTwinDeps) {
    const { services, clock, later, broken, ringBytes, maxHeldBytes } = deps;
    this.toMember = ringMemory(ringBytes);
    this.toFront = ringMemory(ringBytes);
    const fields = [...FIELDS, ...(deps.fields ?? [])];
    const options = {
      fields,
      maxRequestBytes: 2 * MIB,
      maxQueuedBytes: 64 * MIB,
      maxHeldBytes: maxHeldBytes ?? 64 * MIB,
    };
    this.served = new ServedFront({ inbound: this.toMember, outbound: this.toFront }, options, {
      services,
      http: deps.http,
      clock,
      logger: deps.logger,
      observer: deps.observer,
      wake: () => later(() => front.woken()),
      atTurnsEnd: later,
      nextTurn: later,
      broken: (error) => broken(error, "member"),
    });
    const methods = methodPaths(services);
    const front = new MemberServices(
      { inbound: this.toFront, outbound: this.toMember },
      { methods, fields },
      {
        clock,
        wake: () => later(() => this.served.woken()),
        atTurnsEnd: later,
        nextTurn: later,
        broken: (error) => broken(error, "front-end"),
      },
    );
    this.services = front.services;
    this.http = front.http;
    this.served.woken();
    front.woken();
  }
}
