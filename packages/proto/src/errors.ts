/**
 * etcd's errors: each has a name, a gRPC status and a text. Go clients recognise errors by text, so
 * the texts are part of the protocol. Names are those of etcd's Go client without "Err"
 * (ErrEmptyKey is EmptyKey), or of its server where the client has none.
 */
import { GrpcCode } from "./grpc-code.ts";
import { StacklessError } from "./wire/stackless-error.ts";

/** gRPC status and text of one error. */
export interface ErrorSpec {
  readonly grpcCode: GrpcCode;
  readonly text: string;
}

/** Errors of one code. @param texts by name, without what all begin with */
function errorsOf<Name extends string>(
  grpcCode: GrpcCode,
  texts: Readonly<Record<Name, string>>,
): Readonly<Record<Name, ErrorSpec>> {
  const specs = Object.entries<string>(texts).map(([name, text]) => [
    name,
    { grpcCode, text: `etcdserver: ${text}` },
  ]);
  return Object.fromEntries(specs);
}

/**
 * Every error of etcd's API by name. The keys are the closed set ErrorName: a table over it is
 * complete or does not compile.
 */
export const ERRORS = {
  ...errorsOf(GrpcCode.InvalidArgument, {
    EmptyKey: "key is not provided",
    KeyNotFound: "key not found",
    ValueProvided: "value is provided",
    LeaseProvided: "lease is provided",
    TooManyOps: "too many operations in txn request",
    DuplicateKey: "duplicate key given in txn request",
    InvalidClientAPIVersion: "invalid client api version",
    InvalidSortOption: "invalid sort option",
    MemberBadURLs: "given member URLs are invalid",
    RequestTooLarge: "request is too large",
    UserEmpty: "user name is empty",
    RoleEmpty: "role name is empty",
    AuthFailed: "authentication failed, invalid user ID or password",
    PermissionNotGiven: "permission not given",
    InvalidAuthMgmt: "invalid auth management",
    AuthOldRevision: "revision of auth store is old",
    WrongDowngradeVersionFormat: "wrong downgrade target version format",
    InvalidDowngradeTargetVersion: "invalid downgrade target version",
  }),
  ...errorsOf(GrpcCode.NotFound, {
    LeaseNotFound: "requested lease not found",
    MemberNotFound: "member not found",
  }),
  ...errorsOf(GrpcCode.FailedPrecondition, {
    LeaseExist: "lease already exists",
    MemberExist: "member ID already exist",
    PeerURLExist: "Peer URLs already exists",
    MemberNotEnoughStarted: "re-configuration failed due to not enough started members",
    MemberNotLearner: "can only promote a learner member",
    MemberLearnerNotReady: "can only promote a learner member which is in sync with leader",
    TooManyLearners: "too many learner members in cluster",
    ClusterIDMismatch: "cluster ID mismatch",
    RootUserNotExist: "root user does not exist",
    RootRoleNotExist: "root user does not have root role",
    UserAlreadyExist: "user name already exists",
    UserNotFound: "user name not found",
    RoleAlreadyExist: "role name already exists",
    RoleNotFound: "role name not found",
    RoleNotGranted: "role is not granted to the user",
    PermissionNotGranted: "permission is not granted to the role",
    AuthNotEnabled: "authentication is not enabled",
    NotLeader: "not leader",
    NotCapable: "not capable",
    NotSupportedForLearner: "rpc not supported for learner",
    BadLeaderTransferee: "bad leader transferee",
    ClusterVersionUnavailable: "cluster version not found during downgrade",
    DowngradeInProcess: "cluster has a downgrade job in progress",
    NoInflightDowngrade: "no inflight downgrade job",
  }),
  ...errorsOf(GrpcCode.OutOfRange, {
    Compacted: "mvcc: required revision has been compacted",
    FutureRev: "mvcc: required revision is a future revision",
    LeaseTTLTooLarge: "too large lease TTL",
  }),
  ...errorsOf(GrpcCode.ResourceExhausted, {
    NoSpace: "mvcc: database space exceeded",
    TooManyRequests: "too many requests",
  }),
  ...errorsOf(GrpcCode.PermissionDenied, {
    PermissionDenied: "permission denied",
  }),
  ...errorsOf(GrpcCode.Unauthenticated, {
    InvalidAuthToken: "invalid auth token",
  }),
  ...errorsOf(GrpcCode.Unavailable, {
    NoLeader: "no leader",
    LeaderChanged: "leader changed",
    Stopped: "server stopped",
    Timeout: "request timed out",
    TimeoutDueToLeaderFail: "request timed out, possibly due to previous leader failure",
    TimeoutDueToConnectionLost: "request timed out, possibly due to connection lost",
    TimeoutWaitAppliedIndex: "request timed out, waiting for the applied index took too long",
    Unhealthy: "unhealthy cluster",
  }),
  ...errorsOf(GrpcCode.DataLoss, {
    Corrupt: "corrupt cluster",
  }),
  ...errorsOf(GrpcCode.Canceled, {
    WatchCanceled: "watch canceled",
    Canceled: "request canceled",
  }),
  ...errorsOf(GrpcCode.DeadlineExceeded, {
    DeadlineExceeded: "context deadline exceeded",
  }),
};

/** The name of an error of etcd's API. */
export type ErrorName = keyof typeof ERRORS;

/** An operation that failed with an error of etcd's catalogue. */
export class EtcdError extends StacklessError {
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
