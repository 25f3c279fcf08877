/**
 * Errors of the HTTP interface for keys: RFC 9457 problem documents.
 *
 *     {"type":"urn:quorate:problem:precondition-failed",    stable, for programs
 *      "title":"The key is not in the state ...",           the same for each of its type
 *      "status":412,
 *      "detail":"the key is at revision 7, ...; ...",       what was wrong; what would be right
 *      "code":"..."}                                        etcd's name of the error, if any
 *
 * docs/guide/http.md lists the types; a test compares the two.
 */
import { CodedError, type ErrorName, EtcdError, errorNameOf, GrpcCode } from "@quorate/proto";
import { StatusError } from "@quorate/rpc";
import { toStatusError } from "@quorate/services";

/** One type of problem: HTTP status, title, and what would be right. */
interface ProblemType {
  readonly status: number;
  readonly title: string;
  readonly advice: string;
}

const problem = (status: number, title: string, advice: string): ProblemType => ({
  status,
  title,
  advice,
});

/** All types by name; the type's URI is `urn:quorate:problem:NAME`. */
export const PROBLEMS = {
  "bad-key": problem(
    400,
    "The path is not a key",
    "write the key's bytes behind the path, those that a URL cannot have as %XX",
  ),
  "bad-parameter": problem(
    400,
    "The query has an invalid parameter",
    "see the parameters in docs/guide/http.md",
  ),
  "bad-precondition": problem(
    400,
    "A precondition is malformed",
    'send If-Match: "REVISION" or *, If-None-Match: * or "REVISION"',
  ),
  "bad-body": problem(
    400,
    "The body is not a valid transaction",
    'send JSON such as {"compare":[...],"then":[...],"else":[...]}',
  ),
  "bad-request": problem(
    400,
    "The request is not valid",
    "correct the request; repeating it as it is cannot succeed",
  ),
  "future-revision": problem(
    400,
    "The revision has not been reached",
    "read without ?rev=, or at the revision of the header Quorate-Revision or before",
  ),
  unauthenticated: problem(
    401,
    "The request proves no user",
    "send Authorization: Basic with name and password, or Bearer with a token",
  ),
  "permission-denied": problem(
    403,
    "The user may not do this",
    "ask for a role that permits it; `quoratectl auth can-i` explains",
  ),
  "cross-site": problem(
    403,
    "A browser sent the request for a page of another site",
    "allow the page's origin with --cors",
  ),
  "key-not-found": problem(404, "The key does not exist", "create it with PUT"),
  "lease-not-found": problem(
    404,
    "The lease does not exist",
    "it may have expired: make one with ?ttl=SECONDS",
  ),
  "method-not-allowed": problem(
    405,
    "The path does not have this method",
    "use a method of the header Allow",
  ),
  conflict: problem(409, "The cluster is not in a state for this", "change that state first"),
  compacted: problem(
    410,
    "The revision has been compacted",
    "read without ?rev=; a watch goes on behind the header Quorate-Revision of that response",
  ),
  "precondition-failed": problem(
    412,
    "The key is not in the state that the request requires",
    "read the key again, and send its ETag in If-Match",
  ),
  "body-too-large": problem(
    413,
    "The request is too large",
    "send less; --max-request-bytes is the bound",
  ),
  "too-many-requests": problem(429, "There are too many requests", "repeat it later, more slowly"),
  canceled: problem(499, "The request was canceled", "repeat it"),
  internal: problem(500, "The member failed", "see the member's log"),
  "not-implemented": problem(501, "The member does not offer this", "use a newer version"),
  unavailable: problem(
    503,
    "The member cannot serve the request now",
    "repeat it later, or at another member",
  ),
  "timed-out": problem(
    504,
    "The request took too long",
    "read the key before you repeat a write: it may have been applied, or may still be",
  ),
  "no-space": problem(
    507,
    "The store has reached its quota",
    "delete keys, compact, and disarm the alarm (docs/operate/runbook.md)",
  ),
};

/** The name of a type. */
export type ProblemName = keyof typeof PROBLEMS;

