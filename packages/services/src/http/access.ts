/**
 * What holds for every HTTP request of the client port, before its endpoint
 * (etcd: embed/serve.go, accessController):
 *
 *     Host              without TLS it must be one of --host-whitelist: a page whose own name was
 *                       rebound to this address cannot call (CVE-2018-5702)
 *     OPTIONS           200 for a browser's question whether it may call
 *     Access-Control-*  in every response to an origin of --cors
 *     Origin            of another site: the request changes nothing unless --cors is given and
 *                       allows it. Browsers send simple posts without a question before, and etcd
 *                       executes them
 */
import {
  type Clock,
  type HttpExchange,
  type HttpExchangeHandler,
  type HttpExchangeListener,
  type HttpHead,
  type HttpResponse,
  type HttpTunnel,
  LineLimit,
  type Logger,
  plainError,
} from "@quorate/host";

/** The hosts and origins whose requests are served. */
export interface HttpAccess {
  /** Origins whose pages may call, as browsers send them; undefined for all. */
  readonly allowedOrigins: ReadonlySet<string> | undefined;
  /** Whether --cors was given: by default, pages of other sites may not write. */
  readonly areOriginsGiven: boolean;
  /** Host names that requests without TLS may be for; undefined for all. */
  readonly allowedHosts: ReadonlySet<string> | undefined;
}

type Headers = Readonly<Record<string, string>>;

const DONE: HttpExchangeListener = {};
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD"]);
const REBINDING = "rejecting HTTP request to prevent DNS rebinding attacks";

/** Of etcd's paths, in etcd's order. */
const ETCD_CORS: Headers = {
  "access-control-allow-methods": "POST, GET, OPTIONS, PUT, DELETE",
  "access-control-allow-headers": "accept, content-type, authorization",
};
/** Of paths that etcd does not have: pages may send preconditions and see what a key has. */
const KEY_CORS: Headers = {
  "access-control-allow-methods": "GET, HEAD, PUT, POST, DELETE, OPTIONS",
  "access-control-allow-headers":
    "accept, content-type, authorization, if-match, if-none-match, last-event-id",
  "access-control-expose-headers":
    "ETag, Location, Quorate-Revision, Quorate-Create-Revision, Quorate-Mod-Revision, " +
    "Quorate-Version, Quorate-Lease, Quorate-Ttl",
};
const KEY_PATHS = /^\/(kv|watch|txn)(\/|$)/;
const NO_HEADERS: Headers = {};
const NO_ORIGINS: ReadonlySet<string> = new Set();
const ANY_ORIGIN: Headers = Object.freeze({ ...ETCD_CORS, "access-control-allow-origin": "*" });

function corsHeaders({ path }: HttpHead, origin: string): Headers {
  const cors = KEY_PATHS.test(path) ? KEY_CORS : ETCD_CORS;
  return { ...cors, "access-control-allow-origin": origin };
}

/** The endpoint behind the checks of access. Refused hosts are logged, as in etcd. */
export function controlAccess(
  endpoint: HttpExchangeHandler,
  config: HttpAccess,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): HttpExchangeHandler {
  const lines = new LineLimit();
  const writers = config.areOriginsGiven ? config.allowedOrigins : NO_ORIGINS;
  return (exchange) => {
    const { head } = exchange;
    const host = refusedHost(head, config.allowedHosts);
    if (host !== undefined) {
      const fields = lines.allow(clock.monotonicMs());
      if (fields !== undefined) logger.warn(REBINDING, { host, ...fields });
      return answer(exchange, plainError(421, whitelistText(host)));
    }
    const headers = headersFor(head, config);
    if (head.method === "OPTIONS") return answer(exchange, { status: 200, headers, body: "" });
    // Keys by path refuse for themselves, in their own form.
    const why = KEY_PATHS.test(head.path) ? undefined : crossOrigin(head, writers);
    if (why !== undefined)
      return answer(exchange, plainError(403, `--cors does not allow this request: ${why}`));
    return endpoint(new ExchangeWithHeaders(exchange, headers));
  };
}

function answer(exchange: HttpExchange, response: HttpResponse): HttpExchangeListener {
  exchange.respond(response);
  return DONE;
}

/** The host name of a request that is not served for it; undefined if it is. */
function refusedHost(head: HttpHead, allowed: ReadonlySet<string> | undefined): string | undefined {
  if (allowed === undefined || head.isSecure === true) return undefined;
  const host = hostName(head.headers.get("host") ?? "");
  return allowed.has(host.toLowerCase()) ? undefined : host;
}

