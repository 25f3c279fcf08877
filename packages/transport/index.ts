/** Members talking to members: the transport's contract. The real twin is in ./node. */
export { RareLog } from "./src/rare-log.ts";
export * from "./src/transport.ts";
