/**
 * The messages of etcd's services as npm's etcd3 has them, with the names of the .proto file. A
 * 64-bit integer of a response is a decimal text; a request takes a number as well.
 */
import type { Buffer } from "node:buffer";

export const SortOrder = { None: 0, Ascend: 1, Descend: 2 } as const;
export type SortOrder = (typeof SortOrder)[keyof typeof SortOrder];

export const SortTarget = { Key: 0, Version: 1, Create: 2, Mod: 3, Value: 4 } as const;
export type SortTarget = (typeof SortTarget)[keyof typeof SortTarget];

export const CompareResult = { Equal: 0, Greater: 1, Less: 2, NotEqual: 3 } as const;
export type CompareResult = (typeof CompareResult)[keyof typeof CompareResult];

export const CompareTarget = { Version: 0, Create: 1, Mod: 2, Value: 3, Lease: 4 } as const;
export type CompareTarget = (typeof CompareTarget)[keyof typeof CompareTarget];

export const FilterType = { Noput: 0, Nodelete: 1 } as const;
export type FilterType = (typeof FilterType)[keyof typeof FilterType];

export const AlarmType = { None: 0, Nospace: 1, Corrupt: 2 } as const;
export type AlarmType = (typeof AlarmType)[keyof typeof AlarmType];

export const AlarmAction = { Get: 0, Activate: 1, Deactivate: 2 } as const;
export type AlarmAction = (typeof AlarmAction)[keyof typeof AlarmAction];

export const DowngradeAction = { Validate: 0, Enable: 1, Cancel: 2 } as const;
export type DowngradeAction = (typeof DowngradeAction)[keyof typeof DowngradeAction];

export const EventType = { Put: 0, Delete: 1 } as const;
export type EventType = (typeof EventType)[keyof typeof EventType];

export const Permission = { Read: 0, Write: 1, Readwrite: 2 } as const;
export type Permission = (typeof Permission)[keyof typeof Permission];

export interface IUserAddOptions {
  no_password?: boolean;
}

export interface IPermission {
  permType: keyof typeof Permission;
  key: Buffer;
  range_end: Buffer;
}

export interface IKeyValue {
  key: Buffer;
  create_revision: string;
  mod_revision: string;
  version: string;
  value: Buffer;
  lease: string;
}

export interface IEvent {
  type: keyof typeof EventType;
  kv: IKeyValue;
  prev_kv: IKeyValue | null;
}

export interface IResponseHeader {
  cluster_id: string;
  member_id: string;
  revision: string;
  raft_term: string;
}

/** A response without more. */
export interface IHeaded {
  header: IResponseHeader;
}

export interface IRangeRequest {
  key?: Buffer;
  range_end?: Buffer;
  limit?: string | number;
  revision?: string | number;
  sort_order?: SortOrder | keyof typeof SortOrder;
  sort_target?: SortTarget | keyof typeof SortTarget;
  serializable?: boolean;
  keys_only?: boolean;
  count_only?: boolean;
  min_mod_revision?: string | number;
  max_mod_revision?: string | number;
  min_create_revision?: string | number;
  max_create_revision?: string | number;
}

export interface IRangeResponse {
  header: IResponseHeader;
  kvs: IKeyValue[];
  more: boolean;
  count: string;
}

export interface IPutRequest {
  key?: Buffer;
  value?: Buffer;
  lease?: string | number;
  prev_kv?: boolean;
  ignore_value?: boolean;
  ignore_lease?: boolean;
}

export interface IPutResponse {
  header: IResponseHeader;
  prev_kv: IKeyValue;
}

export interface IDeleteRangeRequest {
  key?: Buffer;
  range_end?: Buffer;
  prev_kv?: boolean;
}

export interface IDeleteRangeResponse {
  header: IResponseHeader;
  deleted: string;
  prev_kvs: IKeyValue[];
}

export interface IRequestOp {
  request_range?: IRangeRequest;
  request_put?: IPutRequest;
  request_delete_range?: IDeleteRangeRequest;
  request_txn?: ITxnRequest;
}

export interface IResponseOp {
  response_range: IRangeResponse;
  response_put: IPutResponse;
  response_delete_range: IDeleteRangeResponse;
  response_txn: ITxnResponse;
}

