/** etcdserverpb.Maintenance, as far as it goes here: Status, Hash, HashKV, and the list of alarms, of which there are none to raise yet. */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmResponse,
  errorOf,
  HashKVRequest,
  HashKVResponse,
  HashResponse,
  MaintenanceService,
  StatusResponse,
} from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";
import type { Member } from "../member/member.ts";
import { SERVER_VERSION } from "../version.ts";
import { unimplemented } from "./status.ts";

/** The handlers of the Maintenance service, by path. */
export function maintenanceService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { Alarm, Status, Hash, HashKV } = MaintenanceService.methods;
  return new Map<string, UnaryHandler>([
    [
      Alarm.path,
      async (bytes) => {
        await member.readable();
        if (AlarmRequest.decode(bytes).action !== AlarmRequest_AlarmAction.GET) throw unimplemented(Alarm.name);
        return AlarmResponse.encode({ header: member.header(member.store.mvcc.currentRevision), alarms: [] });
      },
    ],
    [
      Status.path,
      async () => {
        await member.readable();
        const { store } = member;
        return StatusResponse.encode({
          header: member.header(store.mvcc.currentRevision),
          version: SERVER_VERSION,
          dbSize: store.sizeOnDiskBytes,
          dbSizeInUse: store.sizeOnDiskBytes,
          leader: member.leader,
          raftIndex: member.commitIndex,
          raftTerm: member.term,
          raftAppliedIndex: member.appliedIndex,
          errors: member.leader === 0n ? [errorOf("NoLeader").message] : [],
          isLearner: member.isLearner,
          storageVersion: SERVER_VERSION,
          dbSizeQuota: member.config.quotaBackendBytes ?? 0,
          downgradeInfo: { enabled: false, targetVersion: "" },
        });
      },
    ],
    [
      Hash.path,
      async () => {
        await member.readable();
        const { mvcc } = member.store;
        const { currentRevision } = mvcc;
        return HashResponse.encode({ header: member.header(currentRevision), hash: await mvcc.hash() });
      },
    ],
    [
      HashKV.path,
      async (bytes) => {
        await member.readable();
        const { revision } = HashKVRequest.decode(bytes);
        const result = await member.store.mvcc.hashKV(revision);
        return HashKVResponse.encode({
          header: member.header(result.currentRevision),
          hash: result.hash,
          compactRevision: result.compactRevision,
          hashRevision: result.revision,
        });
      },
    ],
  ]);
}
