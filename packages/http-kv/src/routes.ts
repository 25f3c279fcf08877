/**
 * Keys for people: /kv/KEY, /watch/KEY and /txn on the client port (docs/guide/http.md).
 *
 *     exchange -> cross-site? -> method? -> password to token -> read, put, remove, watch, txn
 */
import type { Clock, HttpExchangeHandler, HttpHead } from "@quorate/host";
import { SharedTurns } from "@quorate/member";
import type { RpcObserver, ServiceTable } from "@quorate/rpc";
import { type ExchangeCaller, ServiceCalls } from "@quorate/services";
import { Credentials, type CredentialsDeps } from "./credentials.ts";
import { EventLines } from "./event-stream.ts";
import { Heartbeats } from "./heartbeats.ts";
import { type KvAction, KvExchange } from "./kv-exchange.ts";
import { Problem } from "./problems.ts";
import { read } from "./read.ts";
import { txn } from "./txn.ts";
import { KEEP_ALIVE_MS, watch } from "./watch.ts";
import { put, remove } from "./write.ts";

const KV = "/kv/";
const WATCH = "/watch/";
const TXN = "/txn";

export interface HttpKvDeps extends Pick<CredentialsDeps, "isEnforced" | "logins" | "hashKey"> {
  readonly clock: Clock;
  /** Counts calls; undefined: they are not counted. */
  readonly observer: RpcObserver | undefined;
  readonly services: ServiceTable;
  /** As pageTable(). */
  readonly pages: ServiceTable;
  /** --max-request-bytes */
  readonly maxRequestBytes: number;
  /** --max-txn-ops */
  readonly maxTxnOps: number;
  /** Whether a caller may read a key, as users and roles are now. */
  readonly mayRead: (caller: ExchangeCaller, key: Uint8Array) => Promise<boolean>;
  /** Why a request may change something for a page of another site; undefined: it may not. */
  readonly crossOrigin: (head: HttpHead) => string | undefined;
}

/** The actions of a path by method. */
interface Route {
  readonly actions: Readonly<Record<string, KvAction>>;
  /** Methods whose request has a body. */
  readonly withBody: ReadonlySet<string>;
}

/** The handlers, by path or prefix. */
export function httpKvRoutes(deps: HttpKvDeps): ReadonlyMap<string, HttpExchangeHandler> {
  const { clock, mayRead } = deps;
  const calls = new ServiceCalls(deps.services, deps);
  const credentials = new Credentials({ ...deps, calls });
  const turns = new SharedTurns(clock);
  const reads = { calls, pages: new ServiceCalls(deps.pages, deps), turns };
  const writes = { calls, mayRead };
  const lines = new EventLines((task) => clock.endOfTurn(task));
  const watches = { calls, turns, lines, heartbeats: new Heartbeats(clock, KEEP_ALIVE_MS) };
  const reading: KvAction = (exchange) => read(exchange, KV, reads);
  const keys: Route = {
    actions: {
      GET: reading,
      HEAD: reading,
      PUT: (exchange) => put(exchange, KV, writes),
      DELETE: (exchange) => remove(exchange, KV, writes),
    },
    withBody: new Set(["PUT"]),
  };
  const events: Route = {
    actions: { GET: (exchange) => watch(exchange, WATCH, watches) },
    withBody: new Set(),
  };
  const transactions: Route = {
    actions: { POST: (exchange) => txn(exchange, { calls, turns, maxOps: deps.maxTxnOps }) },
    withBody: new Set(["POST"]),
  };
  const ofKeys = handlerOf(keys, credentials, deps);
  const ofEvents = handlerOf(events, credentials, deps);
  return new Map([
    [TXN, handlerOf(transactions, credentials, deps)],
    [KV, ofKeys],
    [WATCH, ofEvents],
    // Without the slash the key is the empty one.
    [KV.slice(0, -1), ofKeys],
    [WATCH.slice(0, -1), ofEvents],
  ]);
}

function handlerOf(route: Route, credentials: Credentials, deps: HttpKvDeps): HttpExchangeHandler {
  const allow = Object.keys(route.actions).join(", ");
  return (exchange) => {
    const { method } = exchange.head;
    const action = Object.hasOwn(route.actions, method) ? route.actions[method] : undefined;
    const serve = action ?? noMethod(method, allow);
    const why = deps.crossOrigin(exchange.head);
    const served = new KvExchange(exchange, {
      action: (it) => credentials.proved(it.caller, () => serve(it)),
      maxBodyBytes: route.withBody.has(method) ? deps.maxRequestBytes : 0,
    });
    if (why !== undefined) served.fail(new Problem("cross-site", why));
    return served;
  };
}

function noMethod(method: string, allow: string): KvAction {
  return async () => {
    const what = `the method ${method.slice(0, 20)} is not one of this path`;
    throw new Problem("method-not-allowed", what, `use one of ${allow}`, { headers: { allow } });
  };
}
