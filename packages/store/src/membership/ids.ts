/**
 * Member and cluster ids, computed as etcd computes them (etcd: server/etcdserver/api/membership),
 * so that the same flags give the same ids: the first 8 bytes, big-endian, of a SHA-1.
 */
import { sha1 } from "@noble/hashes/legacy.js";
import { fromUtf8, readBigU64BE, writeBigU64BE } from "@quorate/proto";

/**
 * @param peerUrls in any order; sorted here.
 * @param token the cluster's token.
 * @param addedAtSeconds for a member that is added later: seconds since 1970, so that the same URLs
 * give a new id.
 */
export function memberId(
  peerUrls: readonly string[],
  token: string,
  addedAtSeconds?: number,
): bigint {
  const text =
    [...peerUrls].sort().join("") +
    token +
    (addedAtSeconds === undefined ? "" : String(addedAtSeconds));
  return readBigU64BE(sha1(fromUtf8(text)));
}

/** The id of a cluster that starts with these members. */
export function clusterId(memberIds: readonly bigint[]): bigint {
  const sorted = [...memberIds].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const bytes = new Uint8Array(8 * sorted.length);
  sorted.forEach((id, i) => {
    writeBigU64BE(bytes, id, 8 * i);
  });
  return readBigU64BE(sha1(bytes));
}
