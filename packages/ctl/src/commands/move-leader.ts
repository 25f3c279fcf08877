import { badArguments, type CommandBody, type Invocation } from "@quorate/cli";
import { endpointsOf, withClient } from "../connect/globals.ts";
import { onlyArgument } from "../connect/one-call.ts";
import { printerOf } from "../printers/choose.ts";
import { moveLeaderForm } from "../printers/member-forms.ts";
import { parseMemberId } from "./member-id.ts";

/** The endpoint of the leader. Throws Exit if it is not among the endpoints. */
async function leaderAmong(invocation: Invocation): Promise<{ endpoint: string; leader: bigint }> {
  const endpoints = await endpointsOf(invocation);
  for (const endpoint of endpoints) {
    const { leader, header } = await withClient(invocation, ({ client }) =>
      client.status(endpoint),
    );
    if (leader !== 0n && leader === header?.memberId) return { endpoint, leader };
  }
  throw badArguments(`no leader endpoint given at [${endpoints.join(" ")}]`);
}

export const moveLeaderCommand: CommandBody = {
  async run(invocation) {
    const text = onlyArgument(invocation, "move-leader command needs 1 argument");
    const target = parseMemberId(text, (reason) => reason);
    const printer = printerOf(invocation);
    const { endpoint, leader } = await leaderAmong(invocation);
    printer.form(
      moveLeaderForm(leader, target),
      await withClient(invocation, ({ client }) => client.moveLeader(endpoint, target)),
    );
  },
};