export interface ICompare {
  result?: CompareResult | keyof typeof CompareResult;
  target?: CompareTarget | keyof typeof CompareTarget;
  key?: Buffer;
  version?: string | number;
  create_revision?: string | number;
  mod_revision?: string | number;
  value?: Buffer;
  lease?: string | number;
  range_end?: Buffer;
}

export interface ITxnRequest {
  compare?: ICompare[];
  success?: IRequestOp[];
  failure?: IRequestOp[];
}

export interface ITxnResponse {
  header: IResponseHeader;
  succeeded: boolean;
  responses: IResponseOp[];
}

export interface ICompactionRequest {
  revision?: string | number;
  physical?: boolean;
}

export type ICompactionResponse = IHeaded;

export type IHashRequest = Record<string, never>;

export interface IHashKVRequest {
  revision?: string | number;
}

export interface IHashKVResponse {
  header: IResponseHeader;
  hash: number;
  compact_revision: string;
  hash_revision: string;
}

export interface IHashResponse {
  header: IResponseHeader;
  hash: number;
}

export type ISnapshotRequest = Record<string, never>;

export interface ISnapshotResponse {
  header: IResponseHeader;
  remaining_bytes: string;
  blob: Buffer;
  version: string;
}

export interface IWatchRequest {
  create_request?: IWatchCreateRequest;
  cancel_request?: IWatchCancelRequest;
  progress_request?: IWatchProgressRequest;
}

export interface IWatchCreateRequest {
  key?: Buffer;
  range_end?: Buffer;
  start_revision?: string | number;
  progress_notify?: boolean;
  filters?: (FilterType | keyof typeof FilterType)[];
  prev_kv?: boolean;
  watch_id?: string | number;
  fragment?: boolean;
}

export interface IWatchCancelRequest {
  watch_id?: string | number;
}

export type IWatchProgressRequest = Record<string, never>;

export interface IWatchResponse {
  header: IResponseHeader;
  watch_id: string;
  created: boolean;
  canceled: boolean;
  compact_revision: string;
  cancel_reason: string;
  fragment: boolean;
  events: IEvent[];
}

export interface ILeaseGrantRequest {
  TTL?: string | number;
  ID?: string | number;
}

export interface ILeaseGrantResponse {
  header: IResponseHeader;
  ID: string;
  TTL: string;
  error: string;
}

export interface ILeaseRevokeRequest {
  ID?: string | number;
}

export type ILeaseRevokeResponse = IHeaded;

export interface ILeaseKeepAliveRequest {
  ID?: string | number;
}

export interface ILeaseKeepAliveResponse {
  header: IResponseHeader;
  ID: string;
  TTL: string;
}

export interface ILeaseTimeToLiveRequest {
  ID?: string | number;
  keys?: boolean;
}

export interface ILeaseTimeToLiveResponse {
  header: IResponseHeader;
  ID: string;
  TTL: string;
  grantedTTL: string;
  keys: Buffer[];
}

export type ILeaseLeasesRequest = Record<string, never>;

export interface ILeaseStatus {
  ID: string;
}

export interface ILeaseLeasesResponse {
  header: IResponseHeader;
  leases: ILeaseStatus[];
}

export interface IMember {
  ID: string;
  name: string;
  peerURLs: string[];
  clientURLs: string[];
  isLearner: boolean;
}

export interface IMemberAddRequest {
  peerURLs?: string[];
  isLearner?: boolean;
}

export interface IMemberAddResponse {
  header: IResponseHeader;
  member: IMember;
  members: IMember[];
}

export interface IMemberRemoveRequest {
  ID?: string | number;
}

export interface IMemberRemoveResponse {
  header: IResponseHeader;
  members: IMember[];
}

export interface IMemberUpdateRequest {
  ID?: string | number;
  peerURLs?: string[];
}

export interface IMemberUpdateResponse {
  header: IResponseHeader;
  members: IMember[];
}

export interface IMemberListRequest {
  linearizable?: boolean;
}

export interface IMemberListResponse {
  header: IResponseHeader;
  members: IMember[];
}

