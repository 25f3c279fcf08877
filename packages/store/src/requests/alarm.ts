/**
 * Alarm: asking for the alarms that are raised, raising one, ending one (etcd: apply/backend.go).
 */
import {
  type AlarmRequest,
  AlarmRequest_AlarmAction,
  type AlarmResponse,
  AlarmType,
} from "@quorate/proto";
import type { Alarm, Alarms } from "../alarms.ts";
import type { Mvcc } from "../mvcc/index.ts";
import { headerAt } from "./header.ts";

/**
 * The alarms that the request concerns: those of its kind (NONE: all) for GET, whichever member's;
 * for the others the one of its kind and member, and none where there is nothing to end, or where
 * no kind is named. The member id is taken as it is: 0 is an id of its own.
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
