/**
 * Makes the calls of all services over our client, which chooses the host; or over what a test put
 * in its place with mock().
 */
import { EventEmitter } from "node:events";
import {
  AuthService,
  ClusterService,
  KVService,
  LeaseService,
  MaintenanceService,
  type ServiceDescriptor,
  WatchService,
} from "@quorate/proto";
import { connect } from "../node/connect.ts";
import type { Client } from "../src/client.ts";
import type { ClientStream, StreamMethod } from "../src/stream.ts";
import { ClientClosedError, ClientRuntimeError, castGrpcError } from "./errors.ts";
import type { ITxnRequest } from "./messages.ts";
import {
  type CallContext,
  type CallOptions,
  type CallOptionsFactory,
  clientOptions,
  type IOptions,
  resolveCallOptions,
  waitOptions,
} from "./options.ts";
import { type Message, shapeOf } from "./shape.ts";

/** The services of etcd3, by its names. */
export type ServiceName = "KV" | "Watch" | "Lease" | "Cluster" | "Maintenance" | "Auth";

export const SERVICES: Readonly<Record<ServiceName, ServiceDescriptor>> = {
  KV: KVService,
  Watch: WatchService,
  Lease: LeaseService,
  Cluster: ClusterService,
  Maintenance: MaintenanceService,
  Auth: AuthService,
};

/** A stream of responses. */
export interface IResponseStream<T> {
  on(event: "data", listener: (item: T) => void): this;
  on(event: "end", listener: () => void): this;
  on(event: "error", listener: (error: Error) => void): this;
}

/** A stream of requests. */
export interface IRequestStream<T> {
  write(item: T): void;
  end(): void;
  cancel(): void;
}

export interface IDuplexStream<T, R> extends IRequestStream<T>, IResponseStream<R> {}

/** Opens the streams of a service, by the names of their methods. */
export type StreamOpener = Readonly<
  Record<string, (metadata: unknown, options: CallOptions, request?: object) => unknown>
>;

/** What streams are opened with. */
export interface Connection {
  readonly resource: unknown;
  readonly client: StreamOpener;
  readonly metadata: unknown;
}

/** What makes the calls of a service: a client, or what stands in its place in a test. */
export interface ICallable {
  exec<T>(
    service: ServiceName,
    method: string,
    request: unknown,
    options?: CallOptions,
  ): Promise<T>;
  withConnection<R>(
    service: ServiceName,
    run: (connection: Connection) => Promise<R> | R,
  ): Promise<R>;
  readonly callOptionsFactory?: CallOptionsFactory | undefined;
}

/** A stream as events. */
class Duplex extends EventEmitter implements IDuplexStream<Message, Message> {
  readonly #stream: Promise<ClientStream<Message, Message>>;

  constructor(stream: Promise<ClientStream<Message, Message>>) {
    super();
    this.#stream = stream;
    this.#run().catch((error: Error) => this.emit("error", castGrpcError(error)));
  }

  write(item: Message): void {
    this.#whenOpen((stream) => stream.send(item));
  }

  end(): void {
    this.#whenOpen((stream) => stream.finish());
  }

  cancel(): void {
    this.#whenOpen((stream) => stream.cancel());
  }

  #whenOpen(run: (stream: ClientStream<Message, Message>) => void): void {
    // A stream that does not open says so in #run.
    this.#stream.then(run, () => {});
  }

  async #run(): Promise<void> {
    for await (const response of await this.#stream) this.emit("data", response);
    this.emit("end");
  }
}

/** A method by its name in the services of etcd3, such as "leaseGrant". */
function methodOf(service: ServiceName, name: string): StreamMethod<Message, Message> {
  const found = SERVICES[service].methods[name.slice(0, 1).toUpperCase() + name.slice(1)];
  if (found === undefined) throw new ClientRuntimeError(`${service} has no method ${name}`);
  const { requestType, responseType } = found;
  return {
    ...found,
    requestType: shapeOf(requestType.typeName),
    responseType: shapeOf(responseType.typeName),
  };
}

const READS: ReadonlySet<string> = new Set([
  "range",
  "leaseTimeToLive",
  "leaseLeases",
  "memberList",
  "status",
  "hash",
  "hashKV",
  "authenticate",
  "authStatus",
  "userGet",
  "userList",
  "roleGet",
  "roleList",
]);

