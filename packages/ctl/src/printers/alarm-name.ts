/** The name of a kind of alarm, as Go prints it; a number for one that is not known. */
import { AlarmType } from "@quorate/proto";

const names: ReadonlyMap<number, string> = new Map(
  Object.entries(AlarmType).map(([name, type]) => [type, name]),
);

/** "NOSPACE", "CORRUPT", "NONE", or the number. */
export function alarmName(type: AlarmType): string {
  return names.get(type) ?? String(type);
}
