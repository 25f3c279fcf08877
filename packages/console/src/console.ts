/**
 * The console of a member: the page under /console/ on the client port.
 *
 *     GET  /console/NAME       a file of the page
 *     POST /console/api/NAME   a call (api.ts)
 *     GET  /members/console    on the peer port: the member's report of itself (overview.ts)
 *
 * The page calls the JSON gateway for all that etcd's API has. It runs no inline script and no code
 * of others, and keeps its token in memory, so a page of another site has nothing to use.
 */
import {
  type HttpExchangeHandler,
  type HttpHandler,
  type HttpResponse,
  plainError,
} from "@quorate/host";
import type { Member } from "@quorate/member";
import type { PeerCall } from "@quorate/transport";
import { type ApiParts, ConsoleApi } from "./api.ts";
import { MEMBER_REPORT_PATH, overview, reportEndpoint } from "./overview.ts";
import { Rates } from "./rates.ts";

const PAGE = "/console/";
const API = "/console/api/";

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "no-cache",
};

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

/** What the console of a member needs from the outside. */
export interface ConsoleParts {
  /** The text of each file of the page, by its name. */
  readonly files: ReadonlyMap<string, string>;
  readonly log: ApiParts["log"];
  /** Asks other members. */
  readonly callPeer: PeerCall;
  /** Free bytes of the disk with the data; undefined where that is not known. */
  readonly freeBytes: () => number | undefined;
}

export interface Console {
  /** Endpoints of the peer port, by path. */
  readonly peerEndpoints: ReadonlyMap<string, HttpHandler>;
  /** The handlers of the client port, by path; one that ends in "/" takes all below. */
  routes(
    parts: Pick<ApiParts, "services" | "pages" | "observer">,
  ): ReadonlyMap<string, HttpExchangeHandler>;
  /** Ends what runs by itself. */
  close(): void;
}

/** The console of a member that has started. */
export function openConsole(member: Member, parts: ConsoleParts): Console {
  const rates = new Rates(member);
  const report = { rates, startedMs: member.clock.wallMs(), freeBytes: parts.freeBytes };
  return {
    peerEndpoints: new Map([[MEMBER_REPORT_PATH, reportEndpoint(member, report)]]),
    routes(served) {
      const { log, callPeer } = parts;
      const cluster = overview(member, report, callPeer);
      const api = new ConsoleApi(member, { ...served, log, rates, overview: cluster });
      return new Map([
        ["/console", redirect],
        [PAGE, pageHandler(parts.files, api)],
      ]);
    },
    close: () => rates.close(),
  };
}

const redirect: HttpExchangeHandler = (exchange) => {
  exchange.respond({ status: 307, headers: { location: PAGE }, body: "" });
  return {};
};

function pageHandler(files: ReadonlyMap<string, string>, api: ConsoleApi): HttpExchangeHandler {
  const responses = new Map([...files].map(([name, text]) => [name, fileResponse(name, text)]));
  return (exchange) => {
    const { path, method } = exchange.head;
    if (path.startsWith(API)) {
      if (method === "POST") return api.serve(exchange, path.slice(API.length));
      exchange.respond(plainError(405, "Method Not Allowed", { allow: "POST" }));
      return {};
    }
    const found = responses.get(path === PAGE ? "index.html" : path.slice(PAGE.length));
    const isRead = method === "GET" || method === "HEAD";
    if (found === undefined) exchange.respond(plainError(404, "404 page not found"));
    else if (isRead) exchange.respond(found);
    else exchange.respond(plainError(405, "Method Not Allowed", { allow: "GET" }));
    return {};
  };
}

function fileResponse(name: string, body: string): HttpResponse {
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "text/plain; charset=utf-8";
  return { status: 200, headers: { ...PAGE_HEADERS, "content-type": type }, body };
}
