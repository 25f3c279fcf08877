/**
 * Requests of etcd's v2 store in entries, which etcd writes up to 3.5: the names of members and the
 * cluster's version. All others have no effect on what v3 holds (etcd 3.6: apply_v2.go).
 *
 *     PUT /0/members/ID/attributes  {"name":"...","clientURLs":[...]}   as clusterMemberAttrSet
 *     PUT /0/version                3.5.0                               as clusterVersionSet
 *
 * The entry is the request itself, or an InternalRaftRequest with it as `v2`.
 */
import {
  etcdserverpb,
  fromUtf8,
  InternalRaftRequest,
  idFromHex,
  membershippb,
  WireError,
} from "@quorate/proto";
import { InvalidRequestError } from "../entry/invalid-request.ts";
import { decodeMember } from "../membership/member.ts";

const ATTRIBUTES = /^\/0\/members\/([0-9a-f]{1,16})\/attributes$/;
const VERSION = "/0/version";

/**
 * The request of v3 that says the same: with an id, and without a request where v3 has nothing of
 * it. Undefined for data that is no such request.
 * @throws InvalidRequestError for attributes that do not decode
 */
export function fromV2(data: Uint8Array): InternalRaftRequest | undefined {
  let request: etcdserverpb.Request;
  try {
    request = etcdserverpb.Request.decode(data);
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
  const { ID, Method, Path, Val } = request;
  if (Method === "") return undefined;
  const entry = InternalRaftRequest.create({ ID });
  if (Method !== "PUT") return entry;
  const member = ATTRIBUTES.exec(Path)?.[1];
  if (member !== undefined) {
    const memberAttributes = attributesOf(Val);
    entry.clusterMemberAttrSet = membershippb.ClusterMemberAttrSetRequest.encode({
      member_ID: idFromHex(member) ?? 0n,
      memberAttributes,
    });
  } else if (Path === VERSION) {
    entry.clusterVersionSet = membershippb.ClusterVersionSetRequest.encode({ ver: Val });
  }
  return entry;
}

function attributesOf(json: string): membershippb.Attributes {
  try {
    const { name, clientUrls } = decodeMember(fromUtf8(json));
    return { name, clientUrls: [...clientUrls] };
  } catch (error) {
    throw new InvalidRequestError(`the attributes of a member: ${(error as Error).message}`);
  }
}
