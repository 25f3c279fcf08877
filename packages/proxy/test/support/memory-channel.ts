/** A member's connection without sockets: rpc's client and server, joined by a queue of bytes. */
import { silentLogger } from "@quorate/host";
import type { ManualClock } from "@quorate/host/testing";
import { GrpcCode } from "@quorate/proto";
import type { MemberChannel } from "@quorate/proxy";
import {
  ClientConnection,
  type ClientConnectionOwner,
  type ClientLimits,
  DEFAULT_CLIENT_LIMITS,
  DEFAULT_HTTP2_LIMITS,
  DeadlineQueue,
  Dispatcher,
  Http2Connection,
  Http2Shared,
  Inflater,
  type ServiceTable,
  StatusError,
} from "@quorate/rpc";

const MIB = 1024 * 1024;
const compressor = {
  compressNow: (message: unknown) => message as Uint8Array,
  inflateNow: (message: Uint8Array) => message,
  inflateLater: () => {},
};

/** A member that can be cut off. */
export class MemoryChannel implements MemberChannel {
  readonly endpoint: string;
  readonly #services: ServiceTable;
  readonly #clock: ManualClock;
  readonly #limits: Partial<ClientLimits>;
  #pair: { client: ClientConnection; server: Http2Connection } | undefined;
  /** While it is true, no connection can be made. */
  isDown = false;
  dials = 0;

  constructor(
    endpoint: string,
    services: ServiceTable,
    clock: ManualClock,
    limits: Partial<ClientLimits> = {},
  ) {
    this.endpoint = endpoint;
    this.#services = services;
    this.#clock = clock;
    this.#limits = limits;
  }

  get ready(): ClientConnection | undefined {
    return this.#pair?.client.isUsable === true ? this.#pair.client : undefined;
  }

  connect(): Promise<ClientConnection> {
    this.dials++;
    if (this.isDown)
      return Promise.reject(new StatusError(GrpcCode.Unavailable, "connection refused"));
    return new Promise((resolve) => {
      const pair = this.#open(() => resolve(pair.client));
      this.#pair = pair;
      pair.client.touched();
      pair.server.touched();
    });
  }

  /** The connection breaks, as if the member was killed. */
  kill(): void {
    const pair = this.#pair;
    this.#pair = undefined;
    pair?.server.lost();
    pair?.client.lost("error reading from server: EOF");
  }

  close(): void {
    this.kill();
  }

  #open(settled: () => void): { client: ClientConnection; server: Http2Connection } {
    const shared = new Http2Shared(DEFAULT_HTTP2_LIMITS, 64 * MIB, 64 * MIB, 64 * MIB);
    const clock = this.#clock;
    const grpc = {
      limits: {
        maxRequestBytes: 4 * MIB,
        maxResponseBytes: 2 ** 31 - 1,
        maxHttpBodyBytes: MIB,
        sendBudgetBytes: MIB,
      },
      services: this.#services,
      http: () => ({ status: 404, headers: {}, body: "" }),
      clock,
      logger: silentLogger,
      deadlines: new DeadlineQueue(clock),
      compressor,
      inflater: new Inflater(compressor as never, clock),
      observer: undefined,
    };
    let client: ClientConnection;
    let server: Http2Connection;
    const move = (
      take: () => Uint8Array[],
      to: () => { receive(b: Uint8Array, n: number): void },
    ) =>
      queueMicrotask(() => {
        for (const chunk of take()) to().receive(new Uint8Array(chunk), clock.monotonicMs());
      });
    const owner: ClientConnectionOwner = {
      wake: () =>
        move(
          () => client.takeOutput(),
          () => server,
        ),
      settled,
    };
    client = new ClientConnection(
      { ...DEFAULT_CLIENT_LIMITS, ...this.#limits },
      owner,
      { authority: this.endpoint, isSecure: false },
      clock.monotonicMs(),
    );
    server = new Http2Connection(
      shared,
      new Dispatcher(grpc as never, "all"),
      {
        wake: () =>
          move(
            () => server.takeOutput(),
            () => client,
          ),
        settled() {},
        heldBack: () => queueMicrotask(() => server.goOn(clock.monotonicMs())),
      },
      { peerAddress: "127.0.0.1:1", peerCommonName: undefined },
      clock.monotonicMs(),
    );
    return { client, server };
  }
}
