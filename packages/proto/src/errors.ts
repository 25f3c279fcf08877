/**
 * etcd's errors: each has a name, a gRPC status and a text. Go clients know an error by its text,
 * so the texts are part of the protocol. Names are those of etcd's Go client without "Err"
 * (ErrEmptyKey is EmptyKey), or of its server where the client has none.
 */

/** The status codes of gRPC. */
export const GrpcStatus = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;
export type GrpcStatus = (typeof GrpcStatus)[keyof typeof GrpcStatus];

/** gRPC status and text of one error. */
export interface ErrorSpec {
  readonly grpcCode: GrpcStatus;
  readonly text: string;
}

/**
 * Every error of etcd's API by name. The keys are the closed set ErrorName: a table over it is
 * complete or does not compile.
 */
export const ERRORS = {
  EmptyKey: { grpcCode: GrpcStatus.INVALID_ARGUMENT, text: "etcdserver: key is not provided" },
  KeyNotFound: { grpcCode: GrpcStatus.INVALID_ARGUMENT, text: "etcdserver: key not found" },
  ValueProvided: { grpcCode: GrpcStatus.INVALID_ARGUMENT, text: "etcdserver: value is provided" },
  LeaseProvided: { grpcCode: GrpcStatus.INVALID_ARGUMENT, text: "etcdserver: lease is provided" },
  TooManyOps: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: too many operations in txn request",
  },
  DuplicateKey: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: duplicate key given in txn request",
  },
  InvalidClientAPIVersion: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: invalid client api version",
  },
  InvalidSortOption: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: invalid sort option",
  },
  Compacted: {
    grpcCode: GrpcStatus.OUT_OF_RANGE,
    text: "etcdserver: mvcc: required revision has been compacted",
  },
  FutureRev: {
    grpcCode: GrpcStatus.OUT_OF_RANGE,
    text: "etcdserver: mvcc: required revision is a future revision",
  },
  NoSpace: {
    grpcCode: GrpcStatus.RESOURCE_EXHAUSTED,
    text: "etcdserver: mvcc: database space exceeded",
  },
  LeaseNotFound: { grpcCode: GrpcStatus.NOT_FOUND, text: "etcdserver: requested lease not found" },
  LeaseExist: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: lease already exists",
  },
  LeaseTTLTooLarge: { grpcCode: GrpcStatus.OUT_OF_RANGE, text: "etcdserver: too large lease TTL" },
  WatchCanceled: { grpcCode: GrpcStatus.CANCELLED, text: "etcdserver: watch canceled" },
  MemberExist: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: member ID already exist",
  },
  PeerURLExist: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: Peer URLs already exists",
  },
  MemberNotEnoughStarted: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: re-configuration failed due to not enough started members",
  },
  MemberBadURLs: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: given member URLs are invalid",
  },
  MemberNotFound: { grpcCode: GrpcStatus.NOT_FOUND, text: "etcdserver: member not found" },
  MemberNotLearner: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: can only promote a learner member",
  },
  MemberLearnerNotReady: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: can only promote a learner member which is in sync with leader",
  },
  TooManyLearners: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: too many learner members in cluster",
  },
  ClusterIDMismatch: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: cluster ID mismatch",
  },
  RequestTooLarge: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: request is too large",
  },
  TooManyRequests: {
    grpcCode: GrpcStatus.RESOURCE_EXHAUSTED,
    text: "etcdserver: too many requests",
  },
  RootUserNotExist: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: root user does not exist",
  },
  RootRoleNotExist: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: root user does not have root role",
  },
  UserAlreadyExist: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: user name already exists",
  },
  UserEmpty: { grpcCode: GrpcStatus.INVALID_ARGUMENT, text: "etcdserver: user name is empty" },
  UserNotFound: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: user name not found",
  },
  RoleAlreadyExist: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: role name already exists",
  },
  RoleNotFound: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: role name not found",
  },
  RoleEmpty: { grpcCode: GrpcStatus.INVALID_ARGUMENT, text: "etcdserver: role name is empty" },
  AuthFailed: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: authentication failed, invalid user ID or password",
  },
  PermissionNotGiven: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: permission not given",
  },
  PermissionDenied: {
    grpcCode: GrpcStatus.PERMISSION_DENIED,
    text: "etcdserver: permission denied",
  },
  RoleNotGranted: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: role is not granted to the user",
  },
  PermissionNotGranted: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: permission is not granted to the role",
  },
  AuthNotEnabled: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: authentication is not enabled",
  },
  InvalidAuthToken: {
    grpcCode: GrpcStatus.UNAUTHENTICATED,
    text: "etcdserver: invalid auth token",
  },
  InvalidAuthMgmt: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: invalid auth management",
  },
  AuthOldRevision: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: revision of auth store is old",
  },
  NoLeader: { grpcCode: GrpcStatus.UNAVAILABLE, text: "etcdserver: no leader" },
  NotLeader: { grpcCode: GrpcStatus.FAILED_PRECONDITION, text: "etcdserver: not leader" },
  LeaderChanged: { grpcCode: GrpcStatus.UNAVAILABLE, text: "etcdserver: leader changed" },
  NotCapable: { grpcCode: GrpcStatus.FAILED_PRECONDITION, text: "etcdserver: not capable" },
  Stopped: { grpcCode: GrpcStatus.UNAVAILABLE, text: "etcdserver: server stopped" },
  Timeout: { grpcCode: GrpcStatus.UNAVAILABLE, text: "etcdserver: request timed out" },
  TimeoutDueToLeaderFail: {
    grpcCode: GrpcStatus.UNAVAILABLE,
    text: "etcdserver: request timed out, possibly due to previous leader failure",
  },
  TimeoutDueToConnectionLost: {
    grpcCode: GrpcStatus.UNAVAILABLE,
    text: "etcdserver: request timed out, possibly due to connection lost",
  },
  TimeoutWaitAppliedIndex: {
    grpcCode: GrpcStatus.UNAVAILABLE,
    text: "etcdserver: request timed out, waiting for the applied index took too long",
  },
  Unhealthy: { grpcCode: GrpcStatus.UNAVAILABLE, text: "etcdserver: unhealthy cluster" },
  Corrupt: { grpcCode: GrpcStatus.DATA_LOSS, text: "etcdserver: corrupt cluster" },
  NotSupportedForLearner: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: rpc not supported for learner",
  },
  BadLeaderTransferee: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: bad leader transferee",
  },
  WrongDowngradeVersionFormat: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: wrong downgrade target version format",
  },
  InvalidDowngradeTargetVersion: {
    grpcCode: GrpcStatus.INVALID_ARGUMENT,
    text: "etcdserver: invalid downgrade target version",
  },
  ClusterVersionUnavailable: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: cluster version not found during downgrade",
  },
  DowngradeInProcess: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: cluster has a downgrade job in progress",
  },
  NoInflightDowngrade: {
    grpcCode: GrpcStatus.FAILED_PRECONDITION,
    text: "etcdserver: no inflight downgrade job",
  },
  Canceled: { grpcCode: GrpcStatus.CANCELLED, text: "etcdserver: request canceled" },
  DeadlineExceeded: {
    grpcCode: GrpcStatus.DEADLINE_EXCEEDED,
    text: "etcdserver: context deadline exceeded",
  },
} as const satisfies { readonly [name: string]: ErrorSpec };

/** The name of an error of etcd's API. */
export type ErrorName = keyof typeof ERRORS;

/** An operation that failed in one of the ways etcd's API knows. */
export class EtcdError extends Error {
  override readonly name = "EtcdError";
  readonly code: ErrorName;
  readonly grpcCode: GrpcStatus;

  /** `message` is etcd's text; give another only where etcd itself does. */
  constructor(code: ErrorName, message: string = ERRORS[code].text, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.grpcCode = ERRORS[code].grpcCode;
  }
}

/** The error of that name, with its own text. */
export function errorOf(name: ErrorName): EtcdError {
  return new EtcdError(name);
}

const NAME_BY_TEXT: ReadonlyMap<string, ErrorName> = new Map(
  (Object.keys(ERRORS) as ErrorName[]).map((name) => [ERRORS[name].text, name]),
);

/**
 * The name of the error with exactly this text, as a client finds it in grpc-message; undefined for
 * any other text.
 */
export function errorNameOf(text: string): ErrorName | undefined {
  return NAME_BY_TEXT.get(text);
}
