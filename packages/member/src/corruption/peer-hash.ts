/**
 * Hashes of the history, asked of other members over their peer ports, in etcd's form (etcd:
 * server/etcdserver/corrupt.go).
 *
 *     GET or POST /members/hashkv  {"revision":7}
 *     200  {"header":{"revision":9},"hash":303868176,"compact_revision":5,"hash_revision":7}
 *     400  the text of the error;  412  another cluster
 */

import type { HttpHandler, HttpRequest, HttpResponse } from "@quorate/host";
import { EtcdError, fromUtf8, idToHex, toUtf8 } from "@quorate/proto";
import type { KeyValueHash, Member, Mvcc } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";

export const HASH_PATH = "/members/hashkv";

/** What a member says of its history. */
export interface PeerHash {
  readonly memberId: bigint;
  /** Undefined where it could not be asked, or has no such revision: `error` says why. */
  readonly hash: KeyValueHash | undefined;
  readonly error: string;
}

/** Asks all `members` at once for their hash at `revision`. Never rejects. */
export function askHashes(
  call: PeerCall,
  members: readonly Member[],
  revision: number,
  timeoutMs: number,
): Promise<PeerHash[]> {
  const body = fromUtf8(JSON.stringify({ revision }));
  return Promise.all(
    members.map(async ({ id, peerUrls }) => {
      let error = "it has no peer URL";
      for (const url of peerUrls) {
        try {
          const answer = await call(url, HASH_PATH, body, timeoutMs, "GET");
          const text = toUtf8(answer.body);
          if (answer.status === 200) return { memberId: id, hash: decodeHash(text), error: "" };
          error = text.trim();
        } catch (failure) {
          error = (failure as Error).message;
        }
      }
      return { memberId: id, hash: undefined, error };
    }),
  );
}

/** Throws where the response is not one that a member sends. */
function decodeHash(text: string): KeyValueHash {
  const answer = JSON.parse(text) as Record<string, unknown>;
  // Go leaves out what is 0.
  const number = (value: unknown): number => {
    if (value === undefined) return 0;
    if (!Number.isSafeInteger(value))
      throw new Error(`not an answer to a question for a hash: ${text.slice(0, 200)}`);
    return value as number;
  };
  const header = (answer["header"] ?? {}) as Record<string, unknown>;
  return {
    hash: number(answer["hash"]),
    revision: number(answer["hash_revision"]),
    compactRevision: number(answer["compact_revision"]),
    currentRevision: number(header["revision"]),
  };
}

/** Answers other members. */
export function hashEndpoint(clusterId: bigint, mvcc: () => Promise<Mvcc>): HttpHandler {
  return async (request) => {
    if (request.method !== "GET" && request.method !== "POST")
      return plain(405, "Method Not Allowed", { allow: "GET" });
    const asking = request.headers.get("x-etcd-cluster-id") ?? "";
    if (asking !== "" && asking !== idToHex(clusterId)) return plain(412, "cluster ID mismatch");
    const revision = revisionOf(request);
    if (revision === undefined) return plain(400, "error unmarshalling request");
    try {
      const {
        hash,
        revision: hashed,
        compactRevision,
        currentRevision,
      } = await (await mvcc()).hashKV(revision);
      const answer = {
        header: { revision: currentRevision },
        hash,
        compact_revision: compactRevision,
        hash_revision: hashed,
      };
      return {
        status: 200,
        headers: { "content-type": "application/json", "x-etcd-cluster-id": idToHex(clusterId) },
        body: JSON.stringify(answer),
      };
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      // As etcd's store words it, without the server's name.
      return plain(400, error.message.replace(/^etcdserver: /, ""));
    }
  };
}

function revisionOf(request: HttpRequest): number | undefined {
  try {
    const { revision = 0 } = JSON.parse(toUtf8(request.body)) as { revision?: unknown };
    return Number.isSafeInteger(revision) ? (revision as number) : undefined;
  } catch {
    return undefined;
  }
}

function plain(status: number, text: string, headers: Record<string, string> = {}): HttpResponse {
  return {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", ...headers },
    body: `${text}\n`,
  };
}
