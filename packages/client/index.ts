/**
 * The TypeScript client: connect() to a cluster, then get, put, delete, txn, watch, leases, locks,
 * elections, users. src/ has no sockets; they are in node/.
 */

export type {
  AlarmMember,
  Compare,
  ErrorName,
  KeyValue,
  RequestOp,
  ResponseHeader,
  WatchResponse,
} from "@quorate/proto";
export { fromUtf8, toUtf8 } from "@quorate/proto";
export {
  type ClientOptions,
  connect,
  type DiscoveryOptions,
  type TlsOptions,
} from "./node/connect.ts";
export { WorkQueue, workQueue } from "./node/work-queue.ts";
export type { Auth } from "./src/auth.ts";
export { Barrier } from "./src/barrier.ts";
export {
  Cache,
  CacheClosedError,
  CacheFullError,
  type CacheOptions,
} from "./src/cache.ts";
export type { CallOptions, WaitOptions } from "./src/call-options.ts";
export { pause } from "./src/caller.ts";
export type { Change } from "./src/changes.ts";
export { Client } from "./src/client.ts";
export {
  bytes,
  InvalidValueError,
  json,
  type SchemaIssue,
  type StandardSchema,
  text,
  type ValueCodec,
} from "./src/codec.ts";
export { addTo, NotACountError } from "./src/counter.ts";
export type { LookupSrv } from "./src/discovery.ts";
export {
  campaign,
  electedLeader,
  type Leadership,
  NotLeaderError,
  type Observed,
  observeElection,
} from "./src/election.ts";
export { type Endpoint, parseEndpoint } from "./src/endpoint.ts";
export type { CircuitOptions } from "./src/endpoints.ts";
export { ClientError, type ErrorCode, type FailedCall } from "./src/errors.ts";
export { type Followed, type FollowOptions, follow, TooManyKeysError } from "./src/follow.ts";
export {
  type KeepAliveOptions,
  type LeaseEnd,
  LeaseEndedError,
  type LeaseKeepAlive,
} from "./src/lease-keep-alive.ts";
export type { Leases } from "./src/leases.ts";
export { type Lock, lockNamed, SessionExpiredError } from "./src/lock.ts";
export type { Entry, EntryChange, Namespace, NamespaceTransaction } from "./src/namespace.ts";
export type { QueueEntry } from "./src/queue.ts";
export {
  type GetPart,
  getEach,
  getStream,
  rangeParts,
  type StreamedGetOptions,
  streamedRange,
} from "./src/range-stream.ts";
export {
  type Bytes,
  type Comparison,
  compareCreateRevision,
  compareLease,
  compareModRevision,
  compareValue,
  compareVersion,
  type DeleteOptions,
  deleteRequest,
  type GetOptions,
  getRequest,
  opDelete,
  opGet,
  opPut,
  opTxn,
  type PutOptions,
  prefixEnd,
  putRequest,
  type RangeOptions,
  type TxnParts,
  txnRequest,
} from "./src/requests.ts";
export type {
  DeleteResult,
  GetResult,
  OpResult,
  PutResult,
  TxnResult,
  TxnResultOf,
} from "./src/responses.ts";
export { readLock, writeLock } from "./src/rw-lock.ts";
export { semaphorePermit } from "./src/semaphore.ts";
export type { Session, SessionOptions } from "./src/session.ts";
export type { ClientStream } from "./src/stream.ts";
export type { CallTrace } from "./src/tracing.ts";
export { ConflictError, type Transaction, type TransactionOptions } from "./src/transaction.ts";
export type { Watch, WatchOptions } from "./src/watch.ts";
