/** etcdserverpb.KV in a namespace: requests and responses are changed around the plain service. */
import { defined, GrpcCode, KVService, WireError } from "@quorate/proto";
import { joinMessage, StatusError, type StreamHandler, type UnaryHandler } from "@quorate/rpc";
import { type Change, passStream } from "../upstream/pass-through.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { Namespace } from "./namespace.ts";

const { Range, RangeStream, Put, DeleteRange, Txn } = KVService.methods;

/** The methods of `plain` as clients of the namespace see them. Compaction concerns all keys. */
export function inNamespace(
  plain: ReadonlyMap<string, UnaryHandler>,
  namespace: Namespace,
): Map<string, UnaryHandler> {
  const changed = new Map(plain);
  const change = (path: string, request: Change, response: Change): void => {
    const handler = defined(plain.get(path), "the handler");
    changed.set(path, async (bytes, context) =>
      response(joinMessage(await handler(checked(request, bytes), context))),
    );
  };
  change(
    Range.path,
    (bytes) => namespace.rangeRequest(bytes),
    (bytes) => namespace.rangeResponse(bytes),
  );
  change(
    Put.path,
    (bytes) => namespace.putRequest(bytes),
    (bytes) => namespace.putResponse(bytes),
  );
  change(
    DeleteRange.path,
    (bytes) => namespace.deleteRequest(bytes),
    (bytes) => namespace.deleteResponse(bytes),
  );
  change(
    Txn.path,
    (bytes) => namespace.txnRequest(bytes),
    (bytes) => namespace.txnResponse(bytes),
  );
  return changed;
}

/** RangeStream, which etcd's proxy does not have. */
export function rangeStream(
  upstream: Upstream,
  namespace: Namespace | undefined,
): Map<string, StreamHandler> {
  const handler =
    namespace === undefined
      ? passStream(upstream, RangeStream.path)
      : passStream(
          upstream,
          RangeStream.path,
          (bytes) => checked((request) => namespace.rangeRequest(request), bytes),
          (bytes) => namespace.rangeStreamResponse(bytes),
        );
  return new Map([[RangeStream.path, handler]]);
}

/** A changed request; what cannot be decoded is refused with grpc-go's text. */
export function checked(change: Change, bytes: Uint8Array): Uint8Array {
  try {
    return change(bytes);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    throw new StatusError(GrpcCode.Internal, `grpc: error unmarshalling request: ${error.message}`);
  }
}
