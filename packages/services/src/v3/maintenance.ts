/**
 * etcdserverpb.Maintenance, as far as it goes here: Alarm, Status, Defragment, Hash, HashKV and
 * MoveLeader.
 */
import { alarmText, callerOf, type Member, SERVER_VERSION } from "@quorate/member";
import type { Histogram } from "@quorate/metrics";
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
  MoveLeaderRequest,
  MoveLeaderResponse,
  StatusRequest,
  StatusResponse,
} from "@quorate/proto";
import type { CallContext, UnaryHandler } from "@quorate/rpc";
import { applyAlarm } from "@quorate/store";
import { completed } from "../calls/results.ts";

/** What `work` comes to; how long it took is observed if it did not fail. */
async function timed<T>(member: Member, duration: Histogram, work: () => Promise<T>): Promise<T> {
  const startMs = member.clock.monotonicMs();
  const result = await work();
  duration.observe((member.clock.monotonicMs() - startMs) / 1000);
  return result;
}

/** The handlers of the Maintenance service, by path. */
export function maintenanceService(member: Member): ReadonlyMap<string, UnaryHandler> {
  const { Alarm, Status, Defragment, Hash, HashKV, MoveLeader } = MaintenanceService.methods;
  /** A read of this member's own state. */
  const local = <T>(
    context: CallContext,
    kind: "status" | "hash" | "hashKV",
    run: () => T | Promise<T>,
  ): Promise<T> => member.read(callerOf(context), { access: { kind }, linearizable: false, run });
  return new Map<string, UnaryHandler>([
    [
      Alarm.path,
      async (bytes, context) => {
        const request = AlarmRequest.decode(bytes);
        const caller = callerOf(context);
        if (request.action === AlarmRequest_AlarmAction.GET) {
          const run = () => raisedAlarms(member, request);
          const read = { access: { kind: "alarms" }, linearizable: true, run } as const;
          return AlarmResponse.encode(await member.read(caller, read));
        }
        const applied = await member.propose(caller, "alarm", bytes, request);
        return AlarmResponse.encode(completed(member, applied));
      },
    ],
    [
      Defragment.path,
      (bytes, context) => {
        DefragmentRequest.decode(bytes);
        return member.operate(callerOf(context), { kind: "defragment" }, async () => {
          await member.space.defragment();
          return DefragmentResponse.encode({});
        });
      },
    ],
    [
      Status.path,
      async (bytes, context) => {
        StatusRequest.decode(bytes);
        return StatusResponse.encode(await local(context, "status", () => statusOf(member)));
      },
    ],
    [
      Hash.path,
      (bytes, context) => {
        HashRequest.decode(bytes);
        return local(context, "hash", async () => {
          const { mvcc } = member.store;
          const { currentRevision } = mvcc;
          const hash = await timed(member, member.metrics.hashDuration, () => mvcc.hash());
          return HashResponse.encode({ header: member.header(currentRevision), hash });
        });
      },
    ],
    [
      HashKV.path,
      (bytes, context) => {
        const { revision } = HashKVRequest.decode(bytes);
        return local(context, "hashKV", async () => {
          const result = await timed(member, member.metrics.hashRevDuration, () =>
            member.store.mvcc.hashKV(revision),
          );
          return HashKVResponse.encode({
            header: member.header(result.currentRevision),
            hash: result.hash,
            compactRevision: result.compactRevision,
            hashRevision: result.revision,
          });
        });
      },
    ],
    [
      MoveLeader.path,
      (bytes, context) => {
        const { targetID } = MoveLeaderRequest.decode(bytes);
        return member.operate(callerOf(context), { kind: "moveLeader" }, async () => {
          await member.leadership.move(targetID);
          return MoveLeaderResponse.encode({ header: undefined });
        });
      },
    ],
  ]);
}

function raisedAlarms(member: Member, request: AlarmRequest): AlarmResponse {
  const { mvcc, alarms } = member.store;
  return { ...applyAlarm(mvcc, alarms, request), header: member.header(mvcc.currentRevision) };
}

function statusOf(member: Member): StatusResponse {
  const { store } = member;
  return StatusResponse.create({
    header: member.header(store.mvcc.currentRevision),
    version: SERVER_VERSION,
    dbSize: store.sizeBytes,
    // As in etcd it is never 0, which JSON would leave out.
    dbSizeInUse: Math.max(1, store.liveBytes),
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
}
