/** etcdserverpb.Cluster: who belongs to the cluster, and changes of that. */
import {
  ClusterService,
  MemberAddRequest,
  MemberAddResponse,
  MemberListRequest,
  MemberListResponse,
  MemberPromoteRequest,
  MemberPromoteResponse,
  MemberRemoveRequest,
  MemberRemoveResponse,
  MemberUpdateRequest,
  MemberUpdateResponse,
  Member as WireMember,
} from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";
import type { Member as ClusterMember } from "@quorate/store";
import type { Member } from "../member/member.ts";
import { checkedUrls, countUrls } from "../membership/member-urls.ts";

/** Where MemberAddRequest and MemberUpdateRequest have their URLs (proto/rpc.proto). */
const ADDED_URLS_FIELD = 1;
const UPDATED_URLS_FIELD = 2;

/** A member as the API has it. */
export function wireMember({
  id,
  name,
  peerUrls,
  clientUrls,
  isLearner,
}: ClusterMember): WireMember {
  return WireMember.create({
    ID: id,
    name,
    peerURLs: [...peerUrls],
    clientURLs: [...clientUrls],
    isLearner,
  });
}

/** The handlers of the Cluster service, by path. */
export function clusterService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { reconfiguration } = member;
  const { MemberAdd, MemberRemove, MemberUpdate, MemberPromote, MemberList } =
    ClusterService.methods;
  const members = () => reconfiguration.members().map(wireMember);
  return new Map<string, UnaryHandler>([
    [
      MemberAdd.path,
      async (bytes) => {
        countUrls(bytes, ADDED_URLS_FIELD);
        const { peerURLs, isLearner } = MemberAddRequest.decode(bytes);
        const added = await reconfiguration.add(checkedUrls(peerURLs).sort(), isLearner);
        return MemberAddResponse.encode({
          header: member.header(0),
          member: wireMember(added),
          members: members(),
        });
      },
    ],
    [
      MemberRemove.path,
      async (bytes) => {
        await reconfiguration.remove(MemberRemoveRequest.decode(bytes).ID);
        return MemberRemoveResponse.encode({ header: member.header(0), members: members() });
      },
    ],
    [
      MemberUpdate.path,
      async (bytes) => {
        countUrls(bytes, UPDATED_URLS_FIELD);
        const { ID, peerURLs } = MemberUpdateRequest.decode(bytes);
        await reconfiguration.update(ID, checkedUrls(peerURLs));
        return MemberUpdateResponse.encode({ header: member.header(0), members: members() });
      },
    ],
    [
      MemberPromote.path,
      async (bytes) => {
        await reconfiguration.promote(MemberPromoteRequest.decode(bytes).ID);
        return MemberPromoteResponse.encode({ header: member.header(0), members: members() });
      },
    ],
    [
      MemberList.path,
      async (bytes) => {
        if (MemberListRequest.decode(bytes).linearizable) await member.linearizable();
        await member.readable();
        return MemberListResponse.encode({ header: member.header(0), members: members() });
      },
    ],
  ]);
}
