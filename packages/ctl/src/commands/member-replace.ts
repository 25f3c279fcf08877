/**
 * quoratectl member replace: replaces a member safely. Not in etcdctl.
 *
 *     cluster has        step
 *     OLD                add the new one as a learner, and print what to start it with
 *     OLD, NEW learner   wait until it is started and has caught up, then promote it
 *     OLD, NEW voter     remove OLD
 *     NEW voter          done
 *
 * Each step starts from the cluster's present members, so the command can be interrupted and
 * repeated at any point. The cluster never has fewer working voters than before.
 */

import type { Command, Invocation } from "@quorate/cli";
import { badArguments, durationFlag, textFlag } from "@quorate/cli";
import type { Client } from "@quorate/client";
import { defined, idToHex, type Member } from "@quorate/proto";
import { withClient } from "../connect/globals.ts";
import { repeatSteps, type Stepped } from "./member-steps.ts";
import { printVariables } from "./member-variables.ts";

interface Replacement {
  readonly invocation: Invocation;
  readonly client: Client;
  /** The old member's id or name. */
  readonly old: string;
  readonly newUrl: string;
  /** Whether this run has printed the variables of the new member. */
  hasPrintedVariables: boolean;
}

function isOld(member: Member, old: string): boolean {
  return idToHex(member.ID) === old.toLowerCase() || (member.name !== "" && member.name === old);
}

/** An unused name: --name, or the old one's with a suffix. */
function newName({ invocation, old }: Replacement, members: readonly Member[]): string {
  const given = invocation.flags.string("name");
  if (members.some((member) => member.name === given && given !== "")) {
    throw badArguments(
      `a member is named ${JSON.stringify(given)} already; choose another --name for the new one`,
    );
  }
  if (given !== "") return given;
  const base = members.find((member) => isOld(member, old))?.name || "member";
  let name = `${base}-new`;
  for (let n = 2; members.some((member) => member.name === name); n++) name = `${base}-new${n}`;
  return name;
}

function printStartVariables(
  replacement: Replacement,
  name: string,
  member: Member,
  members: Member[],
): void {
  const { io } = replacement.invocation;
  replacement.hasPrintedVariables = true;
  io.stdout("Start it with these variables or the corresponding flags:\n");
  printVariables(io, name, [replacement.newUrl], { member, members });
  io.stdout("\n");
}

/**
 * Takes the next step. `done` is true when none is left. Rejects with ClientError, or Exit for an
 * error that a retry cannot fix.
 */
async function step(replacement: Replacement): Promise<Stepped> {
  const { client, invocation, old: oldText, newUrl } = replacement;
  const { io } = invocation;
  const { members } = await client.memberList();
  const old = members.find((member) => isOld(member, oldText));
  const added = members.find((member) => member.peerURLs.includes(newUrl));
  if (added !== undefined && added.ID === old?.ID) {
    throw badArguments(
      `${newUrl} is the peer URL of ${oldText} itself: the new member runs beside the old one until it has caught up, so it needs ` +
        "another URL (another port will do)",
    );
  }
  if (added === undefined) {
    if (old === undefined)
      throw badArguments(`no member has the id or name ${JSON.stringify(oldText)}`);
    const name = newName(replacement, members);
    const added = await client.memberAdd([newUrl], { isLearner: true });
    const member = defined(added.member, "the added member");
    io.stdout(`Member ${idToHex(member.ID)} added as learner. `);
    printStartVariables(replacement, name, member, added.members);
    return { done: false, waitsFor: "" };
  }
  const id = idToHex(added.ID);
  if (added.isLearner) {
    if (added.name === "") {
      if (!replacement.hasPrintedVariables)
        printStartVariables(replacement, newName(replacement, members), added, members);
      return { done: false, waitsFor: `member ${id} (${newUrl}) has not been started yet` };
    }
    await client.memberPromote(added.ID);
    io.stdout(`Member ${id} (${added.name}) has caught up and is a voter now.\n`);
    return { done: false, waitsFor: "" };
  }
  if (old === undefined) {
    io.stdout(`Member ${id} (${added.name}) has replaced ${oldText}.\n`);
    return { done: true, waitsFor: "" };
  }
  await client.memberRemove(old.ID);
  io.stdout(`Member ${idToHex(old.ID)} (${old.name}) removed.\n`);
  return { done: false, waitsFor: "" };
}

export const replaceCommand: Command = {
  use: "replace <memberID|memberName> <new-peer-URL> [options]",
  short: "Replaces a member by a new one, in steps that can be interrupted and repeated",
  long: `Replaces a member, which may have failed, by a new one: adds the new one as a learner, prints the
variables to start it with, waits until it has caught up, promotes it, and removes the old one.

The command can be interrupted at any point; run again, it continues from the cluster's state.`,
  flags: {
    name: textFlag("name of the new member (default the old one's with a suffix)"),
    "wait-timeout": durationFlag("how long to wait for the new member and for the cluster", "1h"),
  },
  async run(invocation) {
    const { args, flags, io } = invocation;
    if (args.length !== 2)
      throw badArguments(
        "member replace needs the old member's id or name and the new member's peer URL",
      );
    const [old, newUrl] = args as [string, string];
    const deadlineNs = io.nowNs() + BigInt(Math.round(flags.durationMs("wait-timeout") * 1e6));
    await withClient(invocation, ({ client }) => {
      const replacement = { invocation, client, old, newUrl, hasPrintedVariables: false };
      return repeatSteps(io, deadlineNs, () => step(replacement));
    });
  },
};
