/**
 * Responses that differ from etcd's on purpose, each with the reason
 * (docs/reference/divergence.md).
 */
import { isDeepStrictEqual } from "node:util";
import type { GatewayResponse } from "./exchange.ts";
import type { GatewayRequest } from "./request.ts";

/** One kind of difference. */
export interface KnownDifference {
  readonly reason: string;
  /** Whether a differing pair is of this kind. */
  readonly applies: (
    request: GatewayRequest,
    etcd: GatewayResponse,
    ours: GatewayResponse,
  ) => boolean;
}

const STREAMS = /^\/v3(beta)?\/(watch|lease\/keepalive)$/;

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    reason: "broken JSON in a stream ends it with an error; etcd stops reading in silence",
    applies: ({ path }, etcd, ours) =>
      STREAMS.test(path) &&
      /"error":\{"code":3,"message":"Failed to decode request: /.test(ours.body) &&
      ours.body.startsWith(etcd.body),
  },
  {
    reason: "a lock's response has its create_revision, the number for fencing",
    applies: ({ path }, etcd, ours) =>
      /lock\/lock$/.test(path) && ours.body.replace(/,"create_revision":"\d+"/, "") === etcd.body,
  },
  {
    reason: "hashes of compactions are not kept for HashKV at the revisions of the compactions",
    applies: ({ path }, etcd, ours) =>
      /hashkv$/.test(path) &&
      /"compact_revision":"(-1|\d+)"/.test(etcd.body) &&
      (/"compact_revision":"(\d+)","hash_revision":"\1"/.test(ours.body) ||
        ours.body.includes("required revision has been compacted")),
  },
  {
    reason: "a new password whose hash is no base64 is refused before the user is looked up",
    applies: ({ path }, etcd, ours) =>
      /user\/changepw$/.test(path) &&
      etcd.body.includes("user name not found") &&
      ours.body.includes("password was given for no password user"),
  },
  {
    reason: "no trailers are sent; etcd announces Grpc-Trailer-Content-Type, which says nothing",
    applies: ({ headers }, etcd, ours) => {
      const { trailer, ...others } = etcd.headers;
      return headers["te"] !== undefined && isDeepStrictEqual({ ...etcd, headers: others }, ours);
    },
  },
];
