/**
 * Serves the methods of a ServiceTable as JSON over HTTP, as grpc-gateway does in front of a gRPC
 * server. Calls go to the handlers of the table themselves.
 *
 *     HttpExchange -> route by path -> metadata, deadline -> JSON to message -> handler
 *                  <- JSON <-------------------------------------- message or status
 */
import type { HttpExchange, HttpExchangeHandler, HttpExchangeListener } from "@quorate/host";
import type { HttpRoute } from "@quorate/proto";
import { GrpcCode } from "@quorate/proto";
import { DeadlineQueue } from "../deadlines.ts";
import type { ServiceTable, Status } from "../service.ts";
import { BodyDecodings } from "./body.ts";
import { CallSlots } from "./call-slots.ts";
import { callHead } from "./metadata.ts";
import { cleanPath, decodedPath, redirect } from "./paths.ts";
import { errorResponse } from "./responses.ts";
import type { GatewayCounters, GatewayDeps, GatewayShared } from "./settings.ts";
import { GatewayStream } from "./streaming.ts";
import { GatewayUnary } from "./unary.ts";

const NOT_FOUND: Status = { code: GrpcCode.NotFound, message: "Not Found" };
const BAD_REQUEST: Status = { code: GrpcCode.InvalidArgument, message: "Bad Request" };
const WRONG_METHOD: Status = { code: GrpcCode.Unimplemented, message: "Method Not Allowed" };
/** A listener for an exchange that has its response. */
const DONE: HttpExchangeListener = {};

export class Gateway {
  readonly #services: ServiceTable;
  readonly #routes: ReadonlyMap<string, HttpRoute>;
  readonly #shared: GatewayShared;
  readonly counters: GatewayCounters = {
    malformed: 0,
    tooLarge: 0,
    heldBytesRefusals: 0,
    unrouted: 0,
  };
  /** Serves one exchange. */
  readonly handler: HttpExchangeHandler = (exchange) => this.#serve(exchange);

  constructor({ services, routes, clock, observer, limits }: GatewayDeps) {
    this.#services = services;
    this.#routes = new Map(routes.map((route) => [route.path, route]));
    this.#shared = {
      clock,
      observer,
      limits,
      deadlines: new DeadlineQueue(clock),
      slots: new CallSlots(limits.maxCalls),
      bodies: new BodyDecodings(clock.turns),
      counters: this.counters,
      lingeringBytes: 0,
    };
  }

  /** Calls that run, and calls that wait for one of them to end. */
  get calls(): { readonly running: number; readonly waiting: number } {
    const { used, waiting } = this.#shared.slots;
    return { running: used, waiting };
  }

  /** Whether the method behind a path takes a stream of requests; undefined for no method. */
  hasRequestStream(path: string): boolean | undefined {
    return this.#routes.get(path)?.rpc.requestStream;
  }

  /** Forgets the deadlines of calls that are under way. */
  close(): void {
    this.#shared.deadlines.clear();
  }

  #serve(exchange: HttpExchange): HttpExchangeListener {
    const { head } = exchange;
    const route = this.#routes.get(head.path);
    if (route === undefined) return this.#serveOther(exchange);
    return this.#serveRoute(exchange, route);
  }

  #serveRoute(exchange: HttpExchange, route: HttpRoute): HttpExchangeListener {
    const { method, headers } = exchange.head;
    if (method !== route.httpMethod) return this.#refuse(exchange, WRONG_METHOD);
    const { timeoutMs, error } = callHead(headers);
    if (error !== undefined) return refuse(exchange, error);
    const { path } = route.rpc;
    const unary = this.#services.unary.get(path);
    if (unary !== undefined)
      return new GatewayUnary(this.#shared, exchange, route, timeoutMs, unary);
    const stream = this.#services.stream.get(path);
    if (stream !== undefined)
      return new GatewayStream(this.#shared, exchange, route, timeoutMs, stream);
    return this.#refuse(exchange, {
      code: GrpcCode.Unimplemented,
      message: `unknown method ${path}`,
    });
  }

  /** A path that is none of the table's as it stands. */
  #serveOther(exchange: HttpExchange): HttpExchangeListener {
    const { head } = exchange;
    const path = decodedPath(head.path);
    if (path === undefined) return this.#refuse(exchange, BAD_REQUEST);
    // A tree is known by the slash at its end.
    const clean = path === "/v3" ? "/v3/" : cleanPath(path);
    if (clean !== path) {
      exchange.respond(redirect(head, clean));
      return DONE;
    }
    const route = this.#routes.get(path.replace(/^\/v3beta\//, "/v3/"));
    return route === undefined
      ? this.#refuse(exchange, NOT_FOUND)
      : this.#serveRoute(exchange, route);
  }

  #refuse(exchange: HttpExchange, status: Status): HttpExchangeListener {
    this.counters.unrouted++;
    return refuse(exchange, status);
  }
}

function refuse(exchange: HttpExchange, status: Status): HttpExchangeListener {
  exchange.respond(errorResponse(status));
  return DONE;
}
