/** Alarms as people read them. */
import { AlarmType } from "@quorate/proto";
import type { Alarm } from "@quorate/store";

/** "NOSPACE", "CORRUPT", or the number of a kind that this version does not know. */
export function alarmName(type: AlarmType): string {
  if (type === AlarmType.NOSPACE) return "NOSPACE";
  return type === AlarmType.CORRUPT ? "CORRUPT" : String(type);
}

/** An alarm in the text form of its protobuf message, which Status lists among its errors. */
export function alarmText({ memberId, type }: Alarm): string {
  return memberId === 0n
    ? `alarm:${alarmName(type)}`
    : `memberID:${memberId} alarm:${alarmName(type)}`;
}
