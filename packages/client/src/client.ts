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
 * Every call rejects with ClientError: `grpcCode` and `message` are the server's, `code` is the
 * name in etcd's catalogue.
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
  type MessageType,
  type MethodDescriptor,
  MoveLeaderRequest,
  type MoveLeaderResponse,
  SnapshotRequest,
  type SnapshotResponse,
  StatusRequest,
  type StatusResponse,
} from "@quorate/proto";
import { Auth } from "./auth.ts";
import type { Caller, StreamOptions } from "./caller.ts";
import { ClientError } from "./errors.ts";
import type { Failover } from "./failover.ts";
import { withJson } from "./json.ts";
import { Leases } from "./leases.ts";
import type { ClientTimer, Link } from "./link.ts";
import {
  type Bytes,
  type DeleteOptions,
  deleteRequest,
  type GetOptions,
  getRequest,
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
  type TxnResult,
  txnResult,
} from "./responses.ts";
import { isStaleToken } from "./resume.ts";
import { Session } from "./session.ts";
import { ClientStream, type StreamMethod } from "./stream.ts";
import { Watch, type WatchOptions } from "./watch.ts";

const { MemberAdd, MemberList, MemberPromote, MemberRemove, MemberUpdate } = ClusterService.methods;
const { Alarm, Defragment, Downgrade, HashKV, MoveLeader, Snapshot, Status } =
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

/** Opens a link to any endpoint. */
export type OpenLink = (endpoint: string) => Link;

export class Client implements Caller {
  /** Calls about leases. */
  readonly leases: Leases;
  /** Calls about users and roles. */
  readonly auth: Auth;
  readonly timer: ClientTimer;
  readonly #failover: Failover;
  readonly #openLink: OpenLink;
  readonly #user: { readonly name: string; readonly password: string } | undefined;
  #token: string | undefined;
  #authenticating: Promise<void> | undefined;

