/** Members talking to members: the transport's contract. The HTTP/2 twin is in ./node. */
export * from "./src/transport.ts";
