import type { Command, CommandBody, Invocation } from "@quorate/cli";
import { badArguments, boolFlag, textFlag } from "@quorate/cli";
import { withClient } from "../connect/globals.ts";
import { onlyArgument } from "../connect/one-call.ts";
import { peerUrl } from "../connect/peer-url.ts";
import { printerOf } from "../printers/choose.ts";
import {
  memberAddForm,
  memberListForm,
  memberPromoteForm,
  memberRemoveForm,
  memberUpdateForm,
} from "../printers/member-forms.ts";
import { consistencyFlag, isSerializable } from "./consistency.ts";
import { addOnce, idempotentFlag, promoteOnce, removeOnce } from "./member-done-before.ts";
import { parseMemberId } from "./member-id.ts";
import { replaceCommand } from "./member-replace.ts";
import { printVariables } from "./member-variables.ts";

/** The peer URLs of --peer-urls. Throws Exit if it is missing or malformed. */
function peerUrls({ flags }: Invocation): string[] {
  const text = flags.string("peer-urls");
  if (text === "") throw badArguments("member peer urls not provided");
  const urls = text.split(",");
  for (const url of urls) peerUrl(url);
  return urls;
}

/** The only argument, a member's id. Throws Exit. */
function memberId(invocation: Invocation): bigint {
  return parseMemberId(onlyArgument(invocation, "member ID is not provided"));
}

const addCommand: Command = {
  use: "add <memberName> [options]",
  short: "Adds a member to the cluster",
  long: `Adds a member to the cluster and prints the variables to start it with.

Repeat the command if its outcome is unknown: if a member has exactly these peer URLs, and the same
name or none yet, it was added before; it is printed again, with exit code 0.`,
  flags: {
    "peer-urls": textFlag("comma-separated peer URLs of the new member"),
    learner: boolFlag("add it as a learner, which does not vote until it is promoted"),
  },
  async run(invocation) {
    const { args, flags, io } = invocation;
    const [name] = args;
    if (name === undefined) throw badArguments("member name not provided");
    if (args.length > 1) {
      const hints = args
        .filter((one) => /^http/i.test(one))
        .map((one) => `, did you mean --peer-urls=${one}`);
      throw badArguments(`too many arguments${hints.join("")}`);
    }
    const urls = peerUrls(invocation);
    const printer = printerOf(invocation);
    const addition = { name, urls, isLearner: flags.bool("learner") };
    const response = await withClient(invocation, ({ client }) => addOnce(client, io, addition));
    printer.form(memberAddForm, response);
    if (printer.format === "simple") printVariables(io, name, urls, response);
  },
};

const removeCommand: Command = {
  use: "remove <memberID> [options]",
  short: "Removes a member from the cluster",
  flags: { ...idempotentFlag },
  async run(invocation) {
    const id = memberId(invocation);
    const isRepeatable = invocation.flags.bool("idempotent");
    const printer = printerOf(invocation);
    printer.form(
      memberRemoveForm(id),
      await withClient(invocation, ({ client }) =>
        removeOnce(client, invocation.io, id, isRepeatable),
      ),
    );
  },
};

const updateCommand: Command = {
  use: "update <memberID> [options]",
  short: "Replaces the peer URLs of a member",
  flags: {
    "peer-urls": textFlag("comma-separated peer URLs of the member"),
  },
  async run(invocation) {
    const id = memberId(invocation);
    const urls = peerUrls(invocation);
    printerOf(invocation).form(
      memberUpdateForm(id),
      await withClient(invocation, ({ client }) => client.memberUpdate(id, urls)),
    );
  },
};

const promoteCommand: Command = {
  use: "promote <memberID> [options]",
  short: "Makes a learner a voter",
  long: "Makes a learner a voter, if it has caught up with the leader.",
  flags: { ...idempotentFlag },
  async run(invocation) {
    const id = memberId(invocation);
    const isRepeatable = invocation.flags.bool("idempotent");
    const printer = printerOf(invocation);
    printer.form(
      memberPromoteForm(id),
      await withClient(invocation, ({ client }) =>
        promoteOnce(client, invocation.io, id, isRepeatable),
      ),
    );
  },
};

const listCommand: Command = {
  use: "list",
  short: "Lists the members of the cluster",
  long: `Lists the members of the cluster.

In the simple format each line has ID, status, name, peer URLs, client URLs, is learner.`,
  flags: { consistency: consistencyFlag },
  async run(invocation) {
    const linearizable = !isSerializable(invocation.flags);
    const printer = printerOf(invocation);
    printer.form(
      memberListForm,
      await withClient(invocation, ({ client }) => client.memberList({ linearizable })),
    );
  },
};

export const memberCommand: CommandBody = {
  commands: [addCommand, listCommand, promoteCommand, removeCommand, replaceCommand, updateCommand],
};
