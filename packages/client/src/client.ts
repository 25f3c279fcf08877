/**
 * The client's calls.
 *
 *   const client = connect({ endpoints: ["http://127.0.0.1:2379"] });
 *   await client.put("greeting", "hello");
 *   const { kvs } = await client.get("greet", { prefix: true });
 *   const { succeeded } = await client.txn({ compare: [compareVersion("lock", "=", 0)], success:
 *   [opPut("lock", "mine")] });
 *   client.close();
 *
 * Every call takes CallOptions, with its own options or after its parameters, and rejects with
 * ClientError: `grpcCode` and `message` are the server's, `code` is a name for a switch.
 */
import {
  check,
  checkOptions,
  FLAG,
  INTEGER,
  MEMBER_ID,
  OBJECT,
  oneOf,
  TEXT,
  TEXTS,
} from "@quorate/host";
import {
  type AlarmMember,
  AlarmRequest,
  AlarmRequest_AlarmAction,
  type AlarmResponse,
  AuthenticateRequest,
  AuthenticateResponse,
  AuthService,
  ClusterService,
  CompactionRequest,
  type CompactionResponse,
  DefragmentRequest,
  type DefragmentResponse,
  DowngradeRequest,
  DowngradeRequest_DowngradeAction,
  type DowngradeResponse,
  defined,
  HashKVRequest,
  type HashKVResponse,
  HashRequest,
  type HashResponse,
  type KeyValue,
  KVService,
  MaintenanceService,
  MemberAddRequest,
  type MemberAddResponse,
  MemberListRequest,
  type MemberListResponse,
  MemberPromoteRequest,
  type MemberPromoteResponse,
  MemberRemoveRequest,
  type MemberRemoveResponse,
  MemberUpdateRequest,
  type MemberUpdateResponse,
  MoveLeaderRequest,
  type MoveLeaderResponse,
  type RequestOp,
  SnapshotRequest,
  type SnapshotResponse,
  StatusRequest,
  type StatusResponse,
  WatchService,
} from "@quorate/proto";
import { Auth } from "./auth.ts";
import {
  CALL_SHAPE,
  type CallOptions,
  splitOptions,
  WAIT_SHAPE,
  type WaitOptions,
} from "./call-options.ts";
import { type StreamOptions, type UnaryMethod, unlessAborted } from "./caller.ts";
import type { ValueCodec } from "./codec.ts";
import { abortError, ClientError } from "./errors.ts";
import type { CallPlan, Failover } from "./failover.ts";
import { type Followed, type FollowOptions, follow } from "./follow.ts";
import type { KvCaller } from "./kv-caller.ts";
import { Leases } from "./leases.ts";
import type { ClientTimer, Link } from "./link.ts";
import { Namespace } from "./namespace.ts";
import { getEach, type StreamedGetOptions } from "./range-stream.ts";
import {
  type Bytes,
  DELETE_SHAPE,
  type DeleteOptions,
  deleteRequest,
  GET_SHAPE,
  type GetOptions,
  getRequest,
  PUT_SHAPE,
  type PutOptions,
  putRequest,
  readsOnly,
  type TxnParts,
  txnRequest,
} from "./requests.ts";
import {
  type DeleteResult,
  deleteResult,
  type GetResult,
  getResult,
  type PutResult,
  putResult,
  type TxnResultOf,
  txnResult,
  withJson,
} from "./responses.ts";
import { isStaleToken } from "./resume.ts";
import { Session, type SessionOptions } from "./session.ts";
import { ClientStream, type StreamMethod } from "./stream.ts";
import { type CallTrace, type Tracer, unobserved } from "./tracing.ts";
import { runTransaction, type Transaction, type TransactionOptions } from "./transaction.ts";
import { Wait } from "./wait.ts";
import type { Watch, WatchOptions } from "./watch.ts";
import { newWatch } from "./watch-run.ts";
import { WatchStreams } from "./watch-streams.ts";

const { MemberAdd, MemberList, MemberPromote, MemberRemove, MemberUpdate } = ClusterService.methods;
const { Alarm, Defragment, Downgrade, Hash, HashKV, MoveLeader, Snapshot, Status } =
  MaintenanceService.methods;

/** A user, whose password is read at each login (it may be a getter), or a token. */
export type Credentials =
  | { readonly name: string; readonly password: string }
  | { readonly token: string };

const downgradeActions = {
  validate: DowngradeRequest_DowngradeAction.VALIDATE,
  enable: DowngradeRequest_DowngradeAction.ENABLE,
  cancel: DowngradeRequest_DowngradeAction.CANCEL,
};

