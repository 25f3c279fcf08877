/** A proxy before a fake cluster, and clients that call its services directly. */
import { setImmediate as turn } from "node:timers/promises";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  Event,
  fromUtf8,
  KeyValue,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  toUtf8,
  type WatchCreateRequest,
  WatchRequest,
  WatchResponse,
} from "@quorate/proto";
import { GrpcProxy, ProxyMetrics, type ProxyOptions, Upstream } from "@quorate/proxy";
import {
  type CallContext,
  joinMessage,
  LOCAL_CALL,
  type MessageBytes,
  type Status,
  type StreamCall,
  type StreamListener,
} from "@quorate/rpc";
import { FakeCluster } from "./fake-cluster.ts";
import { MemoryChannel } from "./memory-channel.ts";

/** Metadata of a call. */
export type Metadata = Readonly<Record<string, string>>;

const OPTIONS: ProxyOptions = {
  namespace: "",
  advertised: "",
  hostname: "host",
  resolverPrefix: "",
  resolverTtlSeconds: 0,
  ordered: undefined,
};

export class World {
  readonly clock = new ManualClock();
  readonly cluster = new FakeCluster();
  readonly members: readonly MemoryChannel[];
  readonly upstream: Upstream;
  readonly metrics = new ProxyMetrics();
  readonly proxy: GrpcProxy;

  constructor(options: Partial<ProxyOptions> = {}, size = 2) {
    this.members = Array.from(
      { length: size },
      (_, i) => new MemoryChannel(`m${i}:2379`, this.cluster.services, this.clock),
    );
    this.upstream = new Upstream(this.members, this.clock);
    this.proxy = new GrpcProxy(
      this.upstream,
      { ...OPTIONS, ...options },
      this.metrics,
      silentLogger,
    );
  }

  /** Lets everything happen that is not waiting for time; then moves the time. */
  async settle(ms = 0): Promise<void> {
    for (let i = 0; i < 20; i++) await turn();
    for (let left = ms; left > 0; left -= 50) {
      this.clock.advance(Math.min(50, left));
      for (let i = 0; i < 10; i++) await turn();
    }
  }

  /** Calls a unary method. */
  async call(path: string, request: Uint8Array, metadata: Metadata = {}): Promise<Uint8Array> {
    const result = this.proxy.services.unary.get(path)!(request, contextOf(path, metadata));
    let settled = false;
    const response = Promise.resolve(result).finally(() => {
      settled = true;
    });
    response.catch(() => {});
    for (let i = 0; i < 200 && !settled; i++) await this.settle(50);
    return joinMessage(await response);
  }

  /** Opens a stream. */
  stream(path: string, metadata: Metadata = {}): ClientStream {
    return new ClientStream(this.proxy, path, metadata);
  }

  watch(metadata: Metadata = {}): WatchStream {
    return new WatchStream(this.stream("/etcdserverpb.Watch/Watch", metadata));
  }
}

function contextOf(path: string, metadata: Metadata): CallContext {
  return { ...LOCAL_CALL, path, peerAddress: "10.0.0.1:5", metadata: (key) => metadata[key] };
}

/** The client's side of a stream. */
export class ClientStream {
  readonly received: Uint8Array[] = [];
  status: Status | undefined;
  isPaused = false;
  /** Bytes that the client has not read; set to have `send` refuse. */
  bufferedBytes = 0;
  readonly listener: StreamListener;

  constructor(proxy: GrpcProxy, path: string, metadata: Metadata) {
    const stream = this;
    const call: StreamCall = {
      context: contextOf(path, metadata),
      get bufferedBytes() {
        return stream.bufferedBytes;
      },
      send(message: MessageBytes) {
        stream.received.push(joinMessage(message));
        return stream.bufferedBytes === 0;
      },
      end(status = { code: 0, message: "" }) {
        stream.status = status;
      },
      pause() {
        stream.isPaused = true;
      },
      resume() {
        stream.isPaused = false;
      },
    };
    this.listener = proxy.services.stream.get(path)!(call);
  }
}

/** A stream of watches. */
export class WatchStream {
  readonly stream: ClientStream;

  constructor(stream: ClientStream) {
    this.stream = stream;
  }

  create(key: string, options: Partial<WatchCreateRequest> = {}): void {
    const value = {
      rangeEnd: new Uint8Array(0),
      startRevision: 0,
      progressNotify: false,
      filters: [],
      prevKv: false,
      watchId: 0,
      fragment: false,
      key: fromUtf8(key),
      ...options,
    };
    this.send({ requestUnion: { case: "createRequest", value } });
  }

  send(request: Partial<WatchRequest>): void {
    this.stream.listener.message?.(WatchRequest.encode(request));
  }

  get responses(): WatchResponse[] {
    return this.stream.received.map((bytes) => WatchResponse.decode(bytes));
  }

  /** Values of the events of one watch, with their keys. */
  events(id = 0): string[] {
    return this.responses
      .filter(({ watchId }) => watchId === id)
      .flatMap(({ events }) => events)
      .map((bytes) => KeyValue.decode(Event.decode(bytes).kv!))
      .map(({ key, value }) => `${toUtf8(key)}=${toUtf8(value)}`);
  }
}

/** A keep-alive request. */
export function keepAlive(stream: ClientStream, lease: bigint): void {
  stream.listener.message?.(LeaseKeepAliveRequest.encode({ ID: lease }));
}

/** The leases that were answered, in order. */
export function keptAlive(stream: ClientStream): bigint[] {
  return stream.received.map((bytes) => LeaseKeepAliveResponse.decode(bytes).ID);
}
