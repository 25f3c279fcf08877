import { badArguments, type Command, type CommandBody, type Invocation } from "@quorate/cli";
import { DowngradeResponse } from "@quorate/proto";
import { printAnswer } from "../connect/one-call.ts";
import { formOf } from "../printers/form.ts";

type Action = "validate" | "enable" | "cancel";

async function ask(invocation: Invocation, action: Action, version: string): Promise<void> {
  await printAnswer(invocation, downgradeForm(action), (client) =>
    client.downgrade(action, version),
  );
}

/** The only argument. Throws Exit. */
function targetVersion({ args }: Invocation): string {
  const [version, more] = args;
  if (version === undefined) throw badArguments("TARGET_VERSION not provided");
  if (more !== undefined) throw badArguments("too many arguments");
  if (version === "") throw badArguments("target version not provided");
  return version;
}

const validateCommand: Command = {
  use: "validate <TARGET_VERSION>",
  short: "Checks whether the cluster can be downgraded to a version",
  run: (invocation) => ask(invocation, "validate", targetVersion(invocation)),
};

const enableCommand: Command = {
  use: "enable <TARGET_VERSION>",
  short: "Starts a downgrade of the cluster to a version",
  run: (invocation) => ask(invocation, "enable", targetVersion(invocation)),
};

const cancelCommand: Command = {
  use: "cancel",
  short: "Cancels a downgrade",
  run: (invocation) => ask(invocation, "cancel", ""),
};

export const downgradeCommand: CommandBody = {
  commands: [cancelCommand, enableCommand, validateCommand],
};

/** @param action what was asked for */
const downgradeForm = (action: string) =>
  formOf(DowngradeResponse, {
    simple: ({ version }) => `Downgrade ${action} success, cluster version ${version}\n`,
  });
