/**
 * The keep-alive stream of one identity upstream. Requests for one lease that are on their way at
 * the same time share one: its response is the same for all. (etcd's proxy keeps leases alive by
 * itself and answers from that; then a lease may outlive its owner.)
 */
import { Backoff, type Timer } from "@quorate/host";
import {
  GrpcCode,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseService,
} from "@quorate/proto";
import type { Status } from "@quorate/rpc";
import { type Metadata, REQUIRES_LEADER } from "../upstream/caller.ts";
import type { ProxyMetrics } from "../upstream/metrics.ts";
import { REOPEN, type Upstream } from "../upstream/upstream.ts";
import type { UpstreamStream } from "../upstream/upstream-stream.ts";

const { path } = LeaseService.methods.LeaseKeepAlive;

/** Leases of one identity whose requests wait for responses; more are refused. */
export const MAX_WAITING_LEASES = 100_000;

/** A client's stream, as the link sees it. */
export interface KeepAliveClient {
  readonly requiresLeader: boolean;
  /** The response to one of its requests. */
  answered(lease: bigint, response: Uint8Array): void;
  /** Ends the stream. */
  end(status: Status): void;
}

export class KeepAliveLink {
  readonly #upstream: Upstream;
  readonly #metadata: Metadata;
  readonly #metrics: ProxyMetrics;
  readonly #clients = new Set<KeepAliveClient>();
  /** Leases whose request has been sent and not answered, with those that wait for it. */
  readonly #sent = new Map<bigint, KeepAliveClient[]>();
  readonly #backoff = new Backoff(REOPEN);
  readonly #emptied: () => void;
  #stream: UpstreamStream | undefined;
  #retry: Timer | undefined;

  constructor(
    upstream: Upstream,
    credentials: Metadata,
    metrics: ProxyMetrics,
    emptied: () => void,
  ) {
    this.#upstream = upstream;
    this.#metadata = [...credentials, ...REQUIRES_LEADER];
    this.#metrics = metrics;
    this.#emptied = emptied;
  }

  addClient(client: KeepAliveClient): void {
    this.#clients.add(client);
  }

  /** @param leases those that the client waits for */
  deleteClient(client: KeepAliveClient, leases: Iterable<bigint>): void {
    if (!this.#clients.delete(client)) return;
    for (const lease of leases) {
      const waiting = this.#sent.get(lease);
      const left = waiting?.filter((one) => one !== client);
      if (left !== undefined) this.#sent.set(lease, left);
    }
    if (this.#clients.size > 0) return;
    this.#retry?.cancel();
    this.#stream?.cancel();
    this.#stream = undefined;
    this.#sent.clear();
    this.#emptied();
  }

  /** Requests that a lease is kept alive, for one client. False if too many wait. */
  request(lease: bigint, client: KeepAliveClient): boolean {
    const waiting = this.#sent.get(lease);
    if (waiting !== undefined) {
      waiting.push(client);
      this.#metrics.keepAlivesCoalesced.add();
      return true;
    }
    if (this.#sent.size >= MAX_WAITING_LEASES) return false;
    this.#sent.set(lease, [client]);
    if (this.#stream !== undefined) this.#send(lease);
    else if (this.#retry === undefined) this.#open();
    return true;
  }

  #send(lease: bigint): void {
    this.#stream?.send(LeaseKeepAliveRequest.encode({ ID: lease }));
  }

  #open(): void {
    this.#retry = undefined;
    if (this.#clients.size === 0 || this.#sent.size === 0) return;
    this.#stream = this.#upstream.stream(path, this.#metadata, {
      message: (bytes) => this.#take(bytes),
      ended: (status) => this.#ended(status),
    });
    for (const lease of this.#sent.keys()) this.#send(lease);
  }

  #take(bytes: Uint8Array): void {
    this.#backoff.reset();
    const lease = LeaseKeepAliveResponse.decode(bytes).ID;
    const waiting = this.#sent.get(lease);
    if (waiting === undefined) return;
    this.#sent.delete(lease);
    for (const client of waiting) client.answered(lease, bytes);
  }

  #ended(status: Status): void {
    this.#stream = undefined;
    const hasNoLeader = status.message.startsWith("etcdserver: no leader");
    const isTransient =
      status.code === GrpcCode.Unavailable ||
      status.code === GrpcCode.OK ||
      status.code === GrpcCode.Canceled ||
      status.code === GrpcCode.Internal;
    for (const client of [...this.#clients])
      if (!isTransient || (hasNoLeader && client.requiresLeader)) client.end(status);
    if (this.#sent.size === 0 || this.#clients.size === 0) return;
    this.#retry = this.#upstream.clock.after(this.#backoff.nextMs(), () => this.#open());
  }
}
