/** Parts of services that the tests of other packages look at. */
export { LocalClient } from "../src/concurrency/local-client.ts";
export { MAX_RECHECKED_LEASES } from "../src/v3/keep-alives.ts";
export { MAX_CHUNK_REQUESTS, nextChunkKeys } from "../src/v3/range-stream.ts";
export { MAX_REQUEST_FIELDS, requestCheck } from "../src/v3/request-work.ts";
export {
  MAX_CLIENT_SNAPSHOTS,
  MAX_SNAPSHOTS_OF_ONE_CLIENT,
  MAX_WAITING_SNAPSHOTS_OF_ONE_CLIENT,
  MIN_SNAPSHOT_PROGRESS_BYTES,
  SNAPSHOT_STALL_MS,
  snapshotStreams,
} from "../src/v3/snapshot.ts";
export { ClientVersions, MAX_CLIENT_VERSIONS, PAGE_BOUNDS } from "../src/v3/table.ts";
