/** etcdserverpb.Lease: keep-alive streams share one upstream; all else goes through. */
import {
  LeaseService as Descriptor,
  GrpcCode,
  LeaseKeepAliveRequest,
  LeaseTimeToLiveResponse,
  WireError,
} from "@quorate/proto";
import {
  joinMessage,
  type Status,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
  type UnaryHandler,
} from "@quorate/rpc";
import type { Namespace } from "../namespace/namespace.ts";
import { type Caller, callerOf } from "../upstream/caller.ts";
import type { ProxyMetrics } from "../upstream/metrics.ts";
import { passUnary } from "../upstream/pass-through.ts";
import type { Upstream } from "../upstream/upstream.ts";
import { type KeepAliveClient, KeepAliveLink } from "./keep-alive-link.ts";

const { LeaseGrant, LeaseRevoke, LeaseTimeToLive, LeaseLeases, LeaseKeepAlive } =
  Descriptor.methods;

/** Responses that one stream may wait for; beyond, no more of its requests are read. */
export const MAX_WAITING_RESPONSES = 16_384;

export class LeaseProxy {
  readonly #upstream: Upstream;
  readonly #metrics: ProxyMetrics;
  readonly #namespace: Namespace | undefined;
  readonly #links = new Map<string, KeepAliveLink>();

  constructor(upstream: Upstream, metrics: ProxyMetrics, namespace: Namespace | undefined) {
    this.#upstream = upstream;
    this.#metrics = metrics;
    this.#namespace = namespace;
  }

  /** The unary methods, by path. */
  unary(): Map<string, UnaryHandler> {
    const timeToLive = passUnary(this.#upstream, LeaseTimeToLive.path, true);
    const namespace = this.#namespace;
    return new Map<string, UnaryHandler>([
      [LeaseGrant.path, passUnary(this.#upstream, LeaseGrant.path, false)],
      [LeaseRevoke.path, passUnary(this.#upstream, LeaseRevoke.path, false)],
      [LeaseLeases.path, passUnary(this.#upstream, LeaseLeases.path, true)],
      [
        LeaseTimeToLive.path,
        namespace === undefined
          ? timeToLive
          : async (request, context) =>
              ownKeys(joinMessage(await timeToLive(request, context)), namespace),
      ],
    ]);
  }

  /** The streaming method, by path. */
  stream(): Map<string, StreamHandler> {
    return new Map<string, StreamHandler>([
      [
        LeaseKeepAlive.path,
        (call) => {
          const caller = callerOf(call.context);
          return new KeepAliveStream(call, this.#link(caller), caller.requiresLeader);
        },
      ],
    ]);
  }

  #link({ identity, credentials }: Caller): KeepAliveLink {
    const known = this.#links.get(identity);
    if (known !== undefined) return known;
    const made: KeepAliveLink = new KeepAliveLink(
      this.#upstream,
      credentials,
      this.#metrics,
      () => {
        if (this.#links.get(identity) === made) this.#links.delete(identity);
      },
    );
    this.#links.set(identity, made);
    return made;
  }
}

/** The keys of a lease that are in the namespace. */
function ownKeys(bytes: Uint8Array, namespace: Namespace): Uint8Array {
  const response = LeaseTimeToLiveResponse.decode(bytes);
  const keys = response.keys.flatMap((key) => namespace.plainKey(key) ?? []);
  return LeaseTimeToLiveResponse.encode({ ...response, keys });
}

/** One keep-alive stream of a client. */
class KeepAliveStream implements StreamListener, KeepAliveClient {
  readonly requiresLeader: boolean;
  readonly #call: StreamCall;
  readonly #link: KeepAliveLink;
  /** How many responses each lease waits for. */
  readonly #waiting = new Map<bigint, number>();
  #waitingResponses = 0;
  #isFull = false;
  #isHalfClosed = false;
  #isOver = false;

  constructor(call: StreamCall, link: KeepAliveLink, requiresLeader: boolean) {
    this.#call = call;
    this.#link = link;
    this.requiresLeader = requiresLeader;
    link.addClient(this);
  }

  message(bytes: Uint8Array): void {
    let lease: bigint;
    try {
      lease = LeaseKeepAliveRequest.decode(bytes).ID;
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      const message = `grpc: error unmarshalling request: ${error.message}`;
      this.end({ code: GrpcCode.Internal, message });
      return;
    }
    const count = this.#waiting.get(lease);
    this.#waiting.set(lease, (count ?? 0) + 1);
    if (++this.#waitingResponses >= MAX_WAITING_RESPONSES) this.#call.pause();
    // One request of this stream for each lease is enough; its response is sent for all of them.
    if (count !== undefined || this.#link.request(lease, this)) return;
    this.end({
      code: GrpcCode.ResourceExhausted,
      message: "etcdserver: too many lease keep-alive requests wait for the cluster",
    });
  }

  halfClosed(): void {
    this.#isHalfClosed = true;
    if (this.#waiting.size === 0) this.end({ code: GrpcCode.OK, message: "" });
  }

  drained(): void {
    this.#isFull = false;
    this.#resume();
  }

  cancelled(): void {
    this.#close();
  }

  answered(lease: bigint, response: Uint8Array): void {
    const count = this.#waiting.get(lease) ?? 0;
    this.#waiting.delete(lease);
    this.#waitingResponses -= count;
    for (let i = 0; i < count && !this.#isOver; i++)
      if (!this.#call.send(response)) this.#isFull = true;
    // A client that does not read may not request either.
    if (this.#isFull) this.#call.pause();
    else this.#resume();
    if (this.#isHalfClosed && this.#waiting.size === 0)
      this.end({ code: GrpcCode.OK, message: "" });
  }

  end(status: Status): void {
    if (this.#isOver) return;
    this.#close();
    if (status.code === GrpcCode.OK) this.#call.end();
    else this.#call.end(status);
  }

  #resume(): void {
    if (this.#isOver || this.#isFull || this.#waitingResponses >= MAX_WAITING_RESPONSES) return;
    this.#call.resume();
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#link.deleteClient(this, this.#waiting.keys());
    this.#waiting.clear();
  }
}
