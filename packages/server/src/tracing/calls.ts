/**
 * What the inner span of each method is called and says of its request, as etcd's do
 * (server/etcdserver/v3_server.go, tracing.go).
 */
import {
  CompactionRequest,
  DeleteRangeRequest,
  KVService,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  LeaseService,
  PutRequest,
  RangeRequest,
  type RequestOp,
  TxnRequest,
  toUtf8,
  type WatchCreateRequest,
} from "@quorate/proto";
import { isReadOnlyTxn } from "@quorate/store";
import type { Attributes } from "./span.ts";

/** The name of the span, and its attributes from the request's bytes, which may be no request. */
export interface InnerSpan {
  readonly name: string;
  attributes(request: Uint8Array): Attributes;
}

/** By the method's path. */
export const innerSpans: ReadonlyMap<string, InnerSpan> = new Map<string, InnerSpan>([
  [
    KVService.methods.Range.path,
    {
      name: "range",
      attributes: (bytes) => {
        const request = RangeRequest.decode(bytes);
        return [...rangeAttributes(request), ["keys_only", request.keysOnly]];
      },
    },
  ],
  [
    KVService.methods.RangeStream.path,
    {
      name: "range_streaming",
      attributes: (bytes) => rangeAttributes(RangeRequest.decode(bytes)),
    },
  ],
  [
    KVService.methods.Put.path,
    { name: "put", attributes: (bytes) => [["key", toUtf8(PutRequest.decode(bytes).key)]] },
  ],
  [
    KVService.methods.DeleteRange.path,
    {
      name: "delete_range",
      attributes: (bytes) => {
        const { key, rangeEnd } = DeleteRangeRequest.decode(bytes);
        return [
          ["range_begin", toUtf8(key)],
          ["range_end", toUtf8(rangeEnd)],
        ];
      },
    },
  ],
  [
    KVService.methods.Txn.path,
    { name: "txn", attributes: (bytes) => txnAttributes(TxnRequest.decode(bytes)) },
  ],
  [
    KVService.methods.Compact.path,
    {
      name: "compact",
      attributes: (bytes) => {
        const { physical, revision } = CompactionRequest.decode(bytes);
        return [
          ["is_physical", physical],
          ["rev", revision],
        ];
      },
    },
  ],
  [
    LeaseService.methods.LeaseGrant.path,
    {
      name: "lease_grant",
      attributes: (bytes) => {
        const { ID, TTL } = LeaseGrantRequest.decode(bytes);
        return [
          ["id", ID],
          ["ttl", TTL],
        ];
      },
    },
  ],
  [
    LeaseService.methods.LeaseRevoke.path,
    { name: "lease_revoke", attributes: (bytes) => [["id", LeaseRevokeRequest.decode(bytes).ID]] },
  ],
]);

function rangeAttributes(request: RangeRequest): Attributes {
  const { key, rangeEnd, revision, limit, countOnly } = request;
  return [
    ["range_begin", toUtf8(key)],
    ["range_end", toUtf8(rangeEnd)],
    ["rev", revision],
    ["limit", limit],
    ["count_only", countOnly],
  ];
}

function txnAttributes(request: TxnRequest): Attributes {
  const { compare, success, failure } = request;
  const firstKey = compare.find(({ key }) => key.length > 0)?.key;
  return [
    ["compare_first_key", firstKey === undefined ? "" : toUtf8(firstKey)],
    ["success_first_key", firstOpKey(success)],
    [
      "success_first_type",
      success
        .map(({ request: op }) => OP_TYPES[op?.case ?? ""] ?? "")
        .find((type) => type !== "") ?? "",
    ],
    ["success_first_lease", firstLease(success)],
    ["compare_len", compare.length],
    ["success_len", success.length],
    ["failure_len", failure.length],
    ["read_only", isReadOnlyTxn(request)],
  ];
}

const OP_TYPES: Readonly<Record<string, string>> = {
  requestPut: "put",
  requestRange: "range",
  requestDeleteRange: "delete_range",
  requestTxn: "txn",
};

function firstOpKey(ops: readonly RequestOp[]): string {
  for (const { request: op } of ops) {
    if (op !== undefined && op.case !== "requestTxn" && op.value.key.length > 0)
      return toUtf8(op.value.key);
  }
  return "";
}

function firstLease(ops: readonly RequestOp[]): bigint {
  for (const { request: op } of ops) if (op?.case === "requestPut") return op.value.lease;
  return -1n;
}

/** Of a watch that is created. */
export function watchAttributes(request: WatchCreateRequest): Attributes {
  const { key, rangeEnd, startRevision, progressNotify, prevKv, fragment } = request;
  return [
    ["key", toUtf8(key)],
    ["range_end", toUtf8(rangeEnd)],
    ["start_rev", startRevision],
    ["progress_notify", progressNotify],
    ["prev_kv", prevKv],
    ["fragment", fragment],
  ];
}
