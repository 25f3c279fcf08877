/**
 * The membership as members of etcd up to 3.6 take it from the message of a snapshot: the JSON of a
 * v2 store (etcd: GetMembershipInfoInV2Format, api/v2store).
 *
 *     /0/members/ID/raftAttributes   {"peerURLs":[...],"isLearner":true}
 *     /0/members/ID/attributes       {"name":"...","clientURLs":[...]}
 *     /0/removed_members/ID          removed
 *     /0/version                     3.5.0
 */
import { fromUtf8, idToHex } from "@quorate/proto";
import type { Member } from "../membership/member.ts";

/** A place of a v2 store, in the names of its JSON. */
interface Node {
  readonly Path: string;
  readonly CreatedIndex: number;
  readonly ModifiedIndex: number;
  readonly ExpireTime: string;
  readonly Value: string;
  /** Null for a key. */
  readonly Children: Record<string, Node> | null;
}

function node(path: string, value: string, children: Record<string, Node> | null): Node {
  return {
    Path: path,
    CreatedIndex: 0,
    ModifiedIndex: 0,
    ExpireTime: "0001-01-01T00:00:00Z",
    Value: value,
    Children: children,
  };
}

export interface MembershipOfSnapshot {
  readonly members: readonly Member[];
  readonly removed: readonly bigint[];
  /** Undefined before it was determined. */
  readonly clusterVersion: string | undefined;
}

export function encodeV2Membership(membership: MembershipOfSnapshot): Uint8Array {
  const members: Record<string, Node> = {};
  for (const { id, name, peerUrls, clientUrls, isLearner } of membership.members) {
    const path = `/0/members/${idToHex(id)}`;
    const raft = { peerURLs: peerUrls, ...(isLearner ? { isLearner } : {}) };
    const own = {
      ...(name === "" ? {} : { name }),
      ...(clientUrls.length === 0 ? {} : { clientURLs: clientUrls }),
    };
    members[idToHex(id)] = node(path, "", {
      attributes: node(`${path}/attributes`, JSON.stringify(own), null),
      raftAttributes: node(`${path}/raftAttributes`, JSON.stringify(raft), null),
    });
  }
  const removed: Record<string, Node> = {};
  for (const id of membership.removed)
    removed[idToHex(id)] = node(`/0/removed_members/${idToHex(id)}`, "removed", null);
  const cluster: Record<string, Node> = {
    members: node("/0/members", "", members),
    removed_members: node("/0/removed_members", "", removed),
  };
  const { clusterVersion } = membership;
  if (clusterVersion !== undefined) cluster["version"] = node("/0/version", clusterVersion, null);
  const root = node("/", "", { "0": node("/0", "", cluster), "1": node("/1", "", {}) });
  return fromUtf8(JSON.stringify({ Root: root, CurrentIndex: 0, CurrentVersion: 2 }));
}
