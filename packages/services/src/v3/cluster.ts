/**
 * etcdserverpb.Cluster: the members, changes of them, and the call of Maintenance that lowers the
 * cluster's version (etcd: EtcdServer.Downgrade). There is no earlier release to go back to, so
 * orders are checked and refused as etcd's are, but none can be given.
 */
import {
  type Caller,
  callerOf,
  checkedUrls,
  countUrls,
  downgradeTargetOf,
  type Member,
  majorMinor,
  minorVersion,
} from "@quorate/member";
import {
  ClusterService,
  DowngradeRequest,
  DowngradeRequest_DowngradeAction,
  DowngradeResponse,
  errorOf,
  MaintenanceService,
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
  const answer = () => ({
    header: member.header(0),
    members: reconfiguration.members().map(wireMember),
  });
  /**
   * As in etcd, an unknown member is named before its URLs. Whether a member with good URLs is
   * there is judged where the change is applied: this one may not know yet of a member that another
   * has just added.
   */
  const updatedUrls = (id: bigint, urls: readonly string[]): string[] => {
    try {
      return checkedUrls(urls);
    } catch (error) {
      const isKnown = reconfiguration.members().some((one) => one.id === id);
      throw isKnown ? error : errorOf("MemberNotFound");
    }
  };
  return new Map<string, UnaryHandler>([
    [
      MemberAdd.path,
      (bytes, context) => {
        countUrls(bytes, ADDED_URLS_FIELD);
        const { peerURLs, isLearner } = MemberAddRequest.decode(bytes);
        return member.operate(callerOf(context), { kind: "memberAdd" }, async () => {
          const added = await reconfiguration.add(checkedUrls(peerURLs).sort(), isLearner);
          return MemberAddResponse.encode({ ...answer(), member: wireMember(added) });
        });
      },
    ],
    [
      MemberRemove.path,
      (bytes, context) => {
        const { ID } = MemberRemoveRequest.decode(bytes);
        return member.operate(callerOf(context), { kind: "memberRemove" }, async () => {
          await reconfiguration.remove(ID);
          return MemberRemoveResponse.encode(answer());
        });
      },
    ],
    [
      MemberUpdate.path,
      (bytes, context) => {
        countUrls(bytes, UPDATED_URLS_FIELD);
        const { ID, peerURLs } = MemberUpdateRequest.decode(bytes);
        return member.operate(callerOf(context), { kind: "memberUpdate" }, async () => {
          await reconfiguration.update(ID, updatedUrls(ID, peerURLs));
          return MemberUpdateResponse.encode(answer());
        });
      },
    ],
    [
      MemberPromote.path,
      (bytes, context) => {
        const { ID } = MemberPromoteRequest.decode(bytes);
        return member.operate(callerOf(context), { kind: "memberPromote" }, async () => {
          await reconfiguration.promote(ID);
          return MemberPromoteResponse.encode(answer());
        });
      },
    ],
    [
      MemberList.path,
      async (bytes, context) => {
        const { linearizable } = MemberListRequest.decode(bytes);
        const read = { access: { kind: "memberList" }, linearizable, run: answer } as const;
        return MemberListResponse.encode(await member.read(callerOf(context), read));
      },
    ],
  ]);
}

/** The cluster's version, if it can be lowered to the requested one. Rejects with EtcdError. */
async function checkedDowngrade(member: Member, caller: Caller, version: string): Promise<string> {
  const target = minorVersion(version);
  if (target === undefined) throw errorOf("WrongDowngradeVersionFormat");
  return member.read(caller, {
    access: { kind: "downgrade" },
    linearizable: true,
    run: () => {
      const current = member.store.membership.clusterVersion;
      if (current === undefined) throw errorOf("ClusterVersionUnavailable");
      if (target !== downgradeTargetOf(current)) throw errorOf("InvalidDowngradeTargetVersion");
      return current;
    },
  });
}

/** The handler of Downgrade, by path. */
export function downgradeService(member: Member): ReadonlyMap<string, UnaryHandler> {
  return new Map<string, UnaryHandler>([
    [
      MaintenanceService.methods.Downgrade.path,
      async (bytes, context) => {
        const caller = callerOf(context);
        const { action, version } = DowngradeRequest.decode(bytes);
        switch (action) {
          case DowngradeRequest_DowngradeAction.VALIDATE:
            return DowngradeResponse.encode({
              header: member.header(member.store.mvcc.currentRevision),
              version: majorMinor(await checkedDowngrade(member, caller, version)),
            });
          case DowngradeRequest_DowngradeAction.ENABLE:
            await checkedDowngrade(member, caller, version);
            throw errorOf("InvalidDowngradeTargetVersion");
          case DowngradeRequest_DowngradeAction.CANCEL:
            // As in etcd, taking back what was never ordered is no error.
            return DowngradeResponse.encode({
              header: member.header(member.store.mvcc.currentRevision),
              version: majorMinor(member.store.membership.clusterVersion ?? ""),
            });
          default:
            throw new Error("etcdserver: unknown method");
        }
      },
    ],
  ]);
}
