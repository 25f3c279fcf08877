/** Clusters with users and roles, and calls with tokens, for tests. */
import * as grpc from "@grpc/grpc-js";
import {
  AuthService,
  fromUtf8,
  type MethodDescriptor,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";
import { openChannel, type RequestOf, type ResponseOf } from "./client.ts";
import { withCluster } from "./cluster.ts";
import { until } from "./until.ts";

const CALL_LIMIT_MS = 20_000;

/** What a call came to. */
export interface Outcome<M extends MethodDescriptor = MethodDescriptor> {
  readonly code: number;
  /** The status's text; empty for OK. */
  readonly text: string;
  /** The first response. */
  readonly response: ResponseOf<M> | undefined;
}

/** Calls with a token, over one connection. */
export class AuthClient {
  readonly #channel: grpc.Client;
  token: string | undefined;

  /** @param address host:port */
  constructor(address: string, identity: ClientIdentity = {}, token?: string) {
    this.#channel = openChannel(address, identity);
    this.token = token;
  }

  /** Calls a method, unary or not: a stream's request is one message, its outcome the first. */
  async try<M extends MethodDescriptor>(
    method: M,
    request: RequestOf<M>,
    token: string | undefined = this.token,
  ): Promise<Outcome<M>> {
    const metadata = new grpc.Metadata();
    if (token !== undefined) metadata.set("token", token);
    const bytes = Buffer.from(method.requestType.encode(request as object));
    const options = { deadline: Date.now() + CALL_LIMIT_MS };
    const self = (buffer: Buffer) => buffer;
    const decode = (buffer: Buffer) => method.responseType.decode(buffer) as ResponseOf<M>;
    if (!method.requestStream && !method.responseStream) {
      return new Promise((resolve) => {
        const done = (error: grpc.ServiceError | null, response?: Buffer) =>
          error === null
            ? resolve({ code: 0, text: "", response: decode(response!) })
            : resolve({ code: error.code, text: error.details, response: undefined });
        this.#channel.makeUnaryRequest(method.path, self, self, bytes, metadata, options, done);
      });
    }
    return new Promise((resolve) => {
      const stream = method.requestStream
        ? this.#channel.makeBidiStreamRequest(method.path, self, self, metadata, options)
        : this.#channel.makeServerStreamRequest(method.path, self, self, bytes, metadata, options);
      stream.once("data", (buffer: Buffer) => {
        resolve({ code: 0, text: "", response: decode(buffer) });
        stream.cancel();
      });
      stream.on("error", () => {});
      stream.once("status", ({ code, details }: grpc.StatusObject) =>
        resolve({ code, text: details, response: undefined }),
      );
      if (method.requestStream) (stream as grpc.ClientDuplexStream<Buffer, Buffer>).write(bytes);
    });
  }

  /** As `try`, but what is not OK is thrown. */
  async call<M extends MethodDescriptor>(method: M, request: RequestOf<M>): Promise<ResponseOf<M>> {
    const { code, text, response } = await this.try(method, request);
    if (code !== 0) throw new Error(`${method.path}: ${code} ${text}`);
    return response!;
  }

  /** A stream of messages in both directions. */
  stream(method: MethodDescriptor): grpc.ClientDuplexStream<Buffer, Buffer> {
    const metadata = new grpc.Metadata();
    if (this.token !== undefined) metadata.set("token", this.token);
    const self = (buffer: Buffer) => buffer;
    return this.#channel.makeBidiStreamRequest(method.path, self, self, metadata);
  }

  /** Logs in, and uses the token from now on. */
  async login(name: string, password = PASSWORD): Promise<string> {
    this.token = undefined;
    const { token } = await this.call(AuthService.methods.Authenticate, { name, password });
    this.token = token;
    return token;
  }

  close(): void {
    this.#channel.close();
  }
}

/** The password of every user. */
export const PASSWORD = "secret";

/** A permission of a role. */
export type Grant = readonly [key: string, rangeEnd: string, type: "read" | "write" | "readwrite"];

/** Makes users with a role of the same name each, root, and enables auth. */
export async function enableAuth(
  client: AuthClient,
  users: Readonly<Record<string, readonly Grant[]>>,
): Promise<void> {
  const { UserAdd, UserGrantRole, RoleAdd, AuthEnable } = AuthService.methods;
  await client.call(UserAdd, { name: "root", password: PASSWORD });
  await client.call(RoleAdd, { name: "root" });
  await client.call(UserGrantRole, { user: "root", role: "root" });
  for (const [name, grants] of Object.entries(users)) {
    await client.call(UserAdd, { name, password: PASSWORD });
    await client.call(RoleAdd, { name });
    await client.call(UserGrantRole, { user: name, role: name });
    for (const grant of grants) await client.call(...grantOf(name, grant));
  }
  await client.call(AuthEnable, {});
}

/** The call that grants a permission to a role. */
export function grantOf(name: string, [key, rangeEnd, type]: Grant) {
  const permType = { read: 0, write: 1, readwrite: 2 }[type];
  const perm = { permType, key: fromUtf8(key), rangeEnd: fromUtf8(rangeEnd) };
  return [AuthService.methods.RoleGrantPermission, { name, perm }] as const;
}

/** host:port of an endpoint. */
export const addressOf = (endpoint: string): string => endpoint.replace(/^https?:\/\//, "");

/** Waits for a condition of a test. */
export const soon = (holds: () => boolean): Promise<void> =>
  until("what the test waits for", holds, 5);

/** Flags that make logins cheap. */
export const CHEAP_LOGINS: readonly string[] = ["--bcrypt-cost=4"];

/** Runs `body` on a cluster with a client for each member. */
export async function withClients(
  size: number,
  body: (clients: AuthClient[], open: (i: number) => AuthClient) => Promise<void>,
): Promise<void> {
  await withCluster({ size, flags: CHEAP_LOGINS }, async ({ endpoints }) => {
    const opened: AuthClient[] = [];
    const open = (i: number) => {
      const client = new AuthClient(addressOf(endpoints[i]));
      opened.push(client);
      return client;
    };
    try {
      await body(
        endpoints.map((_, i) => open(i)),
        open,
      );
    } finally {
      for (const client of opened) client.close();
    }
  });
}

/** A watch: what it heard, in order. */
export class Watch {
  readonly responses: WatchResponse[] = [];
  readonly #stream;

  constructor(client: AuthClient, key: string, rangeEnd = "") {
    this.#stream = client.stream(WatchService.methods.Watch);
    this.#stream.on("data", (bytes: Buffer) => this.responses.push(WatchResponse.decode(bytes)));
    this.#stream.on("error", () => {});
    const create = { key: fromUtf8(key), rangeEnd: fromUtf8(rangeEnd) };
    const request = { requestUnion: { case: "createRequest", value: create } };
    this.#stream.write(Buffer.from(WatchRequest.encode(request as never)));
  }

  get isCreated(): boolean {
    return this.responses.some(({ created, canceled }) => created && !canceled);
  }

  get cancelReason(): string | undefined {
    return this.responses.find(({ canceled }) => canceled)?.cancelReason;
  }

  get eventCount(): number {
    return this.responses.reduce((sum, { events }) => sum + events.length, 0);
  }

  close(): void {
    this.#stream.cancel();
  }
}
