/**
 * quoratectl member replace: the safe way from an old member to a new one. Beyond etcd's commands.
 *
 *     cluster has        step
 *     OLD                add the new one as a learner, and print what to start it with
 *     OLD, NEW learner   wait until it is started and has caught up, then promote it
 *     OLD, NEW voter     remove OLD
 *     NEW voter          done
 *
 * Before each step the cluster is asked how it stands, so the command may end at any point, by
 * itself or not, and be given again. At no point does the cluster have fewer working voters than
 * before.
 */
import type { Client } from "@quorate/client";
import { idToHex, type Member } from "@quorate/proto";
import { withClient } from "../globals.ts";
import { Exit, ExitCode } from "../io.ts";
import type { Command, Invocation } from "../program.ts";
import { printVariables } from "./member-variables.ts";

/** How often the cluster is asked again while a step cannot be taken yet. */
const RETRY_MS = 500;
/** How often the operator is told what is waited for. */
const TELL_EVERY_MS = 10_000;

/**
 * What the step that comes next is refused for until it can be taken: by what the server says, its
 * code or none.
 */
const PASSING = new Set<string | undefined>([
  "MemberLearnerNotReady",
  "Unhealthy",
  "NoLeader",
  "NotLeader",
  "LeaderChanged",
  "Stopped",
  "Timeout",
  "TimeoutDueToLeaderFail",
  "TimeoutDueToConnectionLost",
  "TooManyRequests",
  // The step was taken, but its answer was lost: the cluster is asked again how it stands.
  "PeerURLExist",
  "MemberExist",
  "MemberNotLearner",
  "MemberNotFound",
]);
const UNAVAILABLE = 14;
const DEADLINE_EXCEEDED = 4;

interface Replacement {
  readonly invocation: Invocation;
  readonly client: Client;
  /** The old member as the command line names it: an id, or a name. */
  readonly old: string;
  readonly newUrl: string;
  readonly deadlineNs: bigint;
  /** Whether the operator has been told in this run what to start the new member with. */
  hasToldVariables: boolean;
}

function isOld(member: Member, old: string): boolean {
  return idToHex(member.ID) === old.toLowerCase() || (member.name !== "" && member.name === old);
}

/** A name that no member has: that of --name, or the old one's with an ending. */
function newName({ invocation, old }: Replacement, members: readonly Member[]): string {
  const given = invocation.flags.string("name");
  if (members.some((member) => member.name === given && given !== "")) {
    throw new Exit(
      ExitCode.badArguments,
      `a member is named ${JSON.stringify(given)} already; give the new one a --name of its own`,
    );
  }
  if (given !== "") return given;
  const base = members.find((member) => isOld(member, old))?.name || "member";
  let name = `${base}-new`;
  for (let n = 2; members.some((member) => member.name === name); n++) name = `${base}-new${n}`;
  return name;
}

function tellVariables(
  replacement: Replacement,
  name: string,
  member: Member,
  members: Member[],
): void {
  const { io } = replacement.invocation;
  replacement.hasToldVariables = true;
  io.stdout("Start it with these variables, or the flags that they stand for:\n");
  printVariables(io, name, [replacement.newUrl], { member, members });
  io.stdout("\n");
}

/**
 * Takes the next step. True when nothing is left to do. Rejects with ClientError, or Exit for what
 * no time will mend.
 */
