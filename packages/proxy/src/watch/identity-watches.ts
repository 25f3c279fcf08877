/**
 * The watches of one identity: they share the stream upstream and what the cluster returns. Those
 * of another identity never do, because it may read other keys.
 */
import type { Timer } from "@quorate/host";
import {
  defined,
  GrpcCode,
  KVService,
  RangeRequest,
  RangeResponse,
  type ResponseHeader,
  toLatin1,
  type WatchCreateRequest,
} from "@quorate/proto";
import type { Status, StatusError } from "@quorate/rpc";
import type { Caller } from "../upstream/caller.ts";
import type { ProxyMetrics } from "../upstream/metrics.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { Broadcast } from "./broadcast.ts";
import type { PlainKeyValue } from "./event-batch.ts";
import type { Receiver } from "./receiver.ts";
import { type GroupOwner, groupKey, WatchGroup } from "./watch-group.ts";
import { WatchLink, type WatchLinkOwner } from "./watch-link.ts";

const RANGE = { path: KVService.methods.Range.path, isRepeatable: true };
/** Between two attempts to look at a range while no member can be reached. */
const CHECK_RETRY_MS = 250;

/** A client's stream, as the watches of its identity see it. */
export interface IdentityClient {
  readonly requiresLeader: boolean;
  /** Ends the stream. */
  end(status: Status): void;
  /** Its watches have received everything up to the header's revision. */
  progressed(header: ResponseHeader): void;
}

/** Called with the outcome of a check: the header of the read, or why it is refused. */
export type Checked = (
  outcome: { readonly header: ResponseHeader } | { readonly refusal: string },
) => void;

interface Check {
  /** Those that wait for the read that is on its way, and for the one after it. */
  sent: Checked[];
  next: Checked[];
  retry: Timer | undefined;
}

export interface IdentityDeps {
  readonly upstream: Upstream;
  readonly metrics: ProxyMetrics;
  readonly plain: PlainKeyValue | undefined;
  /** Nothing is left of the identity. */
  emptied(): void;
}

export class IdentityWatches implements GroupOwner, WatchLinkOwner {
  readonly #caller: Caller;
  readonly #deps: IdentityDeps;
  readonly #link: WatchLink;
  readonly #groups = new Map<string, WatchGroup>();
  readonly #clients = new Set<IdentityClient>();
  readonly #checks = new Map<string, Check>();
  /** Clients whose request for progress has gone upstream, and those of later requests. */
  #progressSent = new Set<IdentityClient>();
  #progressNext = new Set<IdentityClient>();
  #lastId = 0;

  constructor(caller: Caller, deps: IdentityDeps) {
    this.#caller = caller;
    this.#deps = deps;
    this.#link = new WatchLink(deps.upstream, caller.credentials, this);
  }

  get metrics(): ProxyMetrics {
    return this.#deps.metrics;
  }

  get plain(): PlainKeyValue | undefined {
    return this.#deps.plain;
  }

  /** Number of watches upstream. */
  get broadcasts(): number {
    return this.#link.size;
  }

  /** Number of watches that share another's. */
  get coalesced(): number {
    return this.#link.coalesced;
  }

  /** Whether the last member that was tried had no leader. */
  get hasNoLeader(): boolean {
    return this.#link.hasNoLeader;
  }

  addClient(client: IdentityClient): void {
    this.#clients.add(client);
  }

  deleteClient(client: IdentityClient): void {
    this.#clients.delete(client);
    this.#progressSent.delete(client);
    this.#progressNext.delete(client);
    if (this.#clients.size > 0) return;
    this.#link.close();
    for (const check of this.#checks.values()) check.retry?.cancel();
    this.#checks.clear();
    this.#deps.emptied();
  }

  /**
   * Reads a range for the right to watch it, and for the revision of now (etcd:
   * checkPermissionForWatch). Requests that come while a read is on its way share the next one, so
   * that each sees what was written before it.
   */
  check(request: WatchCreateRequest, checked: Checked): void {
    const { key, rangeEnd } = request;
    const name = `${key.length} ${toLatin1(key)}${toLatin1(rangeEnd)}`;
    const check = this.#checks.get(name);
    if (check !== undefined) {
      check.next.push(checked);
      return;
    }
    const made: Check = { sent: [checked], next: [], retry: undefined };
    this.#checks.set(name, made);
    this.#sendCheck(name, made, request);
  }

  /** Lets a receiver listen to a broadcast. */
  add(receiver: Receiver, start: number): void {
    const key = groupKey(receiver.request);
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new WatchGroup(key, this);
      this.#groups.set(key, group);
    }
    group.add(receiver, start);
  }

  delete(receiver: Receiver): void {
    this.#groups.get(groupKey(receiver.request))?.delete(receiver);
  }

  requestProgress(client: IdentityClient): void {
    this.#progressNext.add(client);
    if (this.#progressSent.size === 0) this.#sendProgress();
  }

  nextId(): number {
    return ++this.#lastId;
  }

  begin(broadcast: Broadcast): void {
    this.#link.begin(broadcast);
  }

  end(broadcast: Broadcast, isCanceled: boolean): void {
    this.#link.end(broadcast, isCanceled);
  }

  emptied(group: WatchGroup): void {
    if (this.#groups.get(group.key) === group) this.#groups.delete(group.key);
  }

  progressed(header: ResponseHeader): void {
    const clients = this.#progressSent;
    this.#progressSent = new Set();
    for (const client of clients) client.progressed(header);
    this.#sendProgress();
  }

  refused(status: Status): void {
    for (const client of [...this.#clients]) client.end(status);
  }

  leaderLost(): void {
    const status = { code: GrpcCode.Unavailable, message: "etcdserver: no leader" };
    for (const client of [...this.#clients]) if (client.requiresLeader) client.end(status);
  }

  #sendProgress(): void {
    if (this.#progressNext.size === 0) return;
    this.#progressSent = this.#progressNext;
    this.#progressNext = new Set();
    this.#link.requestProgress();
  }

  #sendCheck(name: string, check: Check, request: WatchCreateRequest): void {
    const { key, rangeEnd } = request;
    const read = RangeRequest.encode({
      key,
      rangeEnd,
      serializable: true,
      countOnly: true,
      limit: 1,
    });
    this.#deps.upstream.call(RANGE, read, { metadata: this.#caller.credentials }).then(
      (bytes) => {
        const header = defined(RangeResponse.decode(bytes).header, "the header");
        this.#checked(name, check, request, { header });
      },
      (error: StatusError) => this.#checkFailed(name, check, request, error),
    );
  }

  #checkFailed(name: string, check: Check, request: WatchCreateRequest, error: StatusError): void {
    if (this.#checks.get(name) !== check) return;
    if (error.code === GrpcCode.Unavailable && !this.#deps.upstream.isClosed) {
      check.retry = this.#deps.upstream.clock.after(CHECK_RETRY_MS, () =>
        this.#sendCheck(name, check, request),
      );
      return;
    }
    this.#checked(name, check, request, { refusal: error.message });
  }

  #checked(
    name: string,
    check: Check,
    request: WatchCreateRequest,
    outcome: Parameters<Checked>[0],
  ): void {
    if (this.#checks.get(name) !== check) return;
    const waiting = check.sent;
    check.sent = check.next;
    check.next = [];
    if (check.sent.length === 0) this.#checks.delete(name);
    for (const checked of waiting) checked(outcome);
    if (check.sent.length > 0 && this.#checks.get(name) === check)
      this.#sendCheck(name, check, request);
  }
}
