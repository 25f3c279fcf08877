/**
 * Sends a client's request on to another API server, and its response back as it comes
 * (kube-aggregator: pkg/apiserver/handler_proxy.go; apimachinery: util/proxy).
 *
 *     client -> Call -> BackendRequest -> other server
 *            <- pieces, or the bytes of an upgraded connection, at the pace of the slower side <-
 */
import { type Clock, joinHostPort } from "@quorate/host";
import { badRequest } from "@quorate/kube-storage";
import type { Call } from "../handlers/call.ts";
import type { BackendPlace, Backends, BackendTunnel } from "./backends.ts";
import { forwardedHeaders, isUpgrade } from "./request-headers.ts";

export const TEXT_HEADERS = {
  "content-type": "text/plain; charset=utf-8",
  "x-content-type-options": "nosniff",
};
const REDIRECTED = "the backend attempted to redirect this request, which is not permitted";
/** Of requests for discovery, which many clients wait for. */
export const DISCOVERY_TIMEOUT_MS = 5000;
/** Headers of one connection; and of pages of other sites, which this server does not serve. */
const DROPPED =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|access-control-.*)$/;

export interface ForwardDeps {
  readonly backends: Backends;
  readonly clock: Pick<Clock, "after">;
  /** More headers that say who asks, which only this server may. */
  readonly isIdentityHeader?: ((name: string) => boolean) | undefined;
}

/**
 * Resolves when the response is over. Rejects with ApiError where nothing was sent on.
 * @param body the whole body
 */
export async function forward(call: Call, place: BackendPlace, deps: ForwardDeps): Promise<void> {
  const path = encodedPath(call.target.path);
  const body = await call.body();
  if (call.isOver) return;
  const where = joinHostPort(place.host, place.port);
  const query = call.query.encoded();
  const { promise, resolve } = Promise.withResolvers<void>();
  const fail = (reason: string): void => {
    if (call.hasResponse) call.abort();
    else call.respond(503, TEXT_HEADERS, `error trying to reach service: ${reason}\n`);
  };
  const isDiscovery = !call.target.isResourceRequest;
  const timer = isDiscovery
    ? deps.clock.after(DISCOVERY_TIMEOUT_MS, () => fail("context deadline exceeded"))
    : undefined;
  const headers = forwardedHeaders(call, where, path, deps.isIdentityHeader);
  const hasBody = body.length > 0 || call.header("content-length") !== "";
  const sent = deps.backends.call(
    {
      place,
      method: call.target.method,
      path: query === "" ? path : `${path}?${query}`,
      headers: hasBody ? { ...headers, "content-length": String(body.length) } : headers,
      body,
    },
    {
      responded(status, fields) {
        if (status >= 300 && status <= 399 && fields["location"] !== undefined) {
          call.respond(502, {}, REDIRECTED);
          return;
        }
        const kept = Object.entries(fields).filter(([name]) => !DROPPED.test(name));
        call.start(status, Object.fromEntries(kept));
      },
      data(bytes) {
        if (!call.send(bytes, () => sent.resume())) sent.pause();
      },
      ended: () => call.end(),
      upgraded: (fields, tunnel) => takeOver(call, fields, tunnel),
      failed: fail,
    },
  );
  call.whenOver(() => {
    timer?.cancel();
    sent.abort();
    resolve();
  });
  const cancel = (): void => {
    sent.abort();
    resolve();
  };
  call.canceller.addEventListener("abort", cancel);
  if (call.canceller.aborted) cancel();
  return promise;
}

/** The client's connection and the other one become one. */
function takeOver(
  call: Call,
  fields: Readonly<Record<string, string>>,
  other: BackendTunnel,
): void {
  const kept = Object.fromEntries(Object.entries(fields).filter(([name]) => !DROPPED.test(name)));
  const opened = call.switchProtocols(kept, (exchange, headers, over) => {
    const client = isUpgrade(call) ? exchange.upgrade(headers) : undefined;
    if (client === undefined) {
      exchange.respond({ status: 400, headers: TEXT_HEADERS, body: "Upgrade request required\n" });
      return undefined;
    }
    client.onClose(() => {
      other.destroy();
      over();
    });
    other.onClose(() => client.end());
    pipe(client, other);
    pipe(other, client);
    return client;
  });
  if (opened === undefined) other.destroy();
}

function pipe(from: BackendTunnel, to: BackendTunnel): void {
  to.onDrain(() => from.resume());
  from.onData((bytes) => {
    if (!to.send(bytes)) from.pause();
  });
}

/**
 * The path as it was authorized, with what must be escaped. Throws ApiError 400 for one that
 * another server may read differently.
 */
function encodedPath(path: string): string {
  const segments = path.split("/");
  if (segments.some((one) => one === "." || one === ".."))
    throw badRequest("the path has a segment that is . or ..");
  const encoded = segments.map((one) =>
    encodeURIComponent(one).replace(/%(?:24|26|2B|2C|3A|3B|3D|40)/g, decodeURIComponent),
  );
  return encoded.join("/");
}

/** The error of a request that cannot be sent on. */
export function unavailable(call: Call, status: 500 | 503, text: string): void {
  call.respond(status, TEXT_HEADERS, `${text}\n`);
}
