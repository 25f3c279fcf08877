/**
 * Locks and elections in a namespace: their names and keys get the prefix too. etcd's proxy leaves
 * them as they are, so the key that it returns for a lock is none that the client can use.
 */
import { KeyValue, v3electionpb, v3lockpb } from "@quorate/proto";
import type { Namespace } from "./namespace.ts";

/** The messages of one method, changed in both directions. */
export interface MessageChanges {
  readonly request: (bytes: Uint8Array) => Uint8Array;
  readonly response: (bytes: Uint8Array) => Uint8Array;
}

const {
  CampaignRequest,
  CampaignResponse,
  LeaderRequest,
  LeaderResponse,
  ProclaimRequest,
  ResignRequest,
} = v3electionpb;
const { LockRequest, LockResponse, UnlockRequest } = v3lockpb;

const same = (bytes: Uint8Array): Uint8Array => bytes;

/** The changes by the method's path. */
export function contestChanges(namespace: Namespace): ReadonlyMap<string, MessageChanges> {
  const leaderKey = <T extends v3electionpb.LeaderKey | undefined>(leader: T): T =>
    leader && { ...leader, name: namespace.key(leader.name), key: namespace.key(leader.key) };
  const plain = (key: Uint8Array): Uint8Array => namespace.plainKey(key) ?? key;
  const leaderRequest = (bytes: Uint8Array): Uint8Array =>
    LeaderRequest.encode({ name: namespace.key(LeaderRequest.decode(bytes).name) });
  const leaderResponse = (bytes: Uint8Array): Uint8Array => {
    const response = LeaderResponse.decode(bytes);
    const { kv } = response;
    return LeaderResponse.encode({
      ...response,
      kv: kv && KeyValue.create({ ...kv, key: plain(kv.key) }),
    });
  };
  return new Map<string, MessageChanges>([
    [
      "/v3lockpb.Lock/Lock",
      {
        request: (bytes) => {
          const request = LockRequest.decode(bytes);
          return LockRequest.encode({ ...request, name: namespace.key(request.name) });
        },
        response: (bytes) => {
          const response = LockResponse.decode(bytes);
          return LockResponse.encode({ ...response, key: plain(response.key) });
        },
      },
    ],
    [
      "/v3lockpb.Lock/Unlock",
      {
        request: (bytes) =>
          UnlockRequest.encode({ key: namespace.key(UnlockRequest.decode(bytes).key) }),
        response: same,
      },
    ],
    [
      "/v3electionpb.Election/Campaign",
      {
        request: (bytes) => {
          const request = CampaignRequest.decode(bytes);
          return CampaignRequest.encode({ ...request, name: namespace.key(request.name) });
        },
        response: (bytes) => {
          const response = CampaignResponse.decode(bytes);
          const { leader } = response;
          return CampaignResponse.encode({
            ...response,
            leader: leader && { ...leader, name: plain(leader.name), key: plain(leader.key) },
          });
        },
      },
    ],
    [
      "/v3electionpb.Election/Proclaim",
      {
        request: (bytes) => {
          const request = ProclaimRequest.decode(bytes);
          return ProclaimRequest.encode({ ...request, leader: leaderKey(request.leader) });
        },
        response: same,
      },
    ],
    [
      "/v3electionpb.Election/Resign",
      {
        request: (bytes) => {
          const request = ResignRequest.decode(bytes);
          return ResignRequest.encode({ ...request, leader: leaderKey(request.leader) });
        },
        response: same,
      },
    ],
    ["/v3electionpb.Election/Leader", { request: leaderRequest, response: leaderResponse }],
    ["/v3electionpb.Election/Observe", { request: leaderRequest, response: leaderResponse }],
  ]);
}
