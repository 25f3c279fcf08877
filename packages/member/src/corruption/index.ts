/** Members that differ: finding out, and mending it. */
export { Corruption } from "./corruption.ts";
export { askHashes, type PeerHash } from "./peer-hash.ts";