  /** Made by connect(). */
  constructor(
    failover: Failover,
    openLink: OpenLink,
    credentials: Credentials | undefined,
    timer: ClientTimer,
  ) {
    this.#failover = failover;
    this.#openLink = openLink;
    this.timer = timer;
    this.leases = new Leases(this);
    this.auth = new Auth(this);
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
  async login(): Promise<void> {
    if (this.#user !== undefined && this.#token === undefined) await this.#authenticate();
  }

  /** Watches a key or a range; starts when iterated. */
  watch(key: Bytes, options: WatchOptions = {}): Watch {
    return new Watch(this, key, options);
  }

  /** Opens a session: a lease that is kept alive; default 60 seconds. */
  async session(options: { ttlSeconds?: number } = {}): Promise<Session> {
    checkOptions("session", options, { ttlSeconds: INTEGER });
    return Session.open(this.leases, options.ttlSeconds ?? 60);
  }

  /**
   * Checks whether the cluster can be downgraded to a version, starts the downgrade, or cancels it
   * (with an empty version).
   */
  async downgrade(
    action: "validate" | "enable" | "cancel",
    version: string,
  ): Promise<DowngradeResponse> {
    check("downgrade", "action", action, oneOf(Object.keys(downgradeActions)));
    check("downgrade", "version", version, TEXT);
    const request = DowngradeRequest.create({ action: downgradeActions[action], version });
    return this.call(Downgrade, request, false);
  }

  /** The key, or the keys of a range, with their values. */
  async get(key: Bytes, options: GetOptions = {}): Promise<GetResult> {
    return getResult(await this.call(KVService.methods.Range, getRequest(key, options), true));
  }

  async put(key: Bytes, value: Bytes, options: PutOptions = {}): Promise<PutResult> {
    return putResult(
      await this.call(KVService.methods.Put, putRequest(key, value, options), false),
    );
  }

  /** Deletes the key or the keys of a range; `deleted` is their number. */
  async delete(key: Bytes, options: DeleteOptions = {}): Promise<DeleteResult> {
    return deleteResult(
      await this.call(KVService.methods.DeleteRange, deleteRequest(key, options), false),
    );
  }

  /** Runs `success` if all comparisons hold, else `failure`; all at one revision. */
  async txn(parts: TxnParts): Promise<TxnResult> {
    const request = txnRequest(parts);
    return txnResult(await this.call(KVService.methods.Txn, request, readsOnly(request)));
  }

  /**
   * Compacts the history before `revision`. With `physical`, responds only once the store has
   * removed it.
   */
  async compact(
    revision: number,
    options: { physical?: boolean } = {},
  ): Promise<CompactionResponse> {
    check("compact", "revision", revision, INTEGER);
    checkOptions("compact", options, { physical: FLAG });
    return this.call(
      KVService.methods.Compact,
      CompactionRequest.create({ revision, physical: options.physical ?? false }),
      false,
    );
  }

  /** The members of the cluster; with `linearizable: false`, as one member knows them. */
  async memberList(options: { linearizable?: boolean } = {}): Promise<MemberListResponse> {
    checkOptions("memberList", options, { linearizable: FLAG });
    const request = MemberListRequest.create({ linearizable: options.linearizable ?? true });
    return this.call(MemberList, request, true);
  }

  /** Adds a member; start it with --initial-cluster-state existing. */
  async memberAdd(
    peerURLs: readonly string[],
    options: { isLearner?: boolean } = {},
  ): Promise<MemberAddResponse> {
    check("memberAdd", "peerURLs", peerURLs, TEXTS);
    checkOptions("memberAdd", options, { isLearner: FLAG });
    const request = MemberAddRequest.create({
      peerURLs: [...peerURLs],
      isLearner: options.isLearner ?? false,
    });
    return this.call(MemberAdd, request, false);
  }

  async memberRemove(id: bigint): Promise<MemberRemoveResponse> {
    check("memberRemove", "id", id, MEMBER_ID);
    return this.call(MemberRemove, MemberRemoveRequest.create({ ID: id }), false);
  }

  /** Replaces the peer URLs of a member. */
  async memberUpdate(id: bigint, peerURLs: readonly string[]): Promise<MemberUpdateResponse> {
    check("memberUpdate", "id", id, MEMBER_ID);
    check("memberUpdate", "peerURLs", peerURLs, TEXTS);
    const request = MemberUpdateRequest.create({ ID: id, peerURLs: [...peerURLs] });
    return this.call(MemberUpdate, request, false);
  }

  /** Makes a learner a voter, once it has caught up. */
  async memberPromote(id: bigint): Promise<MemberPromoteResponse> {
    check("memberPromote", "id", id, MEMBER_ID);
    return this.call(MemberPromote, MemberPromoteRequest.create({ ID: id }), false);
  }

  /** Transfers leadership to a voter; `endpoint` must be the leader's. */
  async moveLeader(endpoint: string, targetID: bigint): Promise<MoveLeaderResponse> {
    check("moveLeader", "endpoint", endpoint, TEXT);
    check("moveLeader", "targetID", targetID, MEMBER_ID);
    return this.#at(endpoint, MoveLeader, MoveLeaderRequest.create({ targetID }));
  }

  /**
   * The state of the member at `endpoint`, which need not be one of the client's own.
   */
  async status(endpoint: string): Promise<StatusResponse> {
    check("status", "endpoint", endpoint, TEXT);
    return this.#at(endpoint, Status, StatusRequest.create());
  }

  /** The alarms that are raised in the cluster. */
  alarmList(): Promise<AlarmResponse> {
    return this.call(Alarm, AlarmRequest.create(), true);
  }

  /** Disarms an alarm of a member; returns the disarmed alarms. */
  async alarmDisarm(alarm: AlarmMember): Promise<AlarmResponse> {
    checkOptions("alarmDisarm", alarm, { memberID: MEMBER_ID, alarm: INTEGER });
    const request = AlarmRequest.create({ ...alarm, action: AlarmRequest_AlarmAction.DEACTIVATE });
    return this.call(Alarm, request, true);
  }

  /** Makes the member at `endpoint` rewrite its files to release unused space. */
  async defragment(endpoint: string): Promise<DefragmentResponse> {
    check("defragment", "endpoint", endpoint, TEXT);
    return this.#at(endpoint, Defragment, DefragmentRequest.create());
  }

  /** The hash of all keys and values up to `revision` (0 for now) at the member at `endpoint`. */
  async hashKv(endpoint: string, revision = 0): Promise<HashKVResponse> {
    check("hashKv", "endpoint", endpoint, TEXT);
    check("hashKv", "revision", revision, INTEGER);
    return this.#at(endpoint, HashKV, HashKVRequest.create({ revision }));
  }

  /**
   * Calls any unary method.
   * @param repeatable whether the call is idempotent: it may be retried elsewhere after a failure
   * with an unknown outcome
   */
  async call<T>(
    method: MethodDescriptor & { readonly responseType: MessageType<T> },
    request: object,
    repeatable: boolean,
  ): Promise<T> {
    check("call", "request", request, OBJECT);
    check("call", "repeatable", repeatable, FLAG);
    return decoded(method, await this.#send(method, request, repeatable));
  }

  /**
   * The snapshot file of the member at `endpoint`, or of the one in use, message by message. The
   * last message holds the SHA-256.
   */
  async *snapshot(endpoint?: string): AsyncGenerator<SnapshotResponse, undefined> {
    if (endpoint !== undefined) check("snapshot", "endpoint", endpoint, TEXT);
    const stream = await this.stream(Snapshot, endpoint);
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
    if (options.renewToken === true && this.#user !== undefined) this.#token = undefined;
    await this.login();
    const own = endpoint === undefined ? undefined : this.#failover.linkTo(endpoint);
    const extra =
      endpoint !== undefined && own === undefined ? this.#openLink(endpoint) : undefined;
    try {
      const { stream, link } = await this.#failover.stream(
        method.path,
        { token: this.#token, ...options },
        own ?? extra,
      );
      return new ClientStream(method, stream, link.endpoint, (failed) => {
        if (failed) this.#failover.leave(link);
        extra?.close();
      });
    } catch (error) {
      extra?.close();
      throw error;
    }
  }

  /** Closes all connections; pending calls fail. */
  close(): void {
    this.#failover.close();
  }

  async #at<T>(
    endpoint: string,
    method: MethodDescriptor & { readonly responseType: MessageType<T> },
    request: object,
  ): Promise<T> {
    const own = this.#failover.linkTo(endpoint);
    const link = own ?? this.#openLink(endpoint);
    try {
      return decoded(method, await this.#send(method, request, true, link));
    } finally {
      if (own === undefined) link.close();
    }
  }

  async #send(
    method: MethodDescriptor,
    request: object,
    repeatable: boolean,
    only?: Link,
  ): Promise<Uint8Array> {
    const bytes = method.requestType.encode(request);
    await this.login();
    const token = this.#token;
    try {
      return await this.#failover.call(
        { path: method.path, request: bytes, repeatable, metadata: { token } },
        only,
      );
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
      await this.#authenticate();
      return await this.#failover.call(
        { path: method.path, request: bytes, repeatable, metadata: { token: this.#token } },
        only,
      );
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

function decoded<T>({ responseType }: { responseType: MessageType<T> }, bytes: Uint8Array): T {
  const message = responseType.decode(bytes);
  if (typeof message === "object" && message !== null) withJson(message);
  return message;
}
