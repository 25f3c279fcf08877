/** Loads of unary calls: what is called, with which keys, over how many connections. */
import {
  AuthenticateRequest,
  AuthService,
  Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  KVService,
  MaintenanceService,
  PutRequest,
  RangeRequest,
  RangeResponse,
  TxnRequest,
} from "@quorate/proto";
import type { ClientIdentity } from "../scripts/cluster/health.ts";
import { TestClient } from "../test/support/client.ts";
import type { TestCluster } from "../test/support/cluster.ts";
import { Connection, type Template } from "./connection.ts";
import { keyBytes } from "./keys.ts";
import type { Load, LoadEvents } from "./load.ts";

/** Where a load goes: its connections go round robin to the URLs. */
export interface Target {
  readonly urls: readonly string[];
  readonly identity: ClientIdentity;
  /** The token of a user, where the cluster demands one. */
  readonly token?: string | undefined;
}

/** A template and what is written over its keys. */
export interface Step {
  readonly template: Template;
  readonly key: Uint8Array;
  /** By how much the store's revision goes up. */
  readonly revisions: 0 | 1;
  /** The least size of a good answer. */
  readonly leastAnswerBytes?: number;
}

const { Put, Range, Txn } = KVService.methods;
/** The methods that unary loads call, by their place in a connection's list. */
const paths = [Put.path, Range.path, Txn.path, AuthService.methods.Authenticate.path];

/** In an encoded request with the key first: after its tag and its length. */
const firstKeyAt = 2;

const anyKey = Buffer.alloc(keyBytes, "k");

export function putTemplate(value: Uint8Array): Template {
  return {
    path: 0,
    message: PutRequest.encode({ key: anyKey, value }).slice(),
    patchAt: [firstKeyAt],
  };
}

export function getTemplate(serializable: boolean): Template {
  return {
    path: 1,
    message: RangeRequest.encode({ key: anyKey, serializable }).slice(),
    patchAt: [firstKeyAt],
  };
}

/**
 * All keys with the first byte of `first`; serializable, as listing usually is asked for when it is
 * large.
 */
export function listTemplate(first: number, serializable: boolean): Template {
  const key = Buffer.from([first]);
  return {
    path: 1,
    message: RangeRequest.encode({ key, rangeEnd: Buffer.from([first + 1]), serializable }).slice(),
    patchAt: [],
  };
}

/** If the key exists, put it. */
export function txnTemplate(value: Uint8Array): Template {
  const message = TxnRequest.encode({
    compare: [
      Compare.create({
        result: Compare_CompareResult.GREATER,
        target: Compare_CompareTarget.VERSION,
        key: anyKey,
        targetUnion: { case: "version", value: 0 },
      }),
    ],
    success: [
      { request: { case: "requestPut", value: PutRequest.create({ key: anyKey, value }) } },
    ],
  }).slice();
  const first = Buffer.from(message).indexOf(anyKey);
  return {
    path: 2,
    message,
    patchAt: [first, Buffer.from(message).indexOf(anyKey, first + keyBytes)],
  };
}

/** A login; the name that is written over its own has as many bytes. */
export function loginTemplate(name: string, password: string): Template {
  return {
    path: 3,
    message: AuthenticateRequest.encode({ name, password }).slice(),
    patchAt: [firstKeyAt],
  };
}

export class UnaryLoad implements Load {
  readonly clients: number;
  readonly unitsPerCall = 1;
  /** By how much the store's revision must have gone up. */
  revisions = 0;
  readonly #target: Target;
  readonly #connectionCount: number;
  readonly #next: () => Step;
  readonly #steps: Step[] = [];
  #connections: Connection[] = [];

  /** `next` returns the steps, one for each call. */
  constructor(target: Target, clients: number, connections: number, next: () => Step) {
    this.#target = target;
    this.clients = clients;
    this.#connectionCount = connections;
    this.#next = next;
  }

  async open(events: LoadEvents): Promise<void> {
    const { urls, identity, token } = this.#target;
    const headers = token === undefined ? [] : [["token", token] as const];
    const done = (client: number, ok: boolean, sizeBytes: number): void => {
      const step = this.#steps[client];
      if (ok) this.revisions += step.revisions;
      events.done(client, ok && sizeBytes >= (step.leastAnswerBytes ?? 0));
    };
    for (let index = 0; index < this.#connectionCount; index++) {
      const url = urls[index % urls.length];
      this.#connections.push(
        await Connection.open({ url, paths, identity, headers, done, failed: events.failed }),
      );
    }
  }

  start(client: number): void {
    const step = this.#next();
    this.#steps[client] = step;
    this.#connections[client % this.#connections.length].call(client, step.template, step.key);
  }

  flush(): void {
    for (const connection of this.#connections) connection.flush();
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }
}

/** Asks once, linearizably. Throws if that is refused. */
export async function range(
  url: string,
  identity: ClientIdentity,
  request: Parameters<typeof RangeRequest.encode>[0],
): Promise<RangeResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const done = (
    _slot: number,
    ok: boolean,
    _sizeBytes: number,
    message: Buffer | undefined,
  ): void => (ok ? resolve(message!) : reject(new Error(`${url} refused a range`)));
  const connection = await Connection.open({
    url,
    paths,
    identity,
    done,
    failed: reject,
    keepsMessages: true,
  });
  try {
    connection.call(0, { path: 1, message: RangeRequest.encode(request), patchAt: [] });
    connection.flush();
    return RangeResponse.decode(await promise);
  } finally {
    connection.close();
  }
}

/** The store's revision, as a linearizable range reports it. */
export async function revisionOf(url: string, identity: ClientIdentity): Promise<number> {
  return (await range(url, identity, { key: Buffer.alloc(keyBytes) })).header!.revision;
}

/** The client URL of the member that leads. Throws if none says so. */
export async function leaderUrl(cluster: TestCluster): Promise<string> {
  for (const member of cluster.members) {
    const client = new TestClient(member.clientAddress, cluster.identity);
    const status = await client
      .call(MaintenanceService.methods.Status, {})
      .finally(() => client.close());
    if (status.leader !== 0n && status.leader === status.header!.memberId) return member.clientUrl;
  }
  throw new Error("no member says that it leads");
}
