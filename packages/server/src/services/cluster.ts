/** etcdserverpb.Cluster, as far as it goes here: MemberList. */
import { ClusterService, MemberListRequest, MemberListResponse, Member as WireMember } from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";
import type { Member } from "../member/member.ts";

/** The handlers of the Cluster service, by path. */
export function clusterService(member: Member): ReadonlyMap<string, UnaryHandler> {
  return new Map<string, UnaryHandler>([
    [
      ClusterService.methods.MemberList.path,
      async (bytes) => {
        if (MemberListRequest.decode(bytes).linearizable) await member.linearizable();
        await member.readable();
        const members = member.store.membership
          .members()
          .map(({ id, name, peerUrls, clientUrls, isLearner }) =>
            WireMember.create({ ID: id, name, peerURLs: [...peerUrls], clientURLs: [...clientUrls], isLearner }),
          );
        return MemberListResponse.encode({ header: member.header(0), members });
      },
    ],
  ]);
}
