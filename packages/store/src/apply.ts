/**
 * Applies committed entries: the chain of steps for each entry, the same on every member.
 *
 *     decode the entry -> alarm CORRUPT? -> decode the request -> alarm NOSPACE?
 *                      -> permitted? (authorize) -> apply (REQUESTS)
 *
 * A request that may take long is applied in steps (steps.ts), between which its caller may do
 * other work, but apply no other entry. Short requests are applied at once, which is cheaper.
 */
import {
  EMPTY,
  type ErrorName,
  EtcdError,
  errorOf,
  type InternalRaftRequest,
  Reader,
  WireError,
} from "@quorate/proto";
import type { AuthIdentity } from "./auth/authorize.ts";
import {
  isShortVerdict,
  operationsInEtcd,
  operationsOf,
  verdictInSteps,
  verdictNow,
} from "./auth/request-operations.ts";
import type { Steps } from "./backend/steps.ts";
import { InvalidRequestError } from "./entry/invalid-request.ts";
import { decodeEntry, isV2, malformation, plainEntry } from "./requests/entry-request.ts";
import type { ApplyState } from "./requests/request-record.ts";
import {
  type AnyRequestRecord,
  REQUEST_RECORDS,
  type RequestKind,
  type RequestOf,
  type ResponseOf,
} from "./requests/request-table.ts";
import { type IdentifiedRequest, identifiedRequest } from "./requests/token-roles.ts";

/** A request that was applied, with its response, whose header has the revision alone. */
type Success<K extends RequestKind> = {
  readonly [P in K]: {
    readonly requestId: bigint;
    readonly kind: P;
    readonly response: ResponseOf<P>;
    readonly error: undefined;
  };
}[K];

/** A request that was refused, or did not decode: it has changed nothing, on any member. */
interface Failure {
  readonly requestId: bigint;
  /** Undefined if it could not be decoded. */
  readonly kind: RequestKind | undefined;
  readonly response: undefined;
  /** InvalidRequestError for an entry that does not decode. */
  readonly error: EtcdError | InvalidRequestError;
}

/** An entry without a request: an empty one (request id 0), or a change of the configuration. */
interface NoRequest {
  readonly requestId: bigint;
  readonly kind: undefined;
  readonly response: undefined;
  readonly error: undefined;
}

/** The result of a request of kind K. */
export type Applied<K extends RequestKind = RequestKind> = Success<K> | Failure;

/** The result of an entry. `requestId` is the id under which the proposer waits. */
export type AppliedEntry = Applied | NoRequest;

const NOTHING: NoRequest = {
  requestId: 0n,
  kind: undefined,
  response: undefined,
  error: undefined,
};

/** The dependencies of applying an entry. */
export interface ApplyContext {
  readonly state: ApplyState;
  readonly callers: Callers;
}

/** The callers on this member that wait for the results of requests. */
export interface Callers {
  /** The request of this id begins to be applied. Returns whether a caller waits for its result. */
  applies(requestId: bigint): boolean;
}

/** As if a caller waited for each request. */
export const ALL_AWAITED: Callers = { applies: () => true };
/** Where no caller waits for any. */
export const NONE_AWAITED: Callers = { applies: () => false };

/** One for all entries: a request is decoded before the next entry is looked at. */
const requestReader = new Reader(EMPTY);

/**
 * Applies the request in an entry's data. Returns the result, or the steps that produce it, which
 * must run to their end before anything else is applied. Data that does not decode results in an
 * error, the same on every member, and changes nothing: a request is decoded completely before it
 * is applied. Throws, or the steps throw, errors that are not a result of the request: damage and
 * broken invariants.
 */
export function applyRequest(
  context: ApplyContext,
  data: Uint8Array,
): AppliedEntry | Steps<AppliedEntry> {
  if (data.length === 0) return NOTHING;
  const plain = plainEntry(data, requestReader);
  if (plain !== undefined) {
    const { header, known } = plain;
    return applyKnown(context, known.kind, known.record, header, header.ID, data);
  }
  let entry: InternalRaftRequest;
  let identified: IdentifiedRequest;
  try {
    entry = decodeEntry(data);
    identified = identifiedRequest(entry);
  } catch (error) {
    return failed(0n, undefined, data, error);
  }
  const { request: carried, identity } = identified;
  const requestId = entry.ID !== 0n ? entry.ID : (entry.header?.ID ?? 0n);
  if (identity.roles !== undefined) context.state.auth.noteTokenRoles();
  for (const [kind, record] of REQUEST_RECORDS) {
    const bytes = carried[kind];
    if (bytes === undefined) continue;
    requestReader.reset(bytes);
    return applyKnown(context, kind, record, identity, requestId, data);
  }
  if (isV2(data)) return { ...NOTHING, requestId };
  const malformed = malformation(data);
  if (malformed !== undefined) {
    return { requestId, kind: undefined, response: undefined, error: malformed };
  }
  throw new Error(
    `an entry carries a request that this version does not know (${data.length} bytes): a newer ` +
      "member wrote it; upgrade this one",
  );
}

