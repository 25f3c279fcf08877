/** Responses of the proxy to clients' watches that carry no events. */
import { type ResponseHeader, type WatchId, WatchResponse } from "@quorate/proto";

/** The watch_id of responses that concern no watch, or none that exists. */
export const NO_WATCH_ID = -1;

/** A watch was created. */
export function createdResponse(header: ResponseHeader | undefined, watchId: WatchId): Uint8Array {
  return WatchResponse.encode({ header, watchId, created: true });
}

/** A watch was refused (etcd: an empty header). */
export function refusedResponse(cancelReason: string): Uint8Array {
  const header = { clusterId: 0n, memberId: 0n, revision: 0, raftTerm: 0 };
  const watchId = NO_WATCH_ID;
  return WatchResponse.encode({ header, watchId, created: true, canceled: true, cancelReason });
}

/** A watch has ended: its client wanted so, or the cluster for the reasons in `from`. */
export function canceledResponse(
  from: Pick<WatchResponse, "header" | "compactRevision" | "cancelReason">,
  watchId: WatchId,
): Uint8Array {
  const { header, compactRevision, cancelReason } = from;
  return WatchResponse.encode({ header, watchId, canceled: true, compactRevision, cancelReason });
}

/** Everything up to the header's revision has been sent. */
export function progressResponse(header: ResponseHeader, watchId: WatchId): Uint8Array {
  return WatchResponse.encode({ header, watchId });
}