/** Whether a call may be made twice. */
function isRead(method: string, request: unknown): boolean {
  if (method !== "txn") return READS.has(method);
  const { success = [], failure = [] } = request as ITxnRequest;
  return [...success, ...failure].every((op) => op.request_range !== undefined);
}

export class ConnectionPool implements ICallable {
  readonly client: Client;
  readonly callOptionsFactory: CallOptionsFactory | undefined;
  /** Aborted when the client is closed. */
  readonly closed: AbortSignal;
  readonly #options: IOptions;
  readonly #close = new AbortController();
  readonly #methods = new Map<string, StreamMethod<Message, Message>>();
  #mock: ICallable | undefined;

  /** Throws for wrong options. */
  constructor(options: IOptions) {
    this.#options = options;
    this.client = connect(clientOptions(options));
    this.callOptionsFactory = options.defaultCallOptions;
    this.closed = this.#close.signal;
  }

  /** Puts something in place of the cluster, until unmock(). */
  mock(callable: Partial<ICallable>): void {
    this.#mock = callable as ICallable;
  }

  unmock(): void {
    this.#mock = undefined;
  }

  /** Whether calls go to what a test put in place of the cluster. */
  get isMocked(): boolean {
    return this.#mock !== undefined;
  }

  close(): void {
    this.#close.abort();
    this.client.close();
  }

  async exec<T>(
    service: ServiceName,
    method: string,
    request: unknown,
    options?: CallOptions,
  ): Promise<T> {
    if (this.#mock !== undefined) return this.#mock.exec(service, method, request);
    if (this.closed.aborted) throw new ClientClosedError(service);
    const context = { service, method, params: request, isStream: false };
    const run = () => this.#call<T>(context, request as object, options);
    const policy = this.#options.faultHandling?.global;
    return policy === undefined ? run() : policy.execute(run);
  }

  async withConnection<R>(
    service: ServiceName,
    run: (connection: Connection) => Promise<R> | R,
  ): Promise<R> {
    if (this.#mock !== undefined) return this.#mock.withConnection(service, run);
    if (this.closed.aborted) throw new ClientClosedError(service);
    await this.#login();
    const client = Object.fromEntries(
      ["watch", "leaseKeepAlive", "snapshot"].map((method) => [
        method,
        (_metadata: unknown, options: CallOptions, request?: object) =>
          this.#open(service, method, options, request),
      ]),
    );
    return run({ resource: undefined, client, metadata: undefined });
  }

  #open(
    service: ServiceName,
    method: string,
    { signal }: CallOptions,
    request: object | undefined,
  ): Duplex {
    const stream = this.client.stream(
      this.#method(service, method),
      undefined,
      signal === undefined ? {} : { signal },
    );
    const duplex = new Duplex(stream);
    if (request === undefined) return duplex;
    duplex.write({ ...request });
    duplex.end();
    return duplex;
  }

  #method(service: ServiceName, method: string): StreamMethod<Message, Message> {
    const name = `${service}.${method}`;
    let found = this.#methods.get(name);
    if (found === undefined) {
      found = methodOf(service, method);
      this.#methods.set(name, found);
    }
    return found;
  }

  async #call<T>(
    context: CallContext & { readonly service: ServiceName },
    request: object,
    options: CallOptions | undefined,
  ): Promise<T> {
    const { service, method } = context;
    const descriptor = this.#method(service, method);
    try {
      const wait = waitOptions(resolveCallOptions(options, this.callOptionsFactory, context));
      await this.#login();
      return (await this.client.call(descriptor, request, isRead(method, request), {
        // It takes as long as the store is large.
        ...(method === "defragment" ? { timeoutMs: Number.POSITIVE_INFINITY } : {}),
        ...wait,
      })) as T;
    } catch (error) {
      throw castGrpcError(error as Error);
    }
  }

  /** Gets a token where that has options of its own; the client gets it by itself otherwise. */
  async #login(): Promise<void> {
    const { auth } = this.#options;
    if (auth?.callOptions === undefined) return;
    const params = { name: auth.username, password: auth.password };
    const context = { service: "Auth", method: "authenticate", params, isStream: false };
    await this.client.login(waitOptions(resolveCallOptions({}, auth.callOptions, context)));
  }
}
