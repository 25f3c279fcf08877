/**
 * The call of etcdserverpb.Maintenance that lowers the cluster's version (etcd:
 * EtcdServer.Downgrade). There is no earlier release to go back to, so orders are checked and
 * refused as etcd's are, but none can be given.
 */

import type { Member } from "@quorate/member";
import {
  type Caller,
  callerOf,
  downgradeTargetOf,
  majorMinor,
  minorVersion,
} from "@quorate/member";
import {
  DowngradeRequest,
  DowngradeRequest_DowngradeAction,
  DowngradeResponse,
  errorOf,
  MaintenanceService,
} from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";

/** The cluster's version, if it can be lowered to the requested one. Rejects with EtcdError. */
async function checked(member: Member, caller: Caller, version: string): Promise<string> {
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

/** The handler, by path. */
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
              version: majorMinor(await checked(member, caller, version)),
            });
          case DowngradeRequest_DowngradeAction.ENABLE:
            await checked(member, caller, version);
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
