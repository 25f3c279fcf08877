/** Members that differ: finding out, and mending it. */
export { Corruption } from "./corruption.ts";
export { askHashes } from "./peer-hash.ts";
