/** One watch stream of a client: its requests, in their order, and its watches. */

import { type ClientBudget, WATCH_BYTES, WATCH_KEY_FACTOR } from "@quorate/member";
import {
  errorOf,
  GrpcCode,
  type ResponseHeader,
  WatchCreateRequest,
  type WatchId,
  WatchRequest,
  WireError,
} from "@quorate/proto";
import type { MessageBytes, Status, StreamCall, StreamListener } from "@quorate/rpc";
import { contains } from "../kv/range-cache.ts";
import { rangeOf } from "../kv/written-keys.ts";
import type { Namespace } from "../namespace/namespace.ts";
import type { IdentityClient, IdentityWatches } from "./identity-watches.ts";
import { Receiver, type ReceiverStream } from "./receiver.ts";
import {
  canceledResponse,
  createdResponse,
  NO_WATCH_ID,
  progressResponse,
  refusedResponse,
} from "./watch-answers.ts";

/** Bytes that may wait for one client; beyond, its watches leave those that they share. */
export const MAX_STREAM_BYTES = 16 * 1024 * 1024;
/** Requests of one stream that wait for a check; beyond, no more are read. */
const MAX_WAITING_REQUESTS = 1024;
const ONE_ZERO = new Uint8Array(1);

/** A request in its place: a creation waits for its check, others for the creations before them. */
interface Waiting {
  readonly request: NonNullable<WatchRequest["requestUnion"]>;
  readonly id: WatchId;
  outcome: { readonly header: ResponseHeader } | { readonly refusal: string } | undefined;
}

export interface WatchClientDeps {
  readonly identity: IdentityWatches;
  readonly namespace: Namespace | undefined;
  /** What watches cost, by client. */
  readonly budget: ClientBudget;
  readonly requiresLeader: boolean;
  /** The number of watches has changed. */
  counted(change: number): void;
}

export class WatchClient implements StreamListener, ReceiverStream, IdentityClient {
  readonly requiresLeader: boolean;
  readonly #call: StreamCall;
  readonly #deps: WatchClientDeps;
  readonly #address: string;
  readonly #receivers = new Map<WatchId, Receiver>();
  /** Ids of watches that are being created. */
  readonly #reserved = new Set<WatchId>();
  readonly #waiting: Waiting[] = [];
  /** Watches that wait until the client has read. */
  readonly #behind = new Set<Receiver>();
  readonly #costs = new Map<WatchId, number>();
  #header: ResponseHeader | undefined;
  #nextId = 0;
  #isFull = false;
  #isOver = false;

  constructor(call: StreamCall, deps: WatchClientDeps) {
    this.#call = call;
    this.#deps = deps;
    this.requiresLeader = deps.requiresLeader;
    this.#address = call.context.peerAddress.replace(/:\d+$/, "");
    deps.identity.addClient(this);
  }

  // --- The client ---

