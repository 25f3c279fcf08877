/** Ids of watches, which clients may choose. */
import type { WatchResponse } from "./gen/rpc.ts";

/** A number, or a bigint where it is no safe integer: as keys of a map each id is one value. */
export type WatchId = WatchResponse["watchId"];
