/**
 * The header of an answer, as the store knows it: who answers, and in which term, the server fills
 * in.
 */
import type { ResponseHeader } from "@quorate/proto";

export function headerAt(revision: number): ResponseHeader {
  return { clusterId: 0n, memberId: 0n, revision, raftTerm: 0 };
}
