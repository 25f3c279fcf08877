/**
 * etcd's errors: each has a name, a gRPC status and a text. Go clients recognise errors by text, so
 * the texts are part of the protocol. Names are those of etcd's Go client without "Err"
 * (ErrEmptyKey is EmptyKey), or of its server where the client has none.
 */
import { GrpcCode } from "./grpc-code.ts";

/** gRPC status and text of one error. */
export interface ErrorSpec {
  readonly grpcCode: GrpcCode;
  readonly text: string;
}

/**
 * Every error of etcd's API by name. The keys are the closed set ErrorName: a table over it is
 * complete or does not compile.
 */
export const ERRORS = {
  EmptyKey: { grpcCode: GrpcCode.InvalidArgument, text: "etcdserver: key is not provided" },
  KeyNotFound: { grpcCode: GrpcCode.InvalidArgument, text: "etcdserver: key not found" },
  ValueProvided: { grpcCode: GrpcCode.InvalidArgument, text: "etcdserver: value is provided" },
  LeaseProvided: { grpcCode: GrpcCode.InvalidArgument, text: "etcdserver: lease is provided" },
  TooManyOps: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: too many operations in txn request",
  },
  DuplicateKey: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: duplicate key given in txn request",
  },
  InvalidClientAPIVersion: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: invalid client api version",
  },
  InvalidSortOption: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: invalid sort option",
  },
  Compacted: {
    grpcCode: GrpcCode.OutOfRange,
    text: "etcdserver: mvcc: required revision has been compacted",
  },
  FutureRev: {
    grpcCode: GrpcCode.OutOfRange,
    text: "etcdserver: mvcc: required revision is a future revision",
  },
  NoSpace: {
    grpcCode: GrpcCode.ResourceExhausted,
    text: "etcdserver: mvcc: database space exceeded",
  },
  LeaseNotFound: { grpcCode: GrpcCode.NotFound, text: "etcdserver: requested lease not found" },
  LeaseExist: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: lease already exists",
  },
  LeaseTTLTooLarge: { grpcCode: GrpcCode.OutOfRange, text: "etcdserver: too large lease TTL" },
  WatchCanceled: { grpcCode: GrpcCode.Canceled, text: "etcdserver: watch canceled" },
  MemberExist: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: member ID already exist",
  },
  PeerURLExist: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: Peer URLs already exists",
  },
  MemberNotEnoughStarted: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: re-configuration failed due to not enough started members",
  },
  MemberBadURLs: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: given member URLs are invalid",
  },
  MemberNotFound: { grpcCode: GrpcCode.NotFound, text: "etcdserver: member not found" },
  MemberNotLearner: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: can only promote a learner member",
  },
  MemberLearnerNotReady: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: can only promote a learner member which is in sync with leader",
  },
  TooManyLearners: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: too many learner members in cluster",
  },
  ClusterIDMismatch: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: cluster ID mismatch",
  },
  RequestTooLarge: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: request is too large",
  },
  TooManyRequests: {
    grpcCode: GrpcCode.ResourceExhausted,
    text: "etcdserver: too many requests",
  },
  RootUserNotExist: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: root user does not exist",
  },
  RootRoleNotExist: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: root user does not have root role",
  },
  UserAlreadyExist: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: user name already exists",
  },
  UserEmpty: { grpcCode: GrpcCode.InvalidArgument, text: "etcdserver: user name is empty" },
  UserNotFound: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: user name not found",
  },
  RoleAlreadyExist: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: role name already exists",
  },
  RoleNotFound: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: role name not found",
  },
  RoleEmpty: { grpcCode: GrpcCode.InvalidArgument, text: "etcdserver: role name is empty" },
  AuthFailed: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: authentication failed, invalid user ID or password",
  },
  PermissionNotGiven: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: permission not given",
  },
  PermissionDenied: {
    grpcCode: GrpcCode.PermissionDenied,
    text: "etcdserver: permission denied",
  },
  RoleNotGranted: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: role is not granted to the user",
  },
  PermissionNotGranted: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: permission is not granted to the role",
  },
  AuthNotEnabled: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: authentication is not enabled",
  },
  InvalidAuthToken: {
    grpcCode: GrpcCode.Unauthenticated,
    text: "etcdserver: invalid auth token",
  },
  InvalidAuthMgmt: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: invalid auth management",
  },
  AuthOldRevision: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: revision of auth store is old",
  },
  NoLeader: { grpcCode: GrpcCode.Unavailable, text: "etcdserver: no leader" },
  NotLeader: { grpcCode: GrpcCode.FailedPrecondition, text: "etcdserver: not leader" },
  LeaderChanged: { grpcCode: GrpcCode.Unavailable, text: "etcdserver: leader changed" },
  NotCapable: { grpcCode: GrpcCode.FailedPrecondition, text: "etcdserver: not capable" },
  Stopped: { grpcCode: GrpcCode.Unavailable, text: "etcdserver: server stopped" },
  Timeout: { grpcCode: GrpcCode.Unavailable, text: "etcdserver: request timed out" },
  TimeoutDueToLeaderFail: {
    grpcCode: GrpcCode.Unavailable,
    text: "etcdserver: request timed out, possibly due to previous leader failure",
  },
  TimeoutDueToConnectionLost: {
    grpcCode: GrpcCode.Unavailable,
    text: "etcdserver: request timed out, possibly due to connection lost",
  },
  TimeoutWaitAppliedIndex: {
    grpcCode: GrpcCode.Unavailable,
    text: "etcdserver: request timed out, waiting for the applied index took too long",
  },
  Unhealthy: { grpcCode: GrpcCode.Unavailable, text: "etcdserver: unhealthy cluster" },
  Corrupt: { grpcCode: GrpcCode.DataLoss, text: "etcdserver: corrupt cluster" },
  NotSupportedForLearner: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: rpc not supported for learner",
  },
  BadLeaderTransferee: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: bad leader transferee",
  },
  WrongDowngradeVersionFormat: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: wrong downgrade target version format",
  },
  InvalidDowngradeTargetVersion: {
    grpcCode: GrpcCode.InvalidArgument,
    text: "etcdserver: invalid downgrade target version",
  },
  ClusterVersionUnavailable: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: cluster version not found during downgrade",
  },
  DowngradeInProcess: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: cluster has a downgrade job in progress",
  },
  NoInflightDowngrade: {
    grpcCode: GrpcCode.FailedPrecondition,
    text: "etcdserver: no inflight downgrade job",
  },
  Canceled: { grpcCode: GrpcCode.Canceled, text: "etcdserver: request canceled" },
  DeadlineExceeded: {
    grpcCode: GrpcCode.DeadlineExceeded,
    text: "etcdserver: context deadline exceeded",
  },
} as const satisfies { readonly [name: string]: ErrorSpec };

/** The name of an error of etcd's API. */
export type ErrorName = keyof typeof ERRORS;

/** An operation that failed with an error of etcd's catalogue. */
export class EtcdError extends Error {
  override readonly name = "EtcdError";
  readonly code: ErrorName;
  readonly grpcCode: GrpcCode;

  /** @param message etcd's text; another one only where etcd itself has another */
  constructor(code: ErrorName, message: string = ERRORS[code].text, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.grpcCode = ERRORS[code].grpcCode;
  }
}

/** The error of that name, with its catalogue text. */
export function errorOf(name: ErrorName): EtcdError {
  return new EtcdError(name);
}

const NAME_BY_TEXT: ReadonlyMap<string, ErrorName> = new Map(
  (Object.keys(ERRORS) as ErrorName[]).map((name) => [ERRORS[name].text, name]),
);

/**
 * The name of the error with exactly this text, as grpc-message contains it; undefined for other
 * texts.
 */
export function errorNameOf(text: string): ErrorName | undefined {
  return NAME_BY_TEXT.get(text);
}
