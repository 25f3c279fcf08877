/** Members talking to members: the transport's contract. The real twin is in ./node. */
export * from "./src/transport.ts";