const GET_CALL = { ...GET_SHAPE, ...CALL_SHAPE };
const PUT_CALL = { ...PUT_SHAPE, ...CALL_SHAPE };
const DELETE_CALL = { ...DELETE_SHAPE, ...CALL_SHAPE };
const COMPACT_CALL = { physical: FLAG, ...CALL_SHAPE };
const LIST_CALL = { linearizable: FLAG, ...CALL_SHAPE };
const ADD_CALL = { isLearner: FLAG, ...CALL_SHAPE };
const SESSION_CALL = { ttlSeconds: INTEGER, ...CALL_SHAPE };
const STREAM_SHAPE = { requireLeader: FLAG, renewToken: FLAG, ...WAIT_SHAPE };

/** Opens a link to any endpoint. */
export type OpenLink = (endpoint: string) => Link;

/** A client of one cluster, made by connect(). */
export class Client implements KvCaller, AsyncDisposable {
  /** Calls about leases. */
  readonly leases: Leases;
  /** Calls about users and roles. */
  readonly auth: Auth;
  readonly timer: ClientTimer;
  readonly #watches: WatchStreams;
  readonly #failover: Failover;
  readonly #openLink: OpenLink;
  readonly #tracer: Tracer;
  readonly #user: { readonly name: string; readonly password: string } | undefined;
  #token: string | undefined;
  #authenticating: Promise<void> | undefined;

  /** Made by connect(). */
  constructor(
    failover: Failover,
    openLink: OpenLink,
    credentials: Credentials | undefined,
    timer: ClientTimer,
    tracer: Tracer = unobserved,
  ) {
    this.#tracer = tracer;
    this.#failover = failover;
    this.#openLink = openLink;
    this.timer = timer;
    this.leases = new Leases(this);
    this.auth = new Auth(this);
    this.#watches = new WatchStreams(this);
    if (credentials !== undefined && "token" in credentials) this.#token = credentials.token;
    // As in clientv3: a name without a password, or a password without a name, is no credential.
    else if (credentials?.name !== "" && credentials?.password !== "") this.#user = credentials;
  }

  /** Timeout of a call with all its retries. */
  get timeoutMs(): number {
    return this.#failover.timeoutMs;
  }