  message(bytes: Uint8Array): void {
    let request: WatchRequest["requestUnion"];
    try {
      request = WatchRequest.decode(bytes).requestUnion;
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      const message = `grpc: error unmarshalling request: ${error.message}`;
      this.end({ code: GrpcCode.Internal, message });
      return;
    }
    // A kind of request that is not known is passed over, as in etcd.
    if (request === undefined) return;
    if (request.case === "createRequest") this.#create(request.value);
    else this.#waiting.push({ request, id: 0, outcome: { refusal: "" } });
    this.#goOn();
    if (this.#waiting.length >= MAX_WAITING_REQUESTS) this.#call.pause();
  }

  drained(): void {
    this.#isFull = false;
    const behind = [...this.#behind];
    this.#behind.clear();
    for (const receiver of behind) {
      if (this.#isOver) return;
      this.#deps.identity.add(receiver, receiver.nextRevision);
    }
    this.#resume();
  }

  cancelled(): void {
    this.#close();
  }

  // --- The watches ---

  offer(message: MessageBytes): boolean {
    if (this.#isOver || this.#isFull) return false;
    this.force(message);
    return true;
  }

  force(message: MessageBytes): void {
    if (this.#isOver || this.#call.send(message)) return;
    if (this.#call.bufferedBytes <= MAX_STREAM_BYTES || this.#isFull) return;
    this.#isFull = true;
    this.#call.pause();
  }

  fellBehind(receiver: Receiver): void {
    if (!this.#isOver) this.#behind.add(receiver);
  }

  ended(receiver: Receiver, message: MessageBytes): void {
    if (this.#receivers.get(receiver.id) !== receiver) return;
    this.#forget(receiver);
    this.force(message);
  }

  progressed(header: ResponseHeader): void {
    if (this.#isOver) return;
    // A watch that has fallen behind has not received everything.
    if (this.#behind.size > 0 || this.#isFull) this.#deps.identity.requestProgress(this);
    else this.force(progressResponse(header, NO_WATCH_ID));
  }

  end(status: Status): void {
    if (this.#isOver) return;
    this.#close();
    this.#call.end(status);
  }

  #create(request: WatchCreateRequest): void {
    const key = request.key.length === 0 ? ONE_ZERO : request.key;
    const id = this.#takeId(request.watchId);
    const refusal = this.#refusal({ ...request, key }, id);
    const value = WatchCreateRequest.create({ ...request, ...this.#inNamespace(key, request) });
    const waiting: Waiting = {
      request: { case: "createRequest", value },
      id: id ?? NO_WATCH_ID,
      outcome: refusal === undefined ? undefined : { refusal },
    };
    this.#waiting.push(waiting);
    if (refusal !== undefined) {
      if (id !== undefined) this.#reserved.delete(id);
      return;
    }
    this.#deps.identity.check(value, (outcome) => {
      waiting.outcome = outcome;
      this.#goOn();
      this.#resume();
    });
  }

  /** The id of a new watch; undefined if the client's own is in use. */
  #takeId(wanted: WatchId): WatchId | undefined {
    const isTaken = (id: WatchId) => this.#receivers.has(id) || this.#reserved.has(id);
    if (wanted !== 0 && isTaken(wanted)) return undefined;
    while (wanted === 0 && isTaken(this.#nextId)) this.#nextId++;
    const id = wanted === 0 ? this.#nextId++ : wanted;
    this.#reserved.add(id);
    return id;
  }

  /** Why a watch is not made; takes what it costs. */
  #refusal(request: WatchCreateRequest, id: WatchId | undefined): string | undefined {
    if (request.startRevision < 0) return errorOf("Compacted").message;
    const { key, rangeEnd } = request;
    const range = rangeOf(key, rangeEnd);
    if (!contains(range, range.key)) return "mvcc: watcher range is empty";
    if (id === undefined) return "mvcc: duplicate watch ID provided on the WatchStream";
    const costBytes = WATCH_BYTES + WATCH_KEY_FACTOR * (key.length + rangeEnd.length);
    const { budget } = this.#deps;
    if (!budget.take(this.#address, costBytes))
      return (
        `etcdserver: too many watches: those of this client hold ${budget.usedBy(this.#address)} ` +
        `bytes, those of all ${budget.usedBytes}`
      );
    this.#costs.set(id, costBytes);
    return undefined;
  }

  #inNamespace(key: Uint8Array, { rangeEnd }: WatchCreateRequest) {
    return this.#deps.namespace?.range(key, rangeEnd) ?? { key, rangeEnd };
  }

  /** Processes the requests whose turn has come. */
  #goOn(): void {
    while (!this.#isOver) {
      const next = this.#waiting[0];
      if (next?.outcome === undefined) return;
      this.#waiting.shift();
      const { request, outcome } = next;
      if (request.case === "createRequest") this.#created(request.value, next.id, outcome);
      else if (request.case === "cancelRequest") this.#cancel(request.value.watchId);
      else this.#deps.identity.requestProgress(this);
    }
  }

  #created(
    request: WatchCreateRequest,
    id: WatchId,
    outcome: NonNullable<Waiting["outcome"]>,
  ): void {
    this.#reserved.delete(id);
    if ("refusal" in outcome) {
      this.#giveBack(id);
      this.force(refusedResponse(outcome.refusal));
      return;
    }
    const { identity } = this.#deps;
    if (this.requiresLeader && identity.hasNoLeader) {
      this.end({ code: GrpcCode.Unavailable, message: "etcdserver: no leader" });
      return;
    }
    const { header } = outcome;
    this.#header = header;
    const isFromNow = request.startRevision === 0;
    const next = isFromNow ? header.revision + 1 : request.startRevision;
    const options = {
      id,
      wantsProgress: request.progressNotify,
      takesFragments: request.fragment,
    };
    const receiver = new Receiver(this, options, request, next);
    this.#receivers.set(id, receiver);
    this.#deps.counted(1);
    this.force(createdResponse(header, id));
    if (!this.#isOver) identity.add(receiver, isFromNow ? Math.max(1, header.revision) : next);
  }

  #cancel(id: WatchId): void {
    const receiver = this.#receivers.get(id);
    if (receiver === undefined) return;
    this.#deps.identity.delete(receiver);
    this.#forget(receiver);
    const from = { header: this.#header, compactRevision: 0, cancelReason: "" };
    this.force(canceledResponse(from, id));
  }

  #forget(receiver: Receiver): void {
    this.#receivers.delete(receiver.id);
    this.#behind.delete(receiver);
    this.#giveBack(receiver.id);
    this.#deps.counted(-1);
  }

  #giveBack(id: WatchId): void {
    const costBytes = this.#costs.get(id);
    if (costBytes === undefined) return;
    this.#costs.delete(id);
    this.#deps.budget.give(this.#address, costBytes);
  }

  #resume(): void {
    if (!this.#isOver && !this.#isFull && this.#waiting.length < MAX_WAITING_REQUESTS)
      this.#call.resume();
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { identity } = this.#deps;
    for (const receiver of this.#receivers.values()) identity.delete(receiver);
    this.#deps.counted(-this.#receivers.size);
    this.#receivers.clear();
    this.#behind.clear();
    for (const id of [...this.#costs.keys()]) this.#giveBack(id);
    identity.deleteClient(this);
  }
}
