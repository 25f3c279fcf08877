import type { Command, CommandBody, Invocation } from "@quorate/cli";
import { badArguments } from "@quorate/cli";
import type { Client } from "@quorate/client";
import { withClient } from "../connect/globals.ts";
import { printAnswer } from "../connect/one-call.ts";
import { authStatusForm } from "../printers/auth-forms.ts";
import { printerOf } from "../printers/choose.ts";
import { canICommand } from "./auth-can-i.ts";

function refuseArguments({ args }: Invocation, name: string): void {
  if (args.length > 0) throw badArguments(`auth ${name} command does not accept any arguments`);
}

/**
 * Turns authentication on; as etcdctl does, it makes the role root and grants it to the user root
 * where that is missing.
 */
async function enable({ auth }: Client): Promise<void> {
  try {
    await auth.enable();
  } catch (error) {
    if ((error as { code?: string }).code !== "RootRoleNotExist") throw error;
    await auth.roleAdd("root");
    await auth.userGrantRole("root", "root");
    await auth.enable();
  }
}

const enableCommand: Command = {
  use: "enable",
  short: "Has the cluster ask for users",
  long: "Has the cluster ask for users from now on. There has to be a user root; it is given the role root if it has it not.",
  async run(invocation) {
    refuseArguments(invocation, "enable");
    printerOf(invocation);
    await withClient(invocation, ({ client }) => enable(client));
    invocation.io.stdout("Authentication Enabled\n");
  },
};

const disableCommand: Command = {
  use: "disable",
  short: "Has the cluster ask for users no more",
  async run(invocation) {
    refuseArguments(invocation, "disable");
    printerOf(invocation);
    await withClient(invocation, ({ client }) => client.auth.disable());
    invocation.io.stdout("Authentication Disabled\n");
  },
};

const statusCommand: Command = {
  use: "status",
  short: "Prints whether the cluster asks for users",
  async run(invocation) {
    refuseArguments(invocation, "status");
    await printAnswer(invocation, authStatusForm, (client) => client.auth.status());
  },
};

export const authCommand: CommandBody = {
  commands: [canICommand, disableCommand, enableCommand, statusCommand],
};
