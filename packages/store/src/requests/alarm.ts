/** Alarm: listing the active alarms, raising one, ending one (etcd: apply/backend.go). */
import {
  type AlarmRequest,
  AlarmRequest_AlarmAction,
  type AlarmResponse,
  AlarmType,
} from "@quorate/proto";
import type { Alarm, Alarms } from "../backend/alarms.ts";
import { headerAt } from "../backend/revision.ts";
import type { Mvcc } from "../mvcc/index.ts";

/**
 * For GET: the alarms of the request's kind (NONE: all) of any member. Otherwise: the alarm that
 * was raised or ended, or none if there was nothing to end or no kind is given. Member id 0 is an
 * id like any other.
 */
export function applyAlarm(mvcc: Mvcc, alarms: Alarms, request: AlarmRequest): AlarmResponse {
  const { action, memberID, alarm } = request;
  let concerned: readonly Alarm[] = [];
  if (action === AlarmRequest_AlarmAction.GET) concerned = alarms.list(alarm);
  else if (action === AlarmRequest_AlarmAction.ACTIVATE && alarm !== AlarmType.NONE) {
    concerned = [alarms.activate(memberID, alarm, mvcc.compactRevision)];
  } else if (action === AlarmRequest_AlarmAction.DEACTIVATE) {
    const ended = alarms.deactivate(memberID, alarm);
    if (ended !== undefined) concerned = [ended];
  }
  return {
    header: headerAt(mvcc.currentRevision),
    alarms: concerned.map(({ memberId, type }) => ({ memberID: memberId, alarm: type })),
  };
}
