/** What the handlers of /v2/ have in common: bodies, methods, clean paths, errors of calls. */
import {
  type BodyRefusal,
  HeldBody,
  type HttpExchange,
  type HttpExchangeHandler,
  type HttpExchangeListener,
  type HttpResponse,
  plainError,
} from "@quorate/host";
import { Problem } from "@quorate/http-kv";
import { EtcdError, escapeHtml, GrpcCode } from "@quorate/proto";
import { StatusError } from "@quorate/rpc";
import { V2Error } from "./errors.ts";
import { decodeEscapes } from "./form.ts";
import { goString } from "./json.ts";
import { cleanPath } from "./keys.ts";

/** A request whose body is complete. */
export interface V2Exchange {
  readonly exchange: HttpExchange;
  /** Decoded and clean, latin1. */
  readonly path: string;
  readonly body: Uint8Array;
  /** Replaces what is called when the exchange is drained or its client is gone. */
  listen(listener: Pick<HttpExchangeListener, "drained" | "aborted">): void;
}

const BODY_REFUSALS: Readonly<Record<BodyRefusal, HttpResponse>> = {
  "too long": plainError(413, "request body too large"),
  "no memory": plainError(503, "requests being received hold too much memory"),
};

/**
 * Serves requests with their bodies.
 * @param maxBodyBytes a longer body gets 413
 * @param methods others get 405
 */
export function served(
  methods: readonly string[],
  maxBodyBytes: number,
  handler: (request: V2Exchange) => void,
): HttpExchangeHandler {
  return (exchange) => {
    const early = earlyResponse(exchange, methods);
    if (early !== undefined) {
      exchange.respond(early.response);
      return {};
    }
    const { path } = pathOf(exchange);
    let own: Pick<HttpExchangeListener, "drained" | "aborted"> = {};
    const body = new HeldBody(exchange, maxBodyBytes);
    return {
      data(bytes) {
        const why = body.push(bytes);
        if (why !== undefined) exchange.respond(BODY_REFUSALS[why]);
      },
      ended() {
        if (body.isRefused) return;
        const listen: V2Exchange["listen"] = (listener) => {
          own = listener;
        };
        handler({ exchange, path, body: body.take(), listen });
      },
      drained: () => own.drained?.(),
      aborted: () => own.aborted?.(),
    };
  };
}

/** The path, decoded; `clean` is what Go's mux would make of it. */
function pathOf({ head }: HttpExchange): { path: string; clean: string } {
  const path = decodeEscapes(head.path, false);
  const names = cleanPath(path).join("/");
  const isOpen = path.endsWith("/") && names !== "";
  return { path, clean: `/${names}${isOpen ? "/" : ""}` };
}

/** A response that needs neither body nor store. */
function earlyResponse(
  exchange: HttpExchange,
  methods: readonly string[],
): { response: HttpResponse } | undefined {
  const { method, query } = exchange.head;
  try {
    const { path, clean } = pathOf(exchange);
    if (path !== clean) return { response: moved(method, clean, query) };
  } catch {
    // Go's server takes no request with such a path.
    const headers = { "content-type": "text/plain; charset=utf-8", connection: "close" };
    return { response: { status: 400, headers, body: "400 Bad Request" } };
  }
  if (methods.includes(method)) return undefined;
  const allow = methods.join(",");
  return { response: plainError(405, "Method Not Allowed", { allow }) };
}

/** Go's redirect to the clean path (net/http/server.go, ServeMux.Handler). */
function moved(method: string, clean: string, query: string): HttpResponse {
  const location = escapePath(clean) + (query === "" ? "" : `?${query}`);
  const isRead = method === "GET" || method === "HEAD";
  return {
    status: 301,
    headers: isRead ? { location, "content-type": "text/html; charset=utf-8" } : { location },
    body: method === "GET" ? `<a href="${escapeHtml(location)}">Moved Permanently</a>.\n\n` : "",
  };
}

function escapePath(path: string): string {
  return path.replace(
    /[^A-Za-z0-9\-_.~$&+,/:;=@]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
}

/** v2's response to a caller that may not (etcd 3.4: writeKeyNoAuth). */
export function unauthorized(): V2Error {
  return new V2Error("Unauthorized", "Insufficient credentials");
}

/** The error of v2 for what a call of v3 failed with. */
export function toV2Error(error: unknown): V2Error {
  if (error instanceof V2Error) return error;
  if (isRefusal(error)) return unauthorized();
  return new V2Error("RaftInternal", error instanceof Error ? error.message : String(error));
}

/** Texts of the errors that say so. */
const REFUSALS: readonly string[] = [
  "user name is empty",
  "invalid auth token",
  "authentication failed",
  "permission denied",
  "user name not found",
  "revision of auth store is old",
  "too many failed logins",
  "authentication is not enabled",
];

/** Whether an error says that the caller may not, or was not recognised. */
export function isRefusal(error: unknown): boolean {
  if (error instanceof Problem) return error.code === "unauthenticated";
  if (!(error instanceof StatusError || error instanceof EtcdError)) return false;
  const code = error instanceof EtcdError ? error.grpcCode : error.code;
  return (
    code === GrpcCode.PermissionDenied ||
    code === GrpcCode.Unauthenticated ||
    isRefusalText(error.message)
  );
}

/** The same for the text of an error, such as a watch's cancel reason. */
export function isRefusalText(text: string): boolean {
  return REFUSALS.some((part) => text.includes(part));
}

/** An error as /v2/members has it (etcd 3.4: httptypes/errors.go). */
export function messageError(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  return {
    status,
    headers: { ...headers, "content-type": "application/json" },
    body: `{"message":${goString(message)}}`,
  };
}
