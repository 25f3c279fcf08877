/** Package etcdserverpb, which lives in three .proto files. */
export * from "./gen/etcdserver.ts";
export * from "./gen/raft_internal.ts";
export * from "./gen/rpc.ts";