async function step(replacement: Replacement): Promise<{ done: boolean; waitsFor: string }> {
  const { client, invocation, old: oldText, newUrl } = replacement;
  const { io } = invocation;
  const { members } = await client.memberList();
  const old = members.find((member) => isOld(member, oldText));
  const added = members.find((member) => member.peerURLs.includes(newUrl));
  if (added !== undefined && added.ID === old?.ID) {
    throw new Exit(
      ExitCode.badArguments,
      `${newUrl} is the peer URL of ${oldText} itself: the new member runs beside the old one until it has caught up, so it needs ` +
        "another URL (another port will do)",
    );
  }
  if (added === undefined) {
    if (old === undefined)
      throw new Exit(
        ExitCode.badArguments,
        `no member has the id or name ${JSON.stringify(oldText)}`,
      );
    const name = newName(replacement, members);
    const { member, members: all } = await client.memberAdd([newUrl], { isLearner: true });
    io.stdout(`Member ${idToHex(member!.ID)} added as learner. `);
    tellVariables(replacement, name, member!, all);
    return { done: false, waitsFor: "" };
  }
  const id = idToHex(added.ID);
  if (added.isLearner) {
    if (added.name === "") {
      if (!replacement.hasToldVariables)
        tellVariables(replacement, newName(replacement, members), added, members);
      return { done: false, waitsFor: `member ${id} (${newUrl}) has not been started yet` };
    }
    await client.memberPromote(added.ID);
    io.stdout(`Member ${id} (${added.name}) has caught up and is a voter now.\n`);
    return { done: false, waitsFor: "" };
  }
  if (old === undefined) {
    io.stdout(`Member ${id} (${added.name}) has taken the place of ${oldText}.\n`);
    return { done: true, waitsFor: "" };
  }
  await client.memberRemove(old.ID);
  io.stdout(`Member ${idToHex(old.ID)} (${old.name}) removed.\n`);
  return { done: false, waitsFor: "" };
}

async function run(replacement: Replacement): Promise<void> {
  const { io } = replacement.invocation;
  let told = "";
  let toldNs = 0n;
  for (;;) {
    let waitsFor: string;
    try {
      const result = await step(replacement);
      if (result.done) return;
      waitsFor = result.waitsFor;
    } catch (error) {
      const { code, grpcCode, message } = error as {
        code?: string;
        grpcCode?: number;
        message: string;
      };
      if (
        error instanceof Exit ||
        (!PASSING.has(code) && grpcCode !== UNAVAILABLE && grpcCode !== DEADLINE_EXCEEDED)
      )
        throw error;
      if (code === undefined && grpcCode === undefined) throw error;
      waitsFor = message;
    }
    if (waitsFor === "") continue;
    const nowNs = io.nowNs();
    if (nowNs >= replacement.deadlineNs) {
      throw new Exit(
        ExitCode.error,
        `gave up waiting: ${waitsFor}; the same command goes on from here when it is given again`,
      );
    }
    if (waitsFor !== told || nowNs - toldNs >= BigInt(TELL_EVERY_MS) * 1_000_000n) {
      io.stderr(`waiting: ${waitsFor}\n`);
      told = waitsFor;
      toldNs = nowNs;
    }
    await io.sleep(RETRY_MS);
  }
}

export const replaceCommand: Command = {
  use: "replace <memberID|memberName> <new-peer-URL> [options]",
  short: "Replaces a member by a new one, in steps that can be interrupted and repeated",
  long: `Replaces a member, which may be dead, by a new one: adds the new one as a learner and prints what to start it with, waits until it
has caught up, promotes it, and removes the old one.

The command can be interrupted at any point: given again, it goes on where the cluster stands.`,
  flags: {
    name: {
      kind: "string",
      defaultText: "",
      doc: "name of the new member (that of the old one with an ending if empty)",
    },
    "wait-timeout": {
      kind: "duration",
      defaultText: "1h",
      doc: "how long to wait for the new member and the cluster",
    },
  },
  async run(invocation) {
    const { args, flags, io } = invocation;
    if (args.length !== 2)
      throw new Exit(
        ExitCode.badArguments,
        "member replace needs the old member's id or name and the new member's peer URL",
      );
    const [old, newUrl] = args as [string, string];
    const deadlineNs = io.nowNs() + BigInt(Math.round(flags.durationMs("wait-timeout") * 1e6));
    await withClient(invocation, ({ client }) =>
      run({ invocation, client, old, newUrl, deadlineNs, hasToldVariables: false }),
    );
  },
};
