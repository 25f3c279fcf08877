/**
 * Whether a store follows etcd's rules where Quorate has others: its state comes from a cluster
 * with members of etcd, and all members have to apply each entry alike. It stays so: the members of
 * etcd may come back.
 *
 *     bucket meta: "quorate_follows_etcd", empty
 */
import { EMPTY, fromUtf8 } from "@quorate/proto";
import { type Backend, Bucket } from "./backend.ts";

const RECORD = fromUtf8("quorate_follows_etcd");

export function readFollowsEtcd(get: (key: Uint8Array) => Uint8Array | undefined): boolean {
  return get(RECORD) !== undefined;
}

/** Puts the record into the batch that is being collected. */
export function writeFollowsEtcd(backend: Backend): void {
  backend.put(Bucket.meta, RECORD, EMPTY);
}
