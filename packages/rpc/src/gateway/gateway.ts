/**
 * Serves the methods of a ServiceTable as JSON over HTTP, as grpc-gateway does in front of a gRPC
 * server. Calls go to the handlers of the table themselves.
 *
 *     HttpExchange -> route by path -> metadata, deadline -> JSON to message -> handler
 *                  <- JSON <-------------------------------------- message or status
 */
import type {
  HttpExchange,
  HttpExchangeHandler,
  HttpExchangeListener,
  HttpHead,
  HttpResponse,
} from "@quorate/host";
import { GrpcCode, type HttpRoute, toUtf8 } from "@quorate/proto";
import { DeadlineQueue } from "../deadlines.ts";
import type { ServiceTable, Status } from "../service.ts";
import { CallSlots } from "./call-slots.ts";
import { callHead } from "./metadata.ts";
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

/** Go's html.EscapeString. */
const HTML: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};
const UNCLEAN = /\/\/|\/\.\.?(\/|$)/;

/**
 * Paths as Go's ServeMux takes them (net/http: cleanPath): a path with empty or dot segments is
 * redirected to the clean one; percent-encoded characters count as themselves.
 *
 * The decoded path; undefined if its percent-encoding is broken.
 */
function decodedPath(path: string): string | undefined {
  if (!path.includes("%")) return path;
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined;
  const latin1 = path.replace(/%(..)/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return toUtf8(Uint8Array.from(latin1, (char) => char.charCodeAt(0)));
}

/** A path without empty and dot segments; a slash at its end stays. */
function cleanPath(path: string): string {
  if (!UNCLEAN.test(path)) return path;
  const clean: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") clean.pop();
    else if (segment !== "" && segment !== ".") clean.push(segment);
  }
  const end = clean.length > 0 && path.endsWith("/") ? "/" : "";
  return `/${clean.join("/")}${end}`;
}

/** Go's redirect to another path with the same query. */
function redirect({ method, query }: HttpHead, path: string): HttpResponse {
  const location = encodeURI(path) + (query === "" ? "" : `?${query}`);
  if (method !== "GET" && method !== "HEAD")
    return { status: 307, headers: { location }, body: "" };
  const shown = location.replace(/[&<>"']/g, (char) => HTML[char]);
  return {
    status: 307,
    headers: { "content-type": "text/html; charset=utf-8", location },
    body: `<a href="${shown}">Temporary Redirect</a>.\n\n`,
  };
}
