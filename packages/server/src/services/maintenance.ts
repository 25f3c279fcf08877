/** etcdserverpb.Maintenance, as far as it goes here: Alarm, Status, Defragment, Hash, HashKV. */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmResponse,
  DefragmentRequest,
  DefragmentResponse,
  errorOf,
  HashKVRequest,
  HashKVResponse,
  HashRequest,
  HashResponse,
  MaintenanceService,
  StatusRequest,
  StatusResponse,
} from "@quorate/proto";
import type { UnaryHandler } from "@quorate/rpc";
import { applyAlarm } from "@quorate/store";
import type { Member } from "../member/member.ts";
import type { Histogram } from "../metrics/registry.ts";
import { alarmText } from "../space/index.ts";
import { SERVER_VERSION } from "../version.ts";

/** What `work` comes to; how long it took is observed if it did not fail. */
async function timed<T>(member: Member, duration: Histogram, work: () => Promise<T>): Promise<T> {
  const startMs = member.clock.monotonicMs();
  const result = await work();
  duration.observe((member.clock.monotonicMs() - startMs) / 1000);
  return result;
}

/** The handlers of the Maintenance service, by path. */
export function maintenanceService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { Alarm, Status, Defragment, Hash, HashKV } = MaintenanceService.methods;
  return new Map<string, UnaryHandler>([
    [
      Alarm.path,
      async (bytes) => {
        const request = AlarmRequest.decode(bytes);
        if (request.action === AlarmRequest_AlarmAction.GET) {
          await member.linearizable();
          await member.readable();
          const { mvcc, alarms } = member.store;
          return AlarmResponse.encode({
            ...applyAlarm(mvcc, alarms, request),
            header: member.header(mvcc.currentRevision),
          });
        }
        const { response, error } = await member.propose("alarm", bytes, request);
        if (error !== undefined) throw error;
        return AlarmResponse.encode({
          ...(response as AlarmResponse),
          header: member.header(response?.header?.revision ?? 0),
        });
      },
    ],
    [
      Defragment.path,
      async (bytes) => {
        DefragmentRequest.decode(bytes);
        await member.readable();
        await member.space.defragment();
        return DefragmentResponse.encode({});
      },
    ],
    [
      Status.path,
      async (bytes) => {
        StatusRequest.decode(bytes);
        await member.readable();
        const { store } = member;
        return StatusResponse.encode({
          header: member.header(store.mvcc.currentRevision),
          version: SERVER_VERSION,
          dbSize: store.sizeOnDiskBytes,
          dbSizeInUse: store.liveBytes,
          leader: member.leader,
          raftIndex: member.commitIndex,
          raftTerm: member.term,
          raftAppliedIndex: member.appliedIndex,
          errors: [
            ...(member.leader === 0n ? [errorOf("NoLeader").message] : []),
            ...store.alarms.list().map(alarmText),
          ],
          isLearner: member.isLearner,
          storageVersion: SERVER_VERSION,
          dbSizeQuota: member.config.quotaBackendBytes ?? -1,
          downgradeInfo: { enabled: false, targetVersion: "" },
        });
      },
    ],
    [
      Hash.path,
      async (bytes) => {
        HashRequest.decode(bytes);
        await member.readable();
        const { mvcc } = member.store;
        const { currentRevision } = mvcc;
        const hash = await timed(member, member.metrics.hashDuration, () => mvcc.hash());
        return HashResponse.encode({ header: member.header(currentRevision), hash });
      },
    ],
    [
      HashKV.path,
      async (bytes) => {
        await member.readable();
        const { revision } = HashKVRequest.decode(bytes);
        const result = await timed(member, member.metrics.hashRevDuration, () =>
          member.store.mvcc.hashKV(revision),
        );
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