/** Every error of etcd's API as a type of problem. */
const OF_ERROR: { readonly [name in ErrorName]: ProblemName } = {
  EmptyKey: "bad-key",
  KeyNotFound: "key-not-found",
  ValueProvided: "bad-request",
  LeaseProvided: "bad-request",
  TooManyOps: "bad-body",
  DuplicateKey: "bad-body",
  InvalidClientAPIVersion: "bad-request",
  InvalidSortOption: "bad-request",
  Compacted: "compacted",
  FutureRev: "future-revision",
  NoSpace: "no-space",
  LeaseNotFound: "lease-not-found",
  LeaseExist: "conflict",
  LeaseTTLTooLarge: "bad-parameter",
  WatchCanceled: "canceled",
  MemberExist: "conflict",
  PeerURLExist: "conflict",
  MemberNotEnoughStarted: "conflict",
  MemberBadURLs: "bad-request",
  MemberNotFound: "conflict",
  MemberNotLearner: "conflict",
  MemberLearnerNotReady: "conflict",
  TooManyLearners: "conflict",
  ClusterIDMismatch: "conflict",
  RequestTooLarge: "body-too-large",
  TooManyRequests: "too-many-requests",
  RootUserNotExist: "conflict",
  RootRoleNotExist: "conflict",
  UserAlreadyExist: "conflict",
  // A request without credentials, where users are enforced.
  UserEmpty: "unauthenticated",
  UserNotFound: "unauthenticated",
  RoleAlreadyExist: "conflict",
  RoleNotFound: "conflict",
  RoleEmpty: "bad-request",
  AuthFailed: "unauthenticated",
  PermissionNotGiven: "bad-request",
  PermissionDenied: "permission-denied",
  RoleNotGranted: "conflict",
  PermissionNotGranted: "conflict",
  AuthNotEnabled: "conflict",
  InvalidAuthToken: "unauthenticated",
  InvalidAuthMgmt: "bad-request",
  AuthOldRevision: "unauthenticated",
  NoLeader: "unavailable",
  NotLeader: "unavailable",
  LeaderChanged: "unavailable",
  NotCapable: "not-implemented",
  Stopped: "unavailable",
  Timeout: "timed-out",
  TimeoutDueToLeaderFail: "timed-out",
  TimeoutDueToConnectionLost: "timed-out",
  TimeoutWaitAppliedIndex: "timed-out",
  Unhealthy: "unavailable",
  Corrupt: "internal",
  NotSupportedForLearner: "unavailable",
  BadLeaderTransferee: "conflict",
  WrongDowngradeVersionFormat: "bad-request",
  InvalidDowngradeTargetVersion: "bad-request",
  ClusterVersionUnavailable: "conflict",
  DowngradeInProcess: "conflict",
  NoInflightDowngrade: "conflict",
  Canceled: "canceled",
  DeadlineExceeded: "timed-out",
};

/** The type for a gRPC status whose text is none of etcd's. */
const OF_CODE: { readonly [code in GrpcCode]: ProblemName } = {
  [GrpcCode.OK]: "internal",
  [GrpcCode.Canceled]: "canceled",
  [GrpcCode.Unknown]: "internal",
  [GrpcCode.InvalidArgument]: "bad-request",
  [GrpcCode.DeadlineExceeded]: "timed-out",
  [GrpcCode.NotFound]: "bad-request",
  [GrpcCode.AlreadyExists]: "conflict",
  [GrpcCode.PermissionDenied]: "permission-denied",
  [GrpcCode.ResourceExhausted]: "too-many-requests",
  [GrpcCode.FailedPrecondition]: "conflict",
  [GrpcCode.Aborted]: "conflict",
  [GrpcCode.OutOfRange]: "bad-parameter",
  [GrpcCode.Unimplemented]: "not-implemented",
  [GrpcCode.Internal]: "internal",
  [GrpcCode.Unavailable]: "unavailable",
  [GrpcCode.DataLoss]: "internal",
  [GrpcCode.Unauthenticated]: "unauthenticated",
};

/** Additions to a problem. */
export interface ProblemExtras {
  readonly headers?: Readonly<Record<string, string>>;
  /** Members of the document besides those of RFC 9457. */
  readonly members?: Readonly<Record<string, string | number>>;
}

/** Ends a request with a problem. */
export class Problem extends CodedError<ProblemName> {
  readonly extras: ProblemExtras;

  /**
   * @param what what was wrong
   * @param right what would be right; undefined: the advice of the type
   */
  constructor(type: ProblemName, what: string, right?: string, extras: ProblemExtras = {}) {
    super("Problem", type, `${what}; ${right ?? PROBLEMS[type].advice}`);
    this.extras = extras;
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }

  /** The document, without its line's end. */
  get document(): string {
    const { status, title } = PROBLEMS[this.code];
    const type = `urn:quorate:problem:${this.code}`;
    return JSON.stringify({ type, title, status, detail: this.message, ...this.extras.members });
  }

  /** The headers of a response. */
  get headers(): Readonly<Record<string, string>> {
    return {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      ...HEADERS[this.code as keyof typeof HEADERS],
      ...this.extras.headers,
    };
  }
}

/** Headers that some types have. */
const HEADERS = {
  unauthenticated: { "www-authenticate": 'Basic realm="quorate", charset="UTF-8", Bearer' },
  "too-many-requests": { "retry-after": "1" },
  unavailable: { "retry-after": "1" },
} as const satisfies { readonly [name in ProblemName]?: Readonly<Record<string, string>> };

/** What any error of a request comes to. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const status = toStatusError(error);
  const code = error instanceof EtcdError ? error.code : errorNameOf(status.message);
  if (code !== undefined)
    return new Problem(OF_ERROR[code], status.message, undefined, { members: { code } });
  // An error that is none of ours says nothing to clients.
  if (status.code === GrpcCode.Unknown && !(error instanceof StatusError))
    return new Problem("internal", "the request failed");
  const type = OF_CODE[status.code as GrpcCode] ?? "internal";
  return new Problem(type, status.message);
}