/** A host without its port, as Go's net.SplitHostPort cuts it. */
function hostName(host: string): string {
  const bracketed = /^\[([^\]]*)\]:[^:]*$/.exec(host);
  const plain = /^([^:[\]]*):[^:]*$/.exec(host);
  return bracketed?.[1] ?? plain?.[1] ?? host;
}

function whitelistText(host: string): string {
  return `
etcd received your request, but the Host header was unrecognized.

To fix this, choose one of the following options:
- Enable TLS, then any HTTPS request will be allowed.
- Add the hostname you want to use to the whitelist in settings.
  - e.g. etcd --host-whitelist ${JSON.stringify(host)}

This requirement has been added to help prevent "DNS Rebinding" attacks (CVE-2018-5702).
`;
}

function headersFor(
  head: HttpHead,
  { allowedOrigins, areOriginsGiven }: Pick<HttpAccess, "allowedOrigins" | "areOriginsGiven">,
): Headers {
  const origin = head.headers.get("origin");
  const isKeyPath = KEY_PATHS.test(head.path);
  // Keys by path are not etcd's: a page may read them only where --cors says so.
  if (isKeyPath && (origin === undefined || !areOriginsGiven)) return NO_HEADERS;
  if (allowedOrigins === undefined) return isKeyPath ? corsHeaders(head, "*") : ANY_ORIGIN;
  // The response depends on the origin, so caches must keep one for each.
  if (origin === undefined || !allowedOrigins.has(origin.toLowerCase())) return { vary: "Origin" };
  return { ...corsHeaders(head, origin), vary: "Origin" };
}

/**
 * Why a request that may change something comes from a page of another site that may not call;
 * undefined if it does not. WebSockets count: browsers open them across sites without a question.
 */
export function crossOrigin(
  head: HttpHead,
  allowed: ReadonlySet<string> | undefined,
): string | undefined {
  const { headers, method } = head;
  if (allowed === undefined) return undefined;
  // Which of the protocols in an Upgrade is taken is decided later, and pages can send none but
  // "websocket": any Upgrade counts, however it is written and how often.
  if (SAFE_METHODS.has(method) && !headers.has("upgrade")) return undefined;
  const origin = headers.get("origin")?.toLowerCase();
  if (origin !== undefined) {
    if (allowed.has(origin) || isOwn(origin, head)) return undefined;
    return `its Origin is ${JSON.stringify(origin.slice(0, 200))}`;
  }
  const site = headers.get("sec-fetch-site");
  if (site === undefined || site === "same-origin" || site === "none") return undefined;
  return "its Sec-Fetch-Site is that of another site";
}

/** Whether a page of this port itself has sent the request. */
function isOwn(origin: string, head: HttpHead): boolean {
  const scheme = head.isSecure === true ? "https" : "http";
  return origin === `${scheme}://${(head.headers.get("host") ?? "").toLowerCase()}`;
}

/** Headers of responses with those that nearly all requests get: both are constants. */
const mergedWithAny = new WeakMap<object, Headers>();

function merged(added: Headers, headers: Headers): Headers {
  if (added !== ANY_ORIGIN || !Object.isFrozen(headers)) return { ...added, ...headers };
  let both = mergedWithAny.get(headers);
  if (both === undefined) {
    both = Object.freeze({ ...added, ...headers });
    mergedWithAny.set(headers, both);
  }
  return both;
}

/** An exchange whose responses all have some headers more. */
class ExchangeWithHeaders implements HttpExchange {
  readonly head: HttpHead;
  readonly #exchange: HttpExchange;
  readonly #headers: Headers;

  constructor(exchange: HttpExchange, headers: Headers) {
    this.head = exchange.head;
    this.#exchange = exchange;
    this.#headers = headers;
  }

  respond({ status, headers, body }: HttpResponse): void {
    this.#exchange.respond({ status, headers: merged(this.#headers, headers), body });
  }

  start(status: number, headers: Headers): void {
    this.#exchange.start(status, merged(this.#headers, headers));
  }

  send(piece: Uint8Array): boolean {
    return this.#exchange.send(piece);
  }

  end(): void {
    this.#exchange.end();
  }

  abort(): void {
    this.#exchange.abort();
  }

  get bufferedBytes(): number {
    return this.#exchange.bufferedBytes;
  }

  pause(): void {
    this.#exchange.pause();
  }

  resume(): void {
    this.#exchange.resume();
  }

  hold(sizeBytes: number): boolean {
    return this.#exchange.hold(sizeBytes);
  }

  release(sizeBytes: number): void {
    this.#exchange.release(sizeBytes);
  }

  upgrade(headers: Headers): HttpTunnel | undefined {
    return this.#exchange.upgrade(headers);
  }
}
