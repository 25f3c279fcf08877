/**
 * Whether a member can be restarted now without clients noticing: the others must be a majority of
 * the voters that works while it is down. Unlike the findings, this is about the next minute only.
 */

import { badArguments, Exit, ExitCode, goJson, type Io } from "@quorate/cli";
import { idToHex } from "@quorate/proto";
import { refusedLogin } from "../observe/login.ts";
import { type ClusterView, type MemberView, membersOf } from "./view.ts";

/** Entries that another member may be behind: it catches up within a moment. */
const MAX_BEHIND_ENTRIES = 500;

/**
 * The reasons against a restart now; none: it is safe.
 * @param name the member's name or id; undefined is returned where no member has it
 */
export function reasonsAgainstRestart(view: ClusterView, name: string): string[] | undefined {
  const members = membersOf(view.members);
  const target = members.find((one) => isNamed(one, name));
  if (target?.member === undefined) return undefined;
  const others = members.filter((one) => one !== target && one.member?.isLearner === false);
  const working = others.filter((one) => troubleOf(one, newestIndex(members)) === undefined);
  const voters = others.length + (target.member.isLearner ? 0 : 1);
  const quorum = Math.floor(voters / 2) + 1;
  const reasons = others.flatMap((one) => {
    const trouble = troubleOf(one, newestIndex(members));
    return trouble === undefined ? [] : [`${one.label} ${trouble}`];
  });
  if (target.member.isLearner || working.length >= quorum) return [];
  return [
    `${working.length} of the other members work, and ${quorum} of ${voters} voters must`,
    ...reasons,
  ];
}

const isNamed = ({ member }: MemberView, name: string): boolean =>
  member !== undefined &&
  ((member.name !== "" && member.name === name) || idToHex(member.ID) === name.toLowerCase());

const newestIndex = (members: readonly MemberView[]): number =>
  Math.max(0, ...members.map(({ status }) => status?.raftIndex ?? 0));

/** Why a member would not count for the majority; undefined: it would. */
function troubleOf(one: MemberView, newest: number): string | undefined {
  const { status, failure, metrics, member } = one;
  if (member?.name === "") return "was never started";
  if (status === undefined)
    return refusedLogin(one) === undefined
      ? `does not respond: ${failure}`
      : `refuses the request: ${failure}`;
  if (status.leader === 0n) return "has no leader";
  const behind = newest - status.raftAppliedIndex;
  if (behind > MAX_BEHIND_ENTRIES) return `is ${behind} entries behind`;
  if (metrics?.value("quorate_server_healing") === 1) return "rebuilds its store";
  return undefined;
}

/** Prints the answer. Throws Exit with code 1 if it is no. */
export function answerRestart(io: Io, view: ClusterView, name: string, isJson: boolean): void {
  const reasons = reasonsAgainstRestart(view, name);
  if (reasons === undefined) {
    const names = membersOf(view.members).map(({ label }) => label);
    throw badArguments(
      `no member is named ${JSON.stringify(name)}; there are: ${names.join(", ")}`,
    );
  }
  const safe = reasons.length === 0;
  if (isJson) io.stdout(`${goJson({ member: name, safe, reasons })}\n`);
  else if (safe) io.stdout(`It is safe to restart ${name} now.\n`);
  if (!safe)
    throw new Exit(
      ExitCode.error,
      isJson ? "" : `it is not safe to restart ${name} now: ${reasons.join("; ")}`,
    );
}
