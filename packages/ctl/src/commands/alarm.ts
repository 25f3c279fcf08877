import type { Command, CommandBody, Invocation } from "@quorate/cli";
import { badArguments } from "@quorate/cli";
import type { AlarmMember } from "@quorate/proto";
import { AlarmResponse, AlarmType } from "@quorate/proto";
import { withClient } from "../connect/globals.ts";
import { printerOf } from "../printers/choose.ts";
import { type FieldLine, formOf, idField } from "../printers/form.ts";

const names: ReadonlyMap<number, string> = new Map(
  Object.entries(AlarmType).map(([name, type]) => [type, name]),
);

/** "NOSPACE", "CORRUPT", "NONE", or the number of an unknown type, as Go prints it. */
function alarmName(type: AlarmType): string {
  return names.get(type) ?? String(type);
}

export const alarmForm = formOf(AlarmResponse, {
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
});

function refuseArguments({ args }: Invocation, name: string): void {
  if (args.length > 0) throw badArguments(`alarm ${name} command accepts no arguments`);
}

const listCommand: Command = {
  use: "list",
  short: "Lists the alarms that are raised",
  async run(invocation) {
    refuseArguments(invocation, "list");
    const printer = printerOf(invocation);
    printer.form(alarmForm, await withClient(invocation, ({ client }) => client.alarmList()));
  },
};

const disarmCommand: Command = {
  use: "disarm",
  short: "Disarms all alarms",
  async run(invocation) {
    refuseArguments(invocation, "disarm");
    const printer = printerOf(invocation);
    const ended = await withClient(invocation, async ({ client }) => {
      const alarms: AlarmMember[] = [];
      for (const alarm of (await client.alarmList()).alarms)
        alarms.push(...(await client.alarmDisarm(alarm)).alarms);
      return alarms;
    });
    printer.form(alarmForm, { header: undefined, alarms: ended });
  },
};

export const alarmCommand: CommandBody = {
  commands: [disarmCommand, listCommand],
};
