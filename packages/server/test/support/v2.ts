/** Requests of the v2 API to members in memory. */
import { MemoryExchange } from "@quorate/host/testing";
import type { Member } from "@quorate/member";
import { fromUtf8 } from "@quorate/proto";
import type { ServiceTable } from "@quorate/rpc";
import { serviceTable } from "@quorate/services";
import { V2_LIMITS, type V2Limits, v2Routes } from "@quorate/v2/testing";
import { type Fields, formText } from "./v2-form.ts";
import { World } from "./world.ts";

export interface V2Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as JSON; undefined where it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: bodies of all shapes
  readonly json: any;
  readonly text: string;
}

const HASH_KEY = new Uint8Array(32);
const FORM = { "content-type": "application/x-www-form-urlencoded" };

export function answerOf(exchange: MemoryExchange): V2Answer {
  const { status, headers, text } = exchange;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Not JSON, or not yet.
  }
  return { status: status ?? 0, headers, json, text };
}

export interface V2ClientOptions {
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly limits?: Partial<V2Limits>;
  /** In place of the member's. */
  readonly services?: ServiceTable;
}

/** A client of one member. */
export class V2Client {
  readonly #world: World;
  readonly #routes: ReturnType<typeof v2Routes>;
  readonly #headers: Readonly<Record<string, string>>;
  peerAddress = "127.0.0.1:1";

  constructor(world: World, member: Member, options: V2ClientOptions = {}) {
    const { headers = {}, services = serviceTable(member) } = options;
    const limits = { ...V2_LIMITS, ...options.limits };
    this.#world = world;
    this.#routes = v2Routes(member, { services, hashKey: HASH_KEY }, limits);
    this.#headers = headers;
  }

  /** Sends a request. */
  open(
    method: string,
    path: string,
    query = "",
    body: string | Uint8Array = "",
    headers: Readonly<Record<string, string>> = FORM,
  ): MemoryExchange {
    const exchange = this.begin(method, path, query, headers);
    const bytes = typeof body === "string" ? fromUtf8(body) : body;
    if (bytes.length > 0) exchange.listener.data?.(bytes);
    exchange.listener.ended?.();
    return exchange;
  }

  /** Sends the head of a request. */
  begin(
    method: string,
    path: string,
    query = "",
    headers: Readonly<Record<string, string>> = FORM,
  ): MemoryExchange {
    const prefixes = [...this.#routes.keys()].filter((one) => one.endsWith("/"));
    const prefix = prefixes.sort((a, b) => b.length - a.length).find((one) => path.startsWith(one));
    const handler = this.#routes.get(path) ?? this.#routes.get(prefix ?? "");
    if (handler === undefined) throw new Error(`no route for ${path}`);
    const exchange = new MemoryExchange({
      method,
      path,
      query,
      peerAddress: this.peerAddress,
      headers: new Map(Object.entries({ ...headers, ...this.#headers })),
    });
    return exchange.serve(handler, [], true);
  }

  async send(...request: Parameters<V2Client["open"]>): Promise<V2Answer> {
    const exchange = this.open(...request);
    await this.#world.settled(exchange.done);
    return answerOf(exchange);
  }

  get(key: string, fields: Fields = {}): Promise<V2Answer> {
    return this.send("GET", `/v2/keys${key}`, formText(fields));
  }

  put(key: string, fields: Fields = {}): Promise<V2Answer> {
    return this.send("PUT", `/v2/keys${key}`, "", formText(fields));
  }

  post(key: string, fields: Fields = {}): Promise<V2Answer> {
    return this.send("POST", `/v2/keys${key}`, "", formText(fields));
  }

  delete(key: string, fields: Fields = {}): Promise<V2Answer> {
    return this.send("DELETE", `/v2/keys${key}`, formText(fields));
  }

  wait(key: string, fields: Fields = {}): MemoryExchange {
    return this.open("GET", `/v2/keys${key}`, formText({ wait: true, ...fields }));
  }
}

/** Starts a cluster of one member in memory, with a client of its v2 API. */
export async function startV2(): Promise<{ world: World; member: Member; v2: V2Client }> {
  const world = new World(1);
  await world.startAll();
  const member = world.leader()!.member!;
  return { world, member, v2: new V2Client(world, member) };
}
