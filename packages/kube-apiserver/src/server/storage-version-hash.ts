/** The hash of a resource's storage version in discovery (apiserver: storageversionhash.go). */
import { sha256 } from "@noble/hashes/sha2.js";
import type { GroupVersionKind } from "@quorate/kube-storage";
import { fromUtf8, toBase64 } from "@quorate/proto";

/** Changes when objects are stored in another version. */
export function storageVersionHash({ group, version, kind }: GroupVersionKind): string {
  return toBase64(sha256(fromUtf8(`${group}/${version}/${kind}`)).subarray(0, 8));
}
