/** A request to another member over its peer port. */

export interface PeerAnswer {
  readonly status: number;
  readonly body: Uint8Array;
  /**
   * What the member says of its cluster: the header X-Etcd-Cluster-ID, undefined where it has none.
   */
  readonly clusterId?: string | undefined;
}

/**
 * Posts `body` to `path` at a peer URL such as "https://10.0.0.1:2380"; without a body, gets
 * `path`. Rejects where no answer comes within the time.
 * @param method where the body goes with another one: members of etcd take a question for a hash as
 *   GET alone
 */
export type PeerCall = (
  url: string,
  path: string,
  body: Uint8Array | undefined,
  timeoutMs: number,
  method?: "GET",
) => Promise<PeerAnswer>;