export interface IMemberPromoteRequest {
  ID?: string | number;
}

export interface IMemberPromoteResponse {
  header: IResponseHeader;
  members: IMember[];
}

export type IDefragmentRequest = Record<string, never>;

export type IDefragmentResponse = IHeaded;

export interface IMoveLeaderRequest {
  targetID?: string | number;
}

export type IMoveLeaderResponse = IHeaded;

export interface IAlarmRequest {
  action?: AlarmAction | keyof typeof AlarmAction;
  memberID?: string | number;
  alarm?: AlarmType | keyof typeof AlarmType;
}

export interface IAlarmMember {
  memberID: string;
  alarm: keyof typeof AlarmType;
}

export interface IAlarmResponse {
  header: IResponseHeader;
  alarms: IAlarmMember[];
}

export interface IDowngradeRequest {
  action?: DowngradeAction | keyof typeof DowngradeAction;
  version?: string;
}

export interface IDowngradeResponse {
  header: IResponseHeader;
  version: string;
}

export type IStatusRequest = Record<string, never>;

export interface IStatusResponse {
  header: IResponseHeader;
  version: string;
  dbSize: string;
  leader: string;
  raftIndex: string;
  raftTerm: string;
  raftAppliedIndex: string;
  errors: string[];
  dbSizeInUse: string;
  isLearner: boolean;
  storageVersion: string;
  dbSizeQuota: string;
  downgradeInfo: IDowngradeInfo;
}

export interface IDowngradeInfo {
  enabled: boolean;
  targetVersion: string;
}

export type IAuthEnableRequest = Record<string, never>;

export type IAuthDisableRequest = Record<string, never>;

export type IAuthStatusRequest = Record<string, never>;

export interface IAuthenticateRequest {
  name?: string;
  password?: string;
}

export interface IAuthUserAddRequest {
  name?: string;
  password?: string;
  options?: IUserAddOptions;
  hashedPassword?: string;
}

export interface IAuthUserGetRequest {
  name?: string;
}

export interface IAuthUserDeleteRequest {
  name?: string;
}

export interface IAuthUserChangePasswordRequest {
  name?: string;
  password?: string;
  hashedPassword?: string;
}

export interface IAuthUserGrantRoleRequest {
  user?: string;
  role?: string;
}

export interface IAuthUserRevokeRoleRequest {
  name?: string;
  role?: string;
}

export interface IAuthRoleAddRequest {
  name?: string;
}

export interface IAuthRoleGetRequest {
  role?: string;
}

export type IAuthUserListRequest = Record<string, never>;

export type IAuthRoleListRequest = Record<string, never>;

export interface IAuthRoleDeleteRequest {
  role?: string;
}

export interface IAuthRoleGrantPermissionRequest {
  name?: string;
  perm?: IPermission;
}

export interface IAuthRoleRevokePermissionRequest {
  role?: string;
  key?: Buffer;
  range_end?: Buffer;
}

export type IAuthEnableResponse = IHeaded;

export type IAuthDisableResponse = IHeaded;

export interface IAuthStatusResponse {
  header: IResponseHeader;
  enabled: boolean;
  authRevision: string;
}

export interface IAuthenticateResponse {
  header: IResponseHeader;
  token: string;
}

export type IAuthUserAddResponse = IHeaded;

export interface IAuthUserGetResponse {
  header: IResponseHeader;
  roles: string[];
}

export type IAuthUserDeleteResponse = IHeaded;

export type IAuthUserChangePasswordResponse = IHeaded;

export type IAuthUserGrantRoleResponse = IHeaded;

export type IAuthUserRevokeRoleResponse = IHeaded;

export type IAuthRoleAddResponse = IHeaded;

export interface IAuthRoleGetResponse {
  header: IResponseHeader;
  perm: IPermission[];
}

export interface IAuthRoleListResponse {
  header: IResponseHeader;
  roles: string[];
}

export interface IAuthUserListResponse {
  header: IResponseHeader;
  users: string[];
}

export type IAuthRoleDeleteResponse = IHeaded;

export type IAuthRoleGrantPermissionResponse = IHeaded;

export type IAuthRoleRevokePermissionResponse = IHeaded;
