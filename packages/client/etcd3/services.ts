/**
 * The services of etcd as npm's etcd3 has them: one method for each RPC, which takes the request
 * (none where it has no fields) and the options of the call. They reject with the errors of
 * errors.ts.
 */
import { fieldRows, type MethodDescriptor } from "@quorate/proto";
import type * as M from "./messages.ts";
import { type CallOptions, resolveCallOptions } from "./options.ts";
import {
  type ICallable,
  type IDuplexStream,
  type IResponseStream,
  SERVICES,
  type ServiceName,
} from "./pool.ts";

export type { ICallable, IDuplexStream, IRequestStream, IResponseStream } from "./pool.ts";

type Unary<Request, Response> = (request: Request, options?: CallOptions) => Promise<Response>;
type Plain<Response> = (options?: CallOptions) => Promise<Response>;
/** A class of clients that are made over what makes their calls. */
type ClientClass<Methods> = new (callable: ICallable) => Methods;

export interface KVClient {
  range: Unary<M.IRangeRequest, M.IRangeResponse>;
  put: Unary<M.IPutRequest, M.IPutResponse>;
  deleteRange: Unary<M.IDeleteRangeRequest, M.IDeleteRangeResponse>;
  txn: Unary<M.ITxnRequest, M.ITxnResponse>;
  compact: Unary<M.ICompactionRequest, M.ICompactionResponse>;
}

export interface WatchClient {
  watch: Plain<IDuplexStream<M.IWatchRequest, M.IWatchResponse>>;
}

export interface LeaseClient {
  leaseGrant: Unary<M.ILeaseGrantRequest, M.ILeaseGrantResponse>;
  leaseRevoke: Unary<M.ILeaseRevokeRequest, M.ILeaseRevokeResponse>;
  leaseKeepAlive: Plain<IDuplexStream<M.ILeaseKeepAliveRequest, M.ILeaseKeepAliveResponse>>;
  leaseTimeToLive: Unary<M.ILeaseTimeToLiveRequest, M.ILeaseTimeToLiveResponse>;
  leaseLeases: Plain<M.ILeaseLeasesResponse>;
}

export interface ClusterClient {
  memberAdd: Unary<M.IMemberAddRequest, M.IMemberAddResponse>;
  memberRemove: Unary<M.IMemberRemoveRequest, M.IMemberRemoveResponse>;
  memberUpdate: Unary<M.IMemberUpdateRequest, M.IMemberUpdateResponse>;
  memberList: Unary<M.IMemberListRequest, M.IMemberListResponse>;
  memberPromote: Unary<M.IMemberPromoteRequest, M.IMemberPromoteResponse>;
}

export interface MaintenanceClient {
  alarm: Unary<M.IAlarmRequest, M.IAlarmResponse>;
  status: Plain<M.IStatusResponse>;
  defragment: Plain<M.IDefragmentResponse>;
  hash: Plain<M.IHashResponse>;
  hashKV: Unary<M.IHashKVRequest, M.IHashKVResponse>;
  snapshot: Plain<IResponseStream<M.ISnapshotResponse>>;
  moveLeader: Unary<M.IMoveLeaderRequest, M.IMoveLeaderResponse>;
  downgrade: Unary<M.IDowngradeRequest, M.IDowngradeResponse>;
}

export interface AuthClient {
  authEnable: Plain<M.IAuthEnableResponse>;
  authDisable: Plain<M.IAuthDisableResponse>;
  authStatus: Plain<M.IAuthStatusResponse>;
  authenticate: Unary<M.IAuthenticateRequest, M.IAuthenticateResponse>;
  userAdd: Unary<M.IAuthUserAddRequest, M.IAuthUserAddResponse>;
  userGet: Unary<M.IAuthUserGetRequest, M.IAuthUserGetResponse>;
  userList: Plain<M.IAuthUserListResponse>;
  userDelete: Unary<M.IAuthUserDeleteRequest, M.IAuthUserDeleteResponse>;
  userChangePassword: Unary<M.IAuthUserChangePasswordRequest, M.IAuthUserChangePasswordResponse>;
  userGrantRole: Unary<M.IAuthUserGrantRoleRequest, M.IAuthUserGrantRoleResponse>;
  userRevokeRole: Unary<M.IAuthUserRevokeRoleRequest, M.IAuthUserRevokeRoleResponse>;
  roleAdd: Unary<M.IAuthRoleAddRequest, M.IAuthRoleAddResponse>;
  roleGet: Unary<M.IAuthRoleGetRequest, M.IAuthRoleGetResponse>;
  roleList: Plain<M.IAuthRoleListResponse>;
  roleDelete: Unary<M.IAuthRoleDeleteRequest, M.IAuthRoleDeleteResponse>;
  roleGrantPermission: Unary<M.IAuthRoleGrantPermissionRequest, M.IAuthRoleGrantPermissionResponse>;
  roleRevokePermission: Unary<
    M.IAuthRoleRevokePermissionRequest,
    M.IAuthRoleRevokePermissionResponse
  >;
}

/** A class with the methods of a service. */
function clientOf<Methods>(service: ServiceName): ClientClass<Methods> {
  class ServiceClient {
    readonly callable: ICallable;

    constructor(callable: ICallable) {
      this.callable = callable;
    }
  }
  for (const method of Object.values<MethodDescriptor>(SERVICES[service].methods)) {
    const name = method.name.slice(0, 1).toLowerCase() + method.name.slice(1);
    Object.defineProperty(ServiceClient.prototype, name, {
      value: callerOf(service, name, method),
    });
  }
  return ServiceClient as unknown as ClientClass<Methods>;
}

function callerOf(
  service: ServiceName,
  name: string,
  { requestStream, responseStream, requestType }: MethodDescriptor,
): (this: { callable: ICallable }, ...words: object[]) => Promise<unknown> {
  if (responseStream)
    return function (own) {
      const context = { service, method: name, isStream: true };
      const options = resolveCallOptions(own, this.callable.callOptionsFactory, context);
      const request = requestStream ? undefined : {};
      return this.callable.withConnection(service, ({ client, metadata }) =>
        client[name]?.(metadata, options, request),
      );
    };
  const isPlain = fieldRows(requestType.typeName).length === 0;
  return function (...words) {
    const [request, options] = isPlain ? [{}, words[0]] : words;
    return this.callable.exec(service, name, request, options);
  };
}

export const KVClient: ClientClass<KVClient> = clientOf("KV");
export const WatchClient: ClientClass<WatchClient> = clientOf("Watch");
export const LeaseClient: ClientClass<LeaseClient> = clientOf("Lease");
export const ClusterClient: ClientClass<ClusterClient> = clientOf("Cluster");
export const MaintenanceClient: ClientClass<MaintenanceClient> = clientOf("Maintenance");
export const AuthClient: ClientClass<AuthClient> = clientOf("Auth");

/** The classes by the names of their services. */
export const Services = {
  KV: KVClient,
  Watch: WatchClient,
  Lease: LeaseClient,
  Cluster: ClusterClient,
  Maintenance: MaintenanceClient,
  Auth: AuthClient,
} as const;
