/** The store's part of a response header; the server adds the member and the term. */
import type { ResponseHeader } from "@quorate/proto";

export function headerAt(revision: number): ResponseHeader {
  return { clusterId: 0n, memberId: 0n, revision, raftTerm: 0 };
}
