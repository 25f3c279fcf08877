/** etcd's v2 API on keys of v3. */
export { directoryExpiry } from "./src/expiry.ts";
export { loadV2Routes } from "./src/load.ts";
