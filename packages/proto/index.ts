/**
 * Codecs for the messages of proto/, service descriptors, byte helpers, CRC-32C, etcd's error
 * catalogue, and the base classes of errors.
 *
 * Every package is exported under its name (raftpb.Entry, walpb.Record, etcdserverpb.Request). The
 * messages of mvccpb and of the public API in etcdserverpb are also exported flat (PutRequest,
 * KeyValue); the few of etcdserver.proto (Metadata, Request) are not.
 */

export { ChunkQueue } from "./src/chunk-queue.ts";
export { crc32c } from "./src/crc32c.ts";
export { fileDescriptors, openApiDocument } from "./src/documents.ts";
export * from "./src/errors.ts";
export { escapeHtml } from "./src/escape-html.ts";
export * as etcdserverpb from "./src/etcdserverpb.ts";
export { fnv1a64 } from "./src/fnv.ts";
export * as authpb from "./src/gen/auth.ts";
export { jsonEnums } from "./src/gen/json.ts";
export * as mvccpb from "./src/gen/kv.ts";
export * from "./src/gen/kv.ts";
export * as leasepb from "./src/gen/lease.ts";
export * as membershippb from "./src/gen/membership.ts";
export * as raftpb from "./src/gen/raft.ts";
export * from "./src/gen/raft_internal.ts";
export * from "./src/gen/rpc.ts";
export * from "./src/gen/services.ts";
export * as snappb from "./src/gen/snap.ts";
export * as v3electionpb from "./src/gen/v3election.ts";
export * as v3lockpb from "./src/gen/v3lock.ts";
export * as walpb from "./src/gen/wal.ts";
export { goBool } from "./src/go-bool.ts";
export { GrpcCode } from "./src/grpc-code.ts";
export * as http2 from "./src/http2/http2.ts";
export {
  type Assert,
  assertOf,
  defined,
  InvariantError,
  type InvariantList,
  type Violated,
  violatedOf,
} from "./src/invariant.ts";
export {
  escapeGoJson,
  isPrintable,
  quoteByte,
  quoteBytes,
  quoteText,
} from "./src/json/go-text.ts";
export type {
  HttpRoute,
  JsonForm,
  RequestTranscoding,
  ResponseTranscoding,
} from "./src/json/interface.ts";
export { JsonError, JsonLimitError } from "./src/json/json-error.ts";
export { jsonToWire, transcodeRequest } from "./src/json/request.ts";
export { transcodeResponse, wireToJson } from "./src/json/response.ts";
export { httpRoutes } from "./src/json/routes.ts";
export type { JsonField, JsonMessage } from "./src/json/schema.ts";
export { JsonSplitter } from "./src/json/splitter.ts";
export { errorChunkJson, statusJson } from "./src/json/status.ts";
export { jsonTypes } from "./src/json/types.ts";
export { sequenceLength } from "./src/json/utf8.ts";
export { type FieldRow, fieldRows, isMessage } from "./src/table/fields.ts";
export type { WatchId } from "./src/watch-id.ts";
export {
  alloc,
  compare,
  concat,
  copyBytes,
  EMPTY,
  endOfPrefix,
  equals,
  fromBase64,
  fromHex,
  fromLatin1,
  fromUtf8,
  idFromHex,
  idToHex,
  readBigU64BE,
  readU32BE,
  readU32LE,
  readU64BE,
  toBase64,
  toHex,
  toLatin1,
  toUtf8,
  uint64Of,
  utf8Length,
  writeBigU64BE,
  writeFromBase64,
  writeLatin1,
  writeU32BE,
  writeU32LE,
  writeU64BE,
  writeUtf8,
} from "./src/wire/bytes.ts";
export { CodedError } from "./src/wire/coded-error.ts";
export { WireError } from "./src/wire/error.ts";
export type { MessageType, MethodDescriptor, ServiceDescriptor } from "./src/wire/message.ts";
export { Reader, TooMuchWorkError } from "./src/wire/reader.ts";
export { StacklessError } from "./src/wire/stackless-error.ts";
export {
  MAX_PREFIX_BYTES,
  prefix,
  putVarint,
  RESPONSE_RANGE_TAG,
  RESPONSES_TAG,
  sharedWriter,
  varintSize,
  Writer,
  writePrefix,
} from "./src/wire/writer.ts";
