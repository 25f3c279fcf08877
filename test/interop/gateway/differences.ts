/** Responses that differ from etcd's on purpose, each with the reason (docs/divergence.md). */
import type { GatewayResponse } from "./exchange.ts";
import type { GatewayRequest } from "./requests.ts";

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
];