/**
 * Applies the request that requestReader is about to read, one of this kind. Each entry comes
 * through here: a function is made only where users and roles are asked.
 * @param data the entry's
 */
function applyKnown(
  context: ApplyContext,
  kind: RequestKind,
  record: AnyRequestRecord,
  identity: AuthIdentity,
  requestId: bigint,
  data: Uint8Array,
): Applied | Steps<Applied> {
  try {
    const request = admitted(context, record);
    const { state, callers } = context;
    const outcome = state.auth.isEnabled
      ? applyPermitted(context, kind, record, request, identity, requestId)
      : record.apply(state, request, callers.applies(requestId));
    if (isSteps(outcome)) return finish(requestId, kind, data, outcome);
    return succeeded(requestId, kind, outcome);
  } catch (error) {
    return failed(requestId, kind, data, error);
  }
}

function applyPermitted(
  { state, callers }: ApplyContext,
  kind: RequestKind,
  record: AnyRequestRecord,
  request: RequestOf<RequestKind>,
  identity: AuthIdentity,
  requestId: bigint,
): unknown {
  return permitted(state, identity, kind, request, () =>
    record.apply(state, request, callers.applies(requestId)),
  );
}

/**
 * The links of the chain that alarms are.
 * @returns the decoded request
 * @throws EtcdError Corrupt, NoSpace; WireError
 */
function admitted(
  { state: { alarms } }: ApplyContext,
  { type, refusedWhenCorrupt, costBytes }: AnyRequestRecord,
): RequestOf<RequestKind> {
  if (alarms.corrupt && refusedWhenCorrupt) throw errorOf("Corrupt");
  const request = type.decodeFrom(requestReader);
  if (alarms.noSpace && costBytes !== undefined && costBytes(request) > 0) throw errorOf("NoSpace");
  return request;
}

/**
 * The link of the chain that users and roles are: `work`, if the user that the header names may
 * have it done by the state before this entry.
 * @throws EtcdError PermissionDenied, UserEmpty, AuthOldRevision, UserNotFound
 */
function permitted(
  { auth, leases }: ApplyState,
  identity: AuthIdentity,
  kind: RequestKind,
  request: RequestOf<RequestKind>,
  work: () => unknown,
): unknown {
  const operations = (auth.followsEtcd ? operationsInEtcd : operationsOf)(kind, request, leases);
  if (isShortVerdict(kind, request, leases)) {
    refuse(verdictNow(auth, identity, operations));
    return work();
  }
  return afterVerdict(verdictInSteps(auth, identity, operations, leases.stepKeys), work);
}

function* afterVerdict(verdict: Steps<ErrorName | undefined>, work: () => unknown): Steps<unknown> {
  refuse(yield* verdict);
  const outcome = work();
  return isSteps(outcome) ? yield* outcome : outcome;
}

function refuse(error: ErrorName | undefined): void {
  if (error !== undefined) throw errorOf(error);
}

function* finish(
  requestId: bigint,
  kind: RequestKind,
  data: Uint8Array,
  steps: Steps<unknown>,
): Steps<Applied> {
  try {
    return succeeded(requestId, kind, yield* steps);
  } catch (error) {
    return failed(requestId, kind, data, error);
  }
}

/** @param response what the record of this very kind has returned */
function succeeded(requestId: bigint, kind: RequestKind, response: unknown): Applied {
  return { requestId, kind, response, error: undefined } as Success<RequestKind>;
}

/** Turns an error that is a result of the request into one; rethrows any other. */
function failed(
  requestId: bigint,
  kind: RequestKind | undefined,
  data: Uint8Array,
  error: unknown,
): Failure {
  const isResponse = error instanceof EtcdError || error instanceof InvalidRequestError;
  const response = isResponse ? error : blamed(data, error);
  return { requestId, kind, response: undefined, error: response };
}

/** Distinguishes steps from a result. */
export function isSteps<T>(outcome: T | Steps<T>): outcome is Steps<T> {
  return (
    typeof outcome === "object" &&
    outcome !== null &&
    "next" in outcome &&
    typeof outcome.next === "function"
  );
}

/**
 * The error of an entry that does not decode. Rethrows `error` if the entry is valid: then a record
 * of the store may be damaged.
 */
function blamed(data: Uint8Array, error: unknown): InvalidRequestError {
  const malformed = error instanceof WireError ? malformation(data) : undefined;
  if (malformed === undefined) throw error;
  return malformed;
}
