/** A request to another member over its peer port. */

export interface PeerAnswer {
  readonly status: number;
  readonly body: Uint8Array;
}

/** Posts `body` to `path` at a peer URL such as "https://10.0.0.1:2380". Rejects where no answer comes within the time. */
export type PeerCall = (url: string, path: string, body: Uint8Array, timeoutMs: number) => Promise<PeerAnswer>;
