/** Bounds of the v2 API that tests set lower. */

export interface V2Limits {
  /** Nodes in one response. */
  readonly maxListedNodes: number;
  /** Bytes of JSON in one response, about. */
  readonly maxListedBytes: number;
  /**
   * Revisions that a wait holds back while one of its two watches catches up; beyond them it ends,
   * and the client goes on with another.
   */
  readonly maxHeldRevisions: number;
  /** Waits of one connection, and of all. */
  readonly maxConnectionWaits: number;
  readonly maxWaits: number;
}

export const V2_LIMITS: V2Limits = {
  maxListedNodes: 200_000,
  maxListedBytes: 256 << 20,
  maxHeldRevisions: 20_000,
  maxConnectionWaits: 1024,
  maxWaits: 20_000,
};
