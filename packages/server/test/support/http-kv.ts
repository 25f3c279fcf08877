/** The HTTP interface for keys of members in memory: requests in, responses out. */
import assert from "node:assert/strict";
import type { HttpExchangeHandler } from "@quorate/host";
import { MemoryExchange } from "@quorate/host/testing";
import { type HttpKvParts, httpKv } from "@quorate/http-kv";
import type { Member } from "@quorate/member";
import { fromUtf8 } from "@quorate/proto";
import { pageTable, serviceTable } from "@quorate/services";
import { World } from "./world.ts";

export interface KvRequest {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  readonly peerAddress?: string;
  readonly peerCommonName?: string;
}

/** The client of one member. */
export class KvClient {
  readonly #world: World;
  readonly #routes: ReadonlyMap<string, HttpExchangeHandler>;

  /** @param parts in place of the member's own */
  constructor(world: World, member: Member, parts: Partial<HttpKvParts> = {}) {
    this.#world = world;
    this.#routes = httpKv(member, {
      services: serviceTable(member),
      pages: pageTable(member),
      observer: undefined,
      access: { allowedOrigins: undefined, areOriginsGiven: false },
      ...parts,
      hashKey: fromUtf8("secret of this process"),
    });
  }

  /** An exchange that is not served yet. @param target path and query */
  exchange(method: string, target: string, request: KvRequest = {}): MemoryExchange {
    const [path, query = ""] = target.split(/\?(.*)/s);
    const { peerAddress = "127.0.0.1:1", peerCommonName } = request;
    const headers = new Map(Object.entries(request.headers ?? {}));
    return new MemoryExchange({ method, path, query, headers, peerAddress, peerCommonName });
  }

  handler(exchange: MemoryExchange): HttpExchangeHandler {
    const { path } = exchange.head;
    const found = [...this.#routes].find(([route]) =>
      route.endsWith("/") ? path.startsWith(route) : path === route,
    );
    if (found === undefined) throw new Error(`no route for ${path}`);
    return found[1];
  }

  /** Serves a request without waiting for its end. */
  start(method: string, target: string, request: KvRequest = {}): MemoryExchange {
    const exchange = this.exchange(method, target, request);
    const { body } = request;
    const bytes = typeof body === "string" ? fromUtf8(body) : body;
    return exchange.serve(this.handler(exchange), bytes === undefined ? [] : [bytes]);
  }

  /** Serves a request to its end. */
  async ask(method: string, target: string, request: KvRequest = {}): Promise<MemoryExchange> {
    const exchange = this.start(method, target, request);
    await this.#world.settled(exchange.done);
    return exchange;
  }
}

/** A world of one member that serves, and its client. */
export async function startedKv(
  flags: readonly string[] = [],
): Promise<{ readonly world: World; readonly member: Member; readonly kv: KvClient }> {
  const world = new World(1, flags);
  await world.startAll();
  const member = world.nodes[0].member!;
  return { world, member, kv: new KvClient(world, member) };
}

/** The problem that a request comes to: its type's name, its document and its headers. */
export async function problemIn(
  kv: KvClient,
  method: string,
  target: string,
  request: KvRequest = {},
): Promise<{
  readonly type: string;
  readonly detail: string;
  readonly mod_revision?: number;
  readonly headers: Readonly<Record<string, string>>;
}> {
  const { status, headers, text } = await kv.ask(method, target, request);
  const where = `${method} ${target}: ${status}`;
  assert.equal(headers["content-type"], "application/problem+json", where);
  const document = JSON.parse(text);
  assert.equal(document.status, status);
  return { ...document, type: document.type.replace("urn:quorate:problem:", ""), headers };
}
