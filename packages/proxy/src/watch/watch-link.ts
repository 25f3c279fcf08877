/**
 * The watch stream of one identity upstream: all its broadcasts, opened again at the next member
 * when the stream breaks. Each watch is created again at the revision that it has not received, so
 * no event is lost or sent twice.
 */
import { Backoff, type Timer } from "@quorate/host";
import {
  GrpcCode,
  type ResponseHeader,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { Status } from "@quorate/rpc";
import { type Metadata, REQUIRES_LEADER } from "../upstream/caller.ts";
import { REOPEN, type Upstream } from "../upstream/upstream.ts";
import type { UpstreamStream } from "../upstream/upstream-stream.ts";
import type { Broadcast } from "./broadcast.ts";
import { NO_WATCH_ID } from "./watch-answers.ts";

const { path } = WatchService.methods.Watch;
/** A member that is behind with a watch does not respond to a request for progress. */
const PROGRESS_RETRY_MS = 500;

export interface WatchLinkOwner {
  /** All watches have received everything up to the header's revision. */
  progressed(header: ResponseHeader): void;
  /** The cluster refuses the stream for good: it is not opened again by itself. */
  refused(status: Status): void;
  /** The member has lost its leader. The stream is opened again elsewhere. */
  leaderLost(): void;
}

export class WatchLink {
  readonly #upstream: Upstream;
  readonly #metadata: Metadata;
  readonly #owner: WatchLinkOwner;
  readonly #broadcasts = new Map<number, Broadcast>();
  readonly #backoff = new Backoff(REOPEN);
  /** Ids of creations that the member has not confirmed, in order: a refusal has no id. */
  #creating: number[] = [];
  #stream: UpstreamStream | undefined;
  #retry: Timer | undefined;
  #progress: Timer | undefined;
  #wantsProgress = false;
  #isClosed = false;
  /** The last member had no leader. */
  hasNoLeader = false;

  constructor(upstream: Upstream, credentials: Metadata, owner: WatchLinkOwner) {
    this.#upstream = upstream;
    // A member that is cut off from the cluster must not hold watches.
    this.#metadata = [...credentials, ...REQUIRES_LEADER];
    this.#owner = owner;
  }

  /** Number of watches upstream. */
  get size(): number {
    return this.#broadcasts.size;
  }

  /** Number of watches of clients beyond the first of each watch upstream. */
  get coalesced(): number {
    let count = 0;
    for (const { receivers } of this.#broadcasts.values()) count += Math.max(0, receivers.size - 1);
    return count;
  }

  begin(broadcast: Broadcast): void {
    this.#broadcasts.set(broadcast.id, broadcast);
    if (this.#stream !== undefined) this.#create(broadcast);
    else if (this.#retry === undefined) this.#open();
  }

  end(broadcast: Broadcast, isCanceled: boolean): void {
    if (!this.#broadcasts.delete(broadcast.id) || isCanceled) return;
    if (this.#broadcasts.size === 0) this.#idle();
    else
      this.#stream?.send(
        WatchRequest.encode({
          requestUnion: { case: "cancelRequest", value: { watchId: broadcast.id } },
        }),
      );
  }

  /** Requests the revision that all watches have received; the owner's `progressed` is called. */
  requestProgress(): void {
    this.#wantsProgress = true;
    this.#sendProgress();
  }

  close(): void {
    this.#isClosed = true;
    this.#broadcasts.clear();
    this.#idle();
  }

  #idle(): void {
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#progress?.cancel();
    this.#progress = undefined;
    this.#stream?.cancel();
    this.#stream = undefined;
    this.#creating = [];
  }

  #open(): void {
    this.#retry = undefined;
    if (this.#isClosed || this.#broadcasts.size === 0) return;
    this.#creating = [];
    this.#stream = this.#upstream.stream(path, this.#metadata, {
      message: (bytes) => this.#take(WatchResponse.decode(bytes)),
      ended: (status) => this.#ended(status),
    });
    for (const broadcast of this.#broadcasts.values()) this.#create(broadcast);
    if (this.#wantsProgress) this.#sendProgress();
  }

  #create({ id, request, nextRevision }: Broadcast): void {
    this.#creating.push(id);
    const value = {
      ...request,
      watchId: id,
      startRevision: nextRevision,
      progressNotify: true,
      fragment: false,
    };
    this.#stream?.send(WatchRequest.encode({ requestUnion: { case: "createRequest", value } }));
  }

  #sendProgress(): void {
    this.#progress?.cancel();
    this.#progress = undefined;
    if (this.#stream === undefined || !this.#wantsProgress) return;
    this.#stream.send(
      WatchRequest.encode({ requestUnion: { case: "progressRequest", value: {} } }),
    );
    this.#progress = this.#upstream.clock.after(PROGRESS_RETRY_MS, () => this.#sendProgress());
  }

  #take(response: WatchResponse): void {
    // A number: ids upstream are our own.
    let id = Number(response.watchId);
    if (response.created) {
      this.hasNoLeader = false;
      this.#backoff.reset();
      if (id === NO_WATCH_ID) id = this.#creating.shift() ?? NO_WATCH_ID;
      else this.#creating = this.#creating.filter((one) => one !== id);
    } else if (id === NO_WATCH_ID) {
      if (response.header === undefined) return;
      this.#wantsProgress = false;
      this.#progress?.cancel();
      this.#progress = undefined;
      this.#owner.progressed(response.header);
      return;
    }
    this.#broadcasts.get(id)?.take(response);
  }

  #ended(status: Status): void {
    this.#stream = undefined;
    this.#creating = [];
    for (const broadcast of this.#broadcasts.values()) broadcast.isLive = false;
    if (this.#isClosed) return;
    if (status.message.startsWith("etcdserver: no leader")) {
      this.hasNoLeader = true;
      this.#owner.leaderLost();
    } else if (!isTransient(status)) {
      this.#owner.refused(status);
    }
    if (this.#broadcasts.size === 0) return;
    const pauseMs = this.#backoff.nextMs();
    this.#retry = this.#upstream.clock.after(pauseMs, () => this.#open());
  }
}

/** Whether another attempt may succeed (etcd: client/v3, isHaltErr). */
function isTransient({ code }: Status): boolean {
  return (
    code === GrpcCode.OK ||
    code === GrpcCode.Unavailable ||
    code === GrpcCode.Internal ||
    code === GrpcCode.Canceled ||
    code === GrpcCode.ResourceExhausted
  );
}
