/** Every path that serves keys or calls over HTTP, as a request of an identity, for a table. */
import { type IncomingHttpHeaders, request } from "node:http";
import { httpRoutes, wireToJson } from "@quorate/proto";

/** A request over HTTP. */
export interface HttpCase {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly type?: string;
}

/** What it was responded with; of a stream the first part. */
export interface HttpOutcome {
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingHttpHeaders;
}

/** Paths whose response may have nothing to say for long. */
const WAITS = /^\/watch\/|[?&]wait=true/;
/** Paths whose response goes on: its first part is enough. */
const STREAMS = /^\/v3\/(watch|election\/observe|lease\/keepalive)$/;

/** Sends a request over a connection of its own. @param address host:port */
export function sendHttp(
  address: string,
  { method, path, body, type }: HttpCase,
  authorization: string | undefined,
): Promise<HttpOutcome> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(authorization === undefined ? {} : { authorization }),
      ...(type === undefined ? {} : { "content-type": type }),
    };
    const url = `http://${address}${path}`;
    const sent = request(url, { method, headers, agent: false, timeout: 20_000 }, (response) => {
      let text = "";
      const { statusCode: status = 0, headers } = response;
      const done = (): void => {
        resolve({ status, text, headers });
        sent.destroy();
      };
      if (status === 200 && WAITS.test(path)) done();
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        if (STREAMS.test(path)) done();
      });
      response.on("end", done);
      response.on("error", () => {});
    });
    sent.on("timeout", () => sent.destroy(new Error(`${method} ${path}: no response`)));
    sent.on("error", reject);
    sent.end(body);
  });
}

const FORM = "application/x-www-form-urlencoded";

/** The paths of /kv, /txn, /watch and /v2, with keys below `ann/`. */
export const KEY_PATHS: readonly HttpCase[] = [
  { method: "PUT", path: "/kv/ann/k", body: "v" },
  { method: "GET", path: "/kv/ann/k" },
  { method: "HEAD", path: "/kv/ann/k" },
  { method: "GET", path: "/kv/ann/?prefix" },
  { method: "DELETE", path: "/kv/ann/none" },
  { method: "DELETE", path: "/kv/ann/none?prefix" },
  { method: "POST", path: "/txn", body: '[{"put":"ann/k","value":"v"}]' },
  { method: "GET", path: "/watch/ann/k" },
  { method: "PUT", path: "/v2/keys/ann/k", body: "value=v", type: FORM },
  { method: "GET", path: "/v2/keys/ann/k" },
  { method: "GET", path: "/v2/keys/ann?recursive=true" },
  { method: "GET", path: "/v2/keys/ann/k?wait=true" },
  { method: "POST", path: "/v2/keys/ann/queue", body: "value=v", type: FORM },
  { method: "PUT", path: "/v2/keys/ann/k?prevExist=true", body: "value=v", type: FORM },
  { method: "DELETE", path: "/v2/keys/ann/none" },
  { method: "GET", path: "/v2/members" },
  { method: "DELETE", path: "/v2/members/1" },
  { method: "GET", path: "/v2/machines" },
  { method: "GET", path: "/v2/stats/self" },
  { method: "GET", path: "/v2/stats/store" },
  { method: "GET", path: "/v2/stats/leader" },
  { method: "GET", path: "/v2/auth/enable" },
  { method: "GET", path: "/v2/auth/users" },
];

/** Paths that say how a member does, and show no key. */
export const STATE_PATHS: readonly HttpCase[] = [
  "/health",
  "/livez",
  "/readyz",
  "/version",
  "/metrics",
  "/openapi.json",
  "/debug/vars",
].map((path) => ({ method: "GET", path }));

/**
 * The paths of the gateway, by the method that each leads to.
 * @param requestOf the message of a method
 */
export function gatewayCases(
  requestOf: (path: string) => object,
): readonly (HttpCase & { readonly rpc: string })[] {
  return httpRoutes().map(({ path, rpc, request }) => {
    const bytes = rpc.requestType.encode(requestOf(rpc.path) as never);
    const body = new TextDecoder().decode(wireToJson(request, bytes.slice()));
    return { method: "POST", path, body, rpc: rpc.path };
  });
}

/** An outcome in a table: the status, and why a call was refused, in the words of its interface. */
export function shownHttp({ status, text, headers }: HttpOutcome): string {
  const isJson = /json/.test(headers["content-type"] ?? "");
  const reason = status >= 400 && !isJson ? text.trim() : reasonOf(status, text);
  return reason === "" ? String(status) : `${status} ${reason}`;
}

function reasonOf(status: number, text: string): string {
  if (status < 400) {
    // Of a stream, one message a line; a canceled watch has its reason in it.
    if (!text.startsWith('{"result":')) return "";
    return JSON.parse(text.split("\n")[0]).result.cancel_reason ?? "";
  }
  if (text === "") return "";
  const { detail, error, message = error?.message, cause } = JSON.parse(text);
  // Hints follow behind a semicolon.
  if (detail !== undefined) return detail.split(";")[0];
  return cause === undefined ? message : `${message}: ${cause}`;
}
