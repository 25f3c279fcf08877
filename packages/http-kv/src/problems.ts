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

/** All types by name; the type's URI is `urn:quorate:problem:NAME`. */
export const PROBLEMS = {
  "bad-key": {
    status: 400,
    title: "The path is not a key",
    advice: "write the key's bytes behind the path, those that a URL cannot have as %XX",
  },
  "bad-parameter": {
    status: 400,
    title: "The query has an invalid parameter",
    advice: "see the parameters in docs/guide/http.md",
  },
  "bad-precondition": {
    status: 400,
    title: "A precondition is malformed",
    advice: 'send If-Match: "REVISION" or *, If-None-Match: * or "REVISION"',
  },
  "bad-body": {
    status: 400,
    title: "The body is not a valid transaction",
    advice: 'send JSON such as {"compare":[...],"then":[...],"else":[...]}',
  },
  "bad-request": {
    status: 400,
    title: "The request is not valid",
    advice: "correct the request; repeating it as it is cannot succeed",
  },
  "future-revision": {
    status: 400,
    title: "The revision has not been reached",
    advice: "read without ?rev=, or at the revision of the header Quorate-Revision or before",
  },
  unauthenticated: {
    status: 401,
    title: "The request proves no user",
    advice: "send Authorization: Basic with name and password, or Bearer with a token",
  },
  "permission-denied": {
    status: 403,
    title: "The user may not do this",
    advice: "ask for a role that permits it; `quoratectl auth can-i` explains",
  },
  "cross-site": {
    status: 403,
    title: "A browser sent the request for a page of another site",
    advice: "allow the page's origin with --cors",
  },
  "key-not-found": {
    status: 404,
    title: "The key does not exist",
    advice: "create it with PUT",
  },
  "lease-not-found": {
    status: 404,
    title: "The lease does not exist",
    advice: "it may have expired: make one with ?ttl=SECONDS",
  },
  "method-not-allowed": {
    status: 405,
    title: "The path does not have this method",
    advice: "use a method of the header Allow",
  },
  conflict: {
    status: 409,
    title: "The cluster is not in a state for this",
    advice: "change that state first",
  },
  compacted: {
    status: 410,
    title: "The revision has been compacted",
    advice:
      "read without ?rev=; a watch goes on behind the header Quorate-Revision of that response",
  },
  "precondition-failed": {
    status: 412,
    title: "The key is not in the state that the request requires",
    advice: "read the key again, and send its ETag in If-Match",
  },
  "body-too-large": {
    status: 413,
    title: "The request is too large",
    advice: "send less; --max-request-bytes is the bound",
  },
  "too-many-requests": {
    status: 429,
    title: "There are too many requests",
    advice: "repeat it later, more slowly",
  },
  canceled: { status: 499, title: "The request was canceled", advice: "repeat it" },
  internal: { status: 500, title: "The member failed", advice: "see the member's log" },
  "not-implemented": {
    status: 501,
    title: "The member does not offer this",
    advice: "use a newer version",
  },
  unavailable: {
    status: 503,
    title: "The member cannot serve the request now",
    advice: "repeat it later, or at another member",
  },
  "timed-out": {
    status: 504,
    title: "The request took too long",
    advice: "read the key before you repeat a write: it may have been applied, or may still be",
  },
  "no-space": {
    status: 507,
    title: "The store has reached its quota",
    advice: "delete keys, compact, and disarm the alarm (docs/operate/runbook.md)",
  },
} as const satisfies { readonly [name: string]: ProblemType };

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
