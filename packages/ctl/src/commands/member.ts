import { withClient } from "../globals.ts";
import { printerOf } from "../printers/choose.ts";
import type { Command } from "../program.ts";
import { consistencyFlag, isSerializable } from "./consistency.ts";

const listCommand: Command = {
  use: "list",
  short: "Lists the members of the cluster",
  long: `Lists the members of the cluster.

In the simple form each line has ID, status, name, peer URLs, client URLs, and whether it is a learner.`,
  flags: { consistency: consistencyFlag },
  async run(invocation) {
    const linearizable = !isSerializable(invocation.flags);
    const printer = printerOf(invocation);
    printer.memberList(await withClient(invocation, ({ client }) => client.memberList({ linearizable })));
  },
};

export const memberCommand: Command = {
  use: "member <subcommand>",
  short: "Commands about the members of the cluster",
  commands: [listCommand],
};
