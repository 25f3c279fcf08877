/**
 * What the generator of packages/proto must know beyond the .proto files. Keys are
 * "package.Message.field" in the .proto's spelling; a key that names no field is refused.
 */

/**
 * 64-bit fields that hold ids: bigint (signed for int64, unsigned for uint64). All other 64-bit
 * fields are numbers.
 */
export const BIGINT_FIELDS: readonly string[] = [
  "mvccpb.KeyValue.lease",
  "etcdserverpb.ResponseHeader.cluster_id",
  "etcdserverpb.ResponseHeader.member_id",
  "etcdserverpb.PutRequest.lease",
  "etcdserverpb.Compare.lease",
  "etcdserverpb.LeaseGrantRequest.ID",
  "etcdserverpb.LeaseGrantResponse.ID",
  "etcdserverpb.LeaseRevokeRequest.ID",
  "etcdserverpb.LeaseCheckpoint.ID",
  "etcdserverpb.LeaseKeepAliveRequest.ID",
  "etcdserverpb.LeaseKeepAliveResponse.ID",
  "etcdserverpb.LeaseTimeToLiveRequest.ID",
  "etcdserverpb.LeaseTimeToLiveResponse.ID",
  "etcdserverpb.LeaseStatus.ID",
  "etcdserverpb.Member.ID",
  "etcdserverpb.MemberRemoveRequest.ID",
  "etcdserverpb.MemberUpdateRequest.ID",
  "etcdserverpb.MemberPromoteRequest.ID",
  "etcdserverpb.MoveLeaderRequest.targetID",
  "etcdserverpb.AlarmRequest.memberID",
  "etcdserverpb.AlarmMember.memberID",
  "etcdserverpb.StatusResponse.leader",
  "etcdserverpb.RequestHeader.ID",
  "etcdserverpb.InternalRaftRequest.ID",
  "etcdserverpb.Metadata.NodeID",
  "etcdserverpb.Metadata.ClusterID",
  "etcdserverpb.Request.ID",
  // Nanoseconds since 1970 are no safe integer.
  "etcdserverpb.Request.Expiration",
  "etcdserverpb.Request.Time",
  "membershippb.Member.ID",
  "membershippb.ClusterMemberAttrSetRequest.member_ID",
  "leasepb.Lease.ID",
  "v3lockpb.LockRequest.lease",
  "v3electionpb.CampaignRequest.lease",
  "v3electionpb.LeaderKey.lease",
  "raftpb.Message.to",
  "raftpb.Message.from",
  "raftpb.Message.vote",
  "raftpb.HardState.vote",
  "raftpb.ConfState.voters",
  "raftpb.ConfState.learners",
  "raftpb.ConfState.voters_outgoing",
  "raftpb.ConfState.learners_next",
  "raftpb.ConfChange.id",
  "raftpb.ConfChange.node_id",
  "raftpb.ConfChangeSingle.node_id",
];

/**
 * int64 fields of client requests for which any number beyond the safe integers means the same as
 * the nearest safe one: limits, and revisions no store reaches. Decoding clamps them, so such a
 * request has etcd's result. Other numbers are refused.
 */
export const CLAMPED_FIELDS: readonly string[] = [
  "etcdserverpb.RangeRequest.limit",
  "etcdserverpb.RangeRequest.revision",
  "etcdserverpb.RangeRequest.min_mod_revision",
  "etcdserverpb.RangeRequest.max_mod_revision",
  "etcdserverpb.RangeRequest.min_create_revision",
  "etcdserverpb.RangeRequest.max_create_revision",
  "etcdserverpb.Compare.version",
  "etcdserverpb.Compare.create_revision",
  "etcdserverpb.Compare.mod_revision",
  "etcdserverpb.CompactionRequest.revision",
  "etcdserverpb.HashKVRequest.revision",
  "etcdserverpb.WatchCreateRequest.start_revision",
  "etcdserverpb.LeaseGrantRequest.TTL",
  "v3electionpb.LeaderKey.rev",
];

/** int64 fields that clients choose: a number, or a bigint beyond the safe integers. */
export const WIDE_FIELDS: readonly string[] = [
  "etcdserverpb.WatchCreateRequest.watch_id",
  "etcdserverpb.WatchCancelRequest.watch_id",
  "etcdserverpb.WatchResponse.watch_id",
];

/**
 * Embedded messages kept encoded: stored records and client requests pass through without being
 * decoded and encoded again.
 */
export const RAW_FIELDS: readonly string[] = [
  "mvccpb.Event.kv",
  "mvccpb.Event.prev_kv",
  "etcdserverpb.RangeResponse.kvs",
  "etcdserverpb.PutResponse.prev_kv",
  "etcdserverpb.DeleteRangeResponse.prev_kvs",
  "etcdserverpb.WatchResponse.events",
];

/** Messages of which every embedded message but the ones named is kept encoded. */
export const RAW_MESSAGES: { readonly [message: string]: readonly string[] } = {
  "etcdserverpb.InternalRaftRequest": ["header"],
};

/**
 * proto2 embedded messages that are always written and always there after decoding (pointer-free in
 * etcd up to 3.6).
 */
export const REQUIRED_MESSAGES: readonly string[] = [
  "raftpb.SnapshotMetadata.conf_state",
  "raftpb.Snapshot.metadata",
];

/**
 * proto2 scalars that can be absent. All other proto2 scalars are written even when zero, as etcd
 * does.
 */
export const OPTIONAL_SCALARS: readonly string[] = [
  "etcdserverpb.Request.PrevExist",
  "etcdserverpb.Request.Refresh",
];

/**
 * Messages whose codecs are generated code: those of put, range, txn, watch and leases, and what
 * Raft and the WAL write for each of them. Codecs of all others walk the table of messages.
 */
export const HOT_MESSAGES: readonly string[] = [
  "mvccpb.KeyValue",
  "mvccpb.Event",
  ...[
    "ResponseHeader",
    "RangeRequest",
    "RangeResponse",
    "PutRequest",
    "PutResponse",
    "DeleteRangeRequest",
    "DeleteRangeResponse",
    "RequestOp",
    "ResponseOp",
    "Compare",
    "TxnRequest",
    "TxnResponse",
    "WatchRequest",
    "WatchCreateRequest",
    "WatchCancelRequest",
    "WatchResponse",
    "LeaseGrantRequest",
    "LeaseGrantResponse",
    "LeaseRevokeRequest",
    "LeaseRevokeResponse",
    "LeaseCheckpoint",
    "LeaseCheckpointRequest",
    "LeaseKeepAliveRequest",
    "LeaseKeepAliveResponse",
    "RequestHeader",
    "InternalRaftRequest",
  ].map((name) => `etcdserverpb.${name}`),
  "raftpb.Entry",
  "raftpb.Message",
  "raftpb.HardState",
  "walpb.Record",
];
