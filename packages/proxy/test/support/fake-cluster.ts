/**
 * A cluster as a proxy sees it: keys with their history, watches, leases, and users by token. Its
 * members share one state.
 */
import {
  ClusterService,
  Event,
  GrpcCode,
  KeyValue,
  KVService,
  LeaseGrantRequest,
  LeaseGrantResponse,
  LeaseKeepAliveRequest,
  LeaseKeepAliveResponse,
  LeaseRevokeResponse,
  LeaseService,
  type Member,
  MemberListResponse,
  mvccpb,
  PutRequest,
  PutResponse,
  RangeRequest,
  RangeResponse,
  toLatin1,
  type WatchCreateRequest,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import {
  type ServiceTable,
  StatusError,
  type StreamCall,
  type StreamHandler,
  type UnaryHandler,
} from "@quorate/rpc";

interface Change {
  readonly revision: number;
  readonly key: string;
  readonly event: Uint8Array;
  readonly pair: Uint8Array;
}

interface LiveWatch {
  readonly call: StreamCall;
  readonly request: WatchCreateRequest;
}

export class FakeCluster {
  readonly history: Change[] = [];
  revision = 1;
  compacted = 0;
  /** Requests by method, as they came. */
  readonly calls: string[] = [];
  readonly watches = new Map<string, LiveWatch>();
  /** Tokens that may not read these keys. */
  readonly forbidden = new Map<string, string>();
  hasLeader = true;
  /** The time to live of the lease; 0 when it is gone. */
  ttl = 10;
  members: readonly Member[] = [];
  /** Keep-alive requests are held back while it is true. */
  holdsLeases = false;
  readonly heldLeases: (() => void)[] = [];
  #streams = 0;

  get services(): ServiceTable {
    const { Range, Put } = KVService.methods;
    const unary = new Map<string, UnaryHandler>([
      [
        Range.path,
        (bytes, context) => {
          this.calls.push("Range");
          const request = RangeRequest.decode(bytes);
          this.#check(context.metadata("token"), toLatin1(request.key));
          return this.#range(request);
        },
      ],
      [
        Put.path,
        (bytes) => {
          this.calls.push("Put");
          const { key, value } = PutRequest.decode(bytes);
          this.put(toLatin1(key), value);
          return PutResponse.encode({ header: this.#header() });
        },
      ],
    ]);
    const { LeaseGrant, LeaseRevoke } = LeaseService.methods;
    unary.set(LeaseGrant.path, (bytes) => {
      this.calls.push("LeaseGrant");
      const { TTL } = LeaseGrantRequest.decode(bytes);
      this.ttl = TTL;
      return LeaseGrantResponse.encode({ header: this.#header(), ID: 77n, TTL });
    });
    unary.set(LeaseRevoke.path, () => {
      this.calls.push("LeaseRevoke");
      return LeaseRevokeResponse.encode({ header: this.#header() });
    });
    unary.set(ClusterService.methods.MemberList.path, () =>
      MemberListResponse.encode({ members: [...this.members] }),
    );
    const stream = new Map<string, StreamHandler>([
      [WatchService.methods.Watch.path, (call) => this.#watch(call)],
      [LeaseService.methods.LeaseKeepAlive.path, (call) => this.#keepAlive(call)],
    ]);
    return { unary, stream };
  }

  put(key: string, value: Uint8Array): void {
    const revision = ++this.revision;
    const pair = KeyValue.encode({
      key: Uint8Array.from(key, (char) => char.charCodeAt(0)),
      value,
      createRevision: revision,
      modRevision: revision,
      version: 1,
    });
    const event = Event.encode({ type: mvccpb.Event_EventType.PUT, kv: pair });
    const change = { revision, key, event, pair };
    this.history.push(change);
    for (const [id, { call, request }] of this.watches)
      if (has(request, key) && request.startRevision <= revision) this.#send(call, id, [change]);
  }

  /** Ends all watch streams with a status. */
  endStreams(code: number, message: string): void {
    for (const call of new Set([...this.watches.values()].map((one) => one.call)))
      call.end({ code, message });
    this.watches.clear();
  }

  #header() {
    return { clusterId: 1n, memberId: 2n, revision: this.revision, raftTerm: 3 };
  }

  #check(token: string | undefined, key: string): void {
    const prefix = this.forbidden.get(token ?? "");
    if (prefix !== undefined && key.startsWith(prefix))
      throw new StatusError(GrpcCode.PermissionDenied, "etcdserver: permission denied");
  }

  #range(request: RangeRequest): Uint8Array {
    const newest = new Map<string, Uint8Array>();
    for (const { key, pair } of this.history)
      if (has({ key: request.key, rangeEnd: request.rangeEnd }, key)) newest.set(key, pair);
    const kvs = request.countOnly ? [] : [...newest.values()];
    return RangeResponse.encode({ header: this.#header(), kvs, count: newest.size });
  }

  #watch(call: StreamCall): ReturnType<StreamHandler> {
    const stream = ++this.#streams;
    const gone = () => {
      for (const [id, one] of this.watches) if (one.call === call) this.watches.delete(id);
    };
    if (!this.hasLeader) throw new StatusError(GrpcCode.Unavailable, "etcdserver: no leader");
    return {
      message: (bytes) => {
        const union = WatchRequest.decode(bytes).requestUnion;
        if (union?.case === "createRequest") this.#create(call, stream, union.value);
        else if (union?.case === "cancelRequest") {
          this.calls.push("CancelWatch");
          this.watches.delete(`${stream}/${union.value.watchId}`);
          this.#answer(call, { watchId: union.value.watchId, canceled: true });
        } else {
          this.calls.push("Progress");
          this.#answer(call, { watchId: -1 });
        }
      },
      cancelled: gone,
      halfClosed: gone,
    };
  }

  #create(call: StreamCall, stream: number, request: WatchCreateRequest): void {
    this.calls.push("CreateWatch");
    const { watchId, startRevision } = request;
    try {
      this.#check(call.context.metadata("token"), toLatin1(request.key));
    } catch (error) {
      const cancelReason = (error as Error).message;
      this.#answer(call, { watchId: -1, created: true, canceled: true, cancelReason });
      return;
    }
    this.#answer(call, { watchId, created: true });
    if (startRevision > 0 && startRevision < this.compacted) {
      this.#answer(call, { watchId, canceled: true, compactRevision: this.compacted });
      return;
    }
    const start = startRevision === 0 ? this.revision + 1 : startRevision;
    const id = `${stream}/${watchId}`;
    this.watches.set(id, { call, request: { ...request, startRevision: start } });
    const old = this.history.filter(({ revision, key }) => revision >= start && has(request, key));
    if (old.length > 0) this.#send(call, id, old);
  }

  #send(call: StreamCall, id: string, changes: readonly Change[]): void {
    const watchId = Number(id.split("/")[1]);
    this.#answer(call, { watchId, events: changes.map(({ event }) => event) });
  }

  #answer(call: StreamCall, response: Partial<WatchResponse>): void {
    call.send(WatchResponse.encode({ header: this.#header(), ...response }));
  }

  #keepAlive(call: StreamCall): ReturnType<StreamHandler> {
    return {
      message: (bytes) => {
        this.calls.push("KeepAlive");
        const { ID } = LeaseKeepAliveRequest.decode(bytes);
        const answer = () => {
          call.send(LeaseKeepAliveResponse.encode({ header: this.#header(), ID, TTL: this.ttl }));
        };
        if (this.holdsLeases) this.heldLeases.push(answer);
        else answer();
      },
      halfClosed: () => call.end(),
    };
  }
}

function has(
  { key, rangeEnd }: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array },
  one: string,
): boolean {
  const [from, to] = [toLatin1(key), toLatin1(rangeEnd)];
  return to === "" ? one === from : one >= from && (to === "\0" || one < to);
}
