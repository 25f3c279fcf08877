/** The form of the responses about alarms. */
import { AlarmResponse, AlarmType } from "@quorate/proto";
import { type FieldLine, type Form, headerJson, idField, present } from "./form.ts";

const names: ReadonlyMap<number, string> = new Map(
  Object.entries(AlarmType).map(([name, type]) => [type, name]),
);

/** "NOSPACE", "CORRUPT", "NONE", or the number of an unknown type, as Go prints it. */
function alarmName(type: AlarmType): string {
  return names.get(type) ?? String(type);
}

export const alarmForm: Form<AlarmResponse> = {
  simple: ({ alarms }) =>
    alarms
      .map(
        ({ memberID, alarm }) =>
          `${memberID === 0n ? "" : `memberID:${memberID} `}alarm:${alarmName(alarm)}\n`,
      )
      .join(""),
  fields: ({ alarms }, style) =>
    alarms.flatMap(({ memberID, alarm }): FieldLine[] => [
      ["MemberID", idField(memberID, style)],
      ["AlarmType", alarmName(alarm)],
      "",
    ]),
  json: ({ header, alarms }) => ({
    header: headerJson(header),
    alarms: present(
      alarms.map(({ memberID, alarm }) => ({ memberID: present(memberID), alarm: present(alarm) })),
    ),
  }),
  protobuf: (response) => AlarmResponse.encode(response),
};