  /**
   * Gets a token now, where a name and a password were given; without it, the first call does. A
   * server without users needs none. Rejects with ClientError.
   */
  async login(options: WaitOptions = {}): Promise<void> {
    if (this.#user === undefined || this.#token !== undefined) return;
    // Other calls wait for the same token: this one alone gives up.
    using wait = new Wait(this.timer, options);
    try {
      await unlessAborted(this.#authenticate(), wait.signal);
    } catch (error) {
      if (!wait.signal.aborted) throw error;
      throw abortError(wait.signal, { method: AuthService.methods.Authenticate.path });
    }
  }

  /** Watches a key or a range; starts when iterated. */
  watch(key: Bytes, options: WatchOptions = {}): Watch {
    return newWatch(this.#watches, key, options);
  }

  /** Opens a session: a lease that is kept alive; default 60 seconds. */
  async session(options: SessionOptions = {}): Promise<Session> {
    const [{ ttlSeconds }, call] = splitOptions("session", options, SESSION_CALL);
    return Session.open(this.leases, ttlSeconds ?? 60, call);
  }

  /**
   * Checks whether the cluster can be downgraded to a version, starts the downgrade, or cancels it
   * (with an empty version).
   */
  async downgrade(
    action: "validate" | "enable" | "cancel",
    version: string,
    options?: CallOptions,
  ): Promise<DowngradeResponse> {
    check("downgrade", "action", action, oneOf(Object.keys(downgradeActions)));
    check("downgrade", "version", version, TEXT);
    const request = DowngradeRequest.create({ action: downgradeActions[action], version });
    return this.call(Downgrade, request, action === "validate", options);
  }

  /** The key, or the keys of a range, with their values. */
  async get(key: Bytes, options: GetOptions & CallOptions = {}): Promise<GetResult> {
    const [own, call] = splitOptions("get", options, GET_CALL);
    return getResult(await this.#send(KVService.methods.Range, getRequest(key, own), true, call));
  }

  async put(key: Bytes, value: Bytes, options: PutOptions & CallOptions = {}): Promise<PutResult> {
    const [own, call] = splitOptions("put", options, PUT_CALL);
    const request = putRequest(key, value, own);
    return putResult(await this.#send(KVService.methods.Put, request, false, call));
  }

  /** Deletes the key or the keys of a range; `deleted` is their number. */
  async delete(key: Bytes, options: DeleteOptions & CallOptions = {}): Promise<DeleteResult> {
    const [own, call] = splitOptions("delete", options, DELETE_CALL);
    const request = deleteRequest(key, own);
    return deleteResult(await this.#send(KVService.methods.DeleteRange, request, false, call));
  }

  /**
   * Runs `success` if all comparisons hold, else `failure`; all at one revision. The results have
   * the types of the operations.
   */
  async txn<
    const Success extends readonly RequestOp[] = readonly [],
    const Failure extends readonly RequestOp[] = readonly [],
  >(
    parts: TxnParts<Success, Failure>,
    options?: CallOptions,
  ): Promise<TxnResultOf<Success, Failure>> {
    const request = txnRequest(parts);
    if (options !== undefined) checkOptions("txn", options, CALL_SHAPE);
    const { Txn } = KVService.methods;
    const response = await this.#send(Txn, request, readsOnly(request), options ?? {});
    return txnResult(response) as TxnResultOf<Success, Failure>;
  }

  /**
   * Runs a function as one transaction: what it reads is of one revision, and what it writes is
   * made at once, and only if nothing that it read or writes has changed; else it runs again.
   * Rejects with ConflictError after `maxAttempts` (20), with ClientError, and with what the
   * function throws, which makes nothing. A transaction of unknown outcome is not made again.
   */
  transaction<T>(
    body: (transaction: Transaction) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    return runTransaction(this, body, options);
  }

  /** The keys below a prefix, with values of a codec: text, bytes, json(), json(schema). */
  namespace<Out, In = Out>(prefix: string, codec: ValueCodec<Out, In>): Namespace<Out, In> {
    return new Namespace(this, prefix, codec);
  }

  /** The records of a range, however many, one by one and of one revision. As getStream(). */
  getEach(key: Bytes, options: StreamedGetOptions = {}): AsyncGenerator<KeyValue, undefined> {
    return getEach(this, key, options);
  }

  /** What a range holds and then every change of it, also over compactions. As follow(). */
  follow(key: Bytes, options: FollowOptions = {}): AsyncGenerator<Followed, undefined> {
    return follow(this, key, options);
  }

  /**
   * Compacts the history before `revision`. With `physical`, responds only once the store has
   * removed it.
   */
  async compact(
    revision: number,
    options: { physical?: boolean } & CallOptions = {},
  ): Promise<CompactionResponse> {
    check("compact", "revision", revision, INTEGER);
    const [{ physical = false }, call] = splitOptions("compact", options, COMPACT_CALL);
    const request = CompactionRequest.create({ revision, physical });
    return this.#answer(KVService.methods.Compact, request, false, call);
  }

  /** The members of the cluster; with `linearizable: false`, as one member knows them. */
  async memberList(
    options: { linearizable?: boolean } & CallOptions = {},
  ): Promise<MemberListResponse> {
    const [own, call] = splitOptions("memberList", options, LIST_CALL);
    const request = MemberListRequest.create({ linearizable: own.linearizable ?? true });
    return this.#answer(MemberList, request, true, call);
  }

  /** Adds a member; start it with --initial-cluster-state existing. */
  async memberAdd(
    peerURLs: readonly string[],
    options: { isLearner?: boolean } & CallOptions = {},
  ): Promise<MemberAddResponse> {
    check("memberAdd", "peerURLs", peerURLs, TEXTS);
    const [{ isLearner = false }, call] = splitOptions("memberAdd", options, ADD_CALL);
    const request = MemberAddRequest.create({ peerURLs: [...peerURLs], isLearner });
    return this.#answer(MemberAdd, request, false, call);
  }

  async memberRemove(id: bigint, options?: CallOptions): Promise<MemberRemoveResponse> {
    check("memberRemove", "id", id, MEMBER_ID);
    return this.call(MemberRemove, MemberRemoveRequest.create({ ID: id }), false, options);
  }

  /** Replaces the peer URLs of a member. */
  async memberUpdate(
    id: bigint,
    peerURLs: readonly string[],
    options?: CallOptions,
  ): Promise<MemberUpdateResponse> {
    check("memberUpdate", "id", id, MEMBER_ID);
    check("memberUpdate", "peerURLs", peerURLs, TEXTS);
    const request = MemberUpdateRequest.create({ ID: id, peerURLs: [...peerURLs] });
    return this.call(MemberUpdate, request, false, options);
  }

  /** Makes a learner a voter, once it has caught up. */
  async memberPromote(id: bigint, options?: CallOptions): Promise<MemberPromoteResponse> {
    check("memberPromote", "id", id, MEMBER_ID);
    return this.call(MemberPromote, MemberPromoteRequest.create({ ID: id }), false, options);
  }

  /** Transfers leadership to a voter; `endpoint` must be the leader's. */
  async moveLeader(
    endpoint: string,
    targetID: bigint,
    options?: CallOptions,
  ): Promise<MoveLeaderResponse> {
    check("moveLeader", "endpoint", endpoint, TEXT);
    check("moveLeader", "targetID", targetID, MEMBER_ID);
    return this.#at(endpoint, MoveLeader, MoveLeaderRequest.create({ targetID }), false, options);
  }

  /**
   * The state of the member at `endpoint`, which need not be one of the client's own.
   */
  async status(endpoint: string, options?: CallOptions): Promise<StatusResponse> {
    check("status", "endpoint", endpoint, TEXT);
    return this.#at(endpoint, Status, StatusRequest.create(), true, options);
  }

  /** The alarms that are raised in the cluster. */
  alarmList(options?: CallOptions): Promise<AlarmResponse> {
    return this.call(Alarm, AlarmRequest.create(), true, options);
  }

  /** Disarms an alarm of a member; returns the disarmed alarms. */
  async alarmDisarm(alarm: AlarmMember, options?: CallOptions): Promise<AlarmResponse> {
    checkOptions("alarmDisarm", alarm, { memberID: MEMBER_ID, alarm: INTEGER });
    const request = AlarmRequest.create({ ...alarm, action: AlarmRequest_AlarmAction.DEACTIVATE });
    return this.call(Alarm, request, false, options);
  }

  /** Makes the member at `endpoint` rewrite its files to release unused space. */
  async defragment(endpoint: string, options?: CallOptions): Promise<DefragmentResponse> {
    check("defragment", "endpoint", endpoint, TEXT);
    return this.#at(endpoint, Defragment, DefragmentRequest.create(), false, options);
  }

  /** The hash of the whole store at the member at `endpoint`; it depends on its compactions. */
  async hash(endpoint: string, options?: CallOptions): Promise<HashResponse> {
    check("hash", "endpoint", endpoint, TEXT);
    return this.#at(endpoint, Hash, HashRequest.create(), true, options);
  }

  /** The hash of all keys and values up to `revision` (0 for now) at the member at `endpoint`. */
  async hashKv(endpoint: string, revision = 0, options?: CallOptions): Promise<HashKVResponse> {
    check("hashKv", "endpoint", endpoint, TEXT);
    check("hashKv", "revision", revision, INTEGER);
    return this.#at(endpoint, HashKV, HashKVRequest.create({ revision }), true, options);
  }

  /**
   * Calls any unary method.
   * @param repeatable whether it may be retried elsewhere after a failure with an unknown outcome,
   * where `options.repeat` does not say so
   */
  async call<T>(
    method: UnaryMethod<T>,
    request: object,
    repeatable: boolean,
    options: CallOptions = {},
  ): Promise<T> {
    check("call", "request", request, OBJECT);
    check("call", "repeatable", repeatable, FLAG);
    checkOptions("call", options, CALL_SHAPE);
    return this.#answer(method, request, repeatable, options);
  }

  /**
   * The snapshot file of the member at `endpoint`, or of the one in use, message by message. The
   * last message holds the SHA-256.
   */
  async *snapshot(
    endpoint?: string,
    options?: WaitOptions,
  ): AsyncGenerator<SnapshotResponse, undefined> {
    if (endpoint !== undefined) check("snapshot", "endpoint", endpoint, TEXT);
    const stream = await this.stream(Snapshot, endpoint, options);
    stream.send(SnapshotRequest.create());
    stream.finish();
    yield* stream;
  }

  /**
   * Opens a stream of any streaming method, at `endpoint` or at the one in use. After a failure the
   * next stream opens at the next endpoint. Rejects with ClientError.
   */
  async stream<Q, A>(
    method: StreamMethod<Q, A>,
    endpoint?: string,
    options: StreamOptions = {},
  ): Promise<ClientStream<Q, A>> {
    checkOptions("stream", options, STREAM_SHAPE);
    const { signal, timeoutMs, renewToken, ...metadata } = options;
    if (renewToken === true && this.#user !== undefined) this.#token = undefined;
    using wait = new Wait(this.timer, { signal, timeoutMs });
    await this.login({ signal, timeoutMs });
    const own = endpoint === undefined ? undefined : this.#failover.linkTo(endpoint);
    const extra =
      endpoint !== undefined && own === undefined ? this.#openLink(endpoint) : undefined;
    try {
      const trace: CallTrace = { method: method.path, endpoint: undefined, attempts: 0 };
      const token = { token: this.#token, ...metadata };
      const open = () =>
        this.#failover.stream(method.path, token, own ?? extra, wait.signal, trace);
      const { stream, link, ended } = await (method.path === WatchService.methods.Watch.path
        ? this.#tracer.watch(trace, open)
        : open());
      const over = (failed: boolean): void => {
        ended(failed);
        extra?.close();
      };
      return new ClientStream(method, stream, link.endpoint, over, signal);
    } catch (error) {
      extra?.close();
      throw error;
    }
  }

  /** Closes all connections; pending calls fail. */
  close(): void {
    this.#failover.close();
  }

  /** Closes all connections, as close(). */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  async #at<T>(
    endpoint: string,
    method: UnaryMethod<T>,
    request: object,
    repeatable: boolean,
    options: CallOptions = {},
  ): Promise<T> {
    checkOptions("call", options, CALL_SHAPE);
    const own = this.#failover.linkTo(endpoint);
    const link = own ?? this.#openLink(endpoint);
    try {
      return await this.#answer(method, request, repeatable, options, link);
    } finally {
      if (own === undefined) link.close();
    }
  }

  /** The response of a call whose parameters are checked, as the program gets it. */
  async #answer<T>(
    method: UnaryMethod<T>,
    request: object,
    repeatable: boolean,
    options: CallOptions,
    only?: Link,
  ): Promise<T> {
    const message = await this.#send(method, request, repeatable, options, only);
    if (typeof message === "object" && message !== null) withJson(message);
    return message;
  }

  /** Makes a call whose parameters are checked. */
  #send<T>(
    method: UnaryMethod<T>,
    request: object,
    repeatable: boolean,
    options: CallOptions,
    only?: Link,
  ): Promise<T> {
    const trace: CallTrace = { method: method.path, endpoint: undefined, attempts: 0 };
    const bytes = method.requestType.encode(request);
    const isRepeatable = options.repeat ?? repeatable;
    const run = () => this.#loggedIn(method, bytes, isRepeatable, options, trace, only);
    return this.#tracer.call(trace, run);
  }

  /** Makes a call, with a new token where the present one is not accepted. */
  async #loggedIn<T>(
    method: UnaryMethod<T>,
    request: Uint8Array,
    repeatable: boolean,
    options: CallOptions,
    trace: CallTrace,
    only: Link | undefined,
  ): Promise<T> {
    if (this.#token === undefined && this.#user !== undefined) await this.login(options);
    const token = this.#token;
    const { path, responseType } = method;
    const { timeoutMs, signal } = options;
    const metadata = { token };
    const plan: CallPlan = { trace, path, request, repeatable, timeoutMs, signal, metadata };
    try {
      return responseType.decode(await this.#failover.call(plan, only));
    } catch (error) {
      // The token has expired, or users have changed. The server refuses such a call before it does
      // anything, so even a write can be retried.
      if (
        !(error instanceof ClientError) ||
        !isStaleToken(error.message) ||
        this.#user === undefined
      )
        throw error;
      if (this.#token === token) this.#token = undefined;
      await this.login(options);
      const renewed = { ...plan, metadata: { token: this.#token } };
      return responseType.decode(await this.#failover.call(renewed, only));
    }
  }

  /**
   * Fetches a token; concurrent calls share the request. Without authentication the token is empty.
   */
  #authenticate(): Promise<void> {
    this.#authenticating ??= this.#fetchToken().finally(() => {
      this.#authenticating = undefined;
    });
    return this.#authenticating;
  }

  async #fetchToken(): Promise<void> {
    const request = AuthenticateRequest.encode(defined(this.#user, "the user"));
    const path = AuthService.methods.Authenticate.path;
    try {
      const response = await this.#failover.call({
        path,
        request,
        repeatable: true,
        metadata: { token: undefined },
      });
      this.#token = AuthenticateResponse.decode(response).token;
    } catch (error) {
      if (!(error instanceof ClientError) || error.code !== "AuthNotEnabled") throw error;
      this.#token = "";
    }
  }
}
