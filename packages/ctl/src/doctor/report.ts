/** The doctor's report, as text and as JSON. */

import type { Paint } from "@quorate/cli";
import { goJson } from "@quorate/cli";
import { idToHex } from "@quorate/proto";
import { refusedLogin } from "../observe/login.ts";
import { hasResponded } from "../observe/responded.ts";
import type { Finding, Note } from "./finding.ts";
import { type ClusterView, labelOf, membersOf } from "./view.ts";

/**
 * The text report: a line about the cluster, then for each finding the observation, the expected
 * state and the commands.
 */
export function humanReport(
  view: ClusterView,
  findings: readonly Finding[],
  notes: readonly Note[],
  paint: Paint,
): string {
  const lines = [summary(view)];
  const checkWidth = Math.max(0, ...findings.map(({ check }) => check.length));
  const memberWidth = Math.max(0, ...findings.map(({ member }) => member.length));
  for (const { severity, check, member, seen, right, next, run } of findings) {
    const mark = paint(severity.padEnd(7), "bold", severity === "error" ? "red" : "yellow");
    const indent = " ".repeat(9);
    lines.push(
      "",
      `${mark}  ${check.padEnd(checkWidth)}  ${paint(member.padEnd(memberWidth), "bold")}  ${seen}`,
    );
    lines.push(
      `${indent}${paint("right:", "dim")} ${right}`,
      `${indent}${paint("next: ", "dim")} ${next}`,
    );
    // On a line of its own, behind spaces only, so that it can be copied.
    lines.push(...run.map((command) => `${indent}       ${paint(command, "cyan")}`));
  }
  if (notes.length > 0)
    lines.push(
      "",
      ...notes.map(({ member, text }) => `${paint("note", "dim")}     ${member}: ${text}`),
    );
  const count = (severity: Finding["severity"], name: string): string => {
    const n = findings.filter((one) => one.severity === severity).length;
    return `${n} ${name}${n === 1 ? "" : "s"}`;
  };
  lines.push(
    "",
    findings.length === 0
      ? paint("Nothing is wrong.", "bold", "green")
      : `${count("error", "error")}, ${count("warning", "warning")}.`,
  );
  return `${lines.join("\n")}\n`;
}

function summary(view: ClusterView): string {
  const members = membersOf(view.members);
  const responding = members.filter(hasResponded);
  const refusing = members.filter((one) => refusedLogin(one) !== undefined).length;
  const leader = responding.find(({ status }) => status.leader === status.header?.memberId);
  const named = responding.find(({ status }) => status.leader !== 0n)?.status;
  const versions = [...new Set(responding.map(({ status }) => status.version))].join(", ");
  if (members.length === 0) return "no member was examined";
  return [
    `${members.length} member${members.length === 1 ? "" : "s"}, ${responding.length} of them respond`,
    ...(refusing === 0 ? [] : [`${refusing} refuse to answer without a user's login`]),
    ...(leader !== undefined
      ? [`${leader.label} leads in term ${leader.status.raftTerm}`]
      : named !== undefined
        ? [`the leader, ${labelOf(view, named.leader)}, was not examined`]
        : refusing > 0
          ? []
          : ["no leader"]),
    ...(versions === "" ? [] : [`version ${versions}`]),
  ].join("; ");
}

/**
 * The JSON report: one object with healthy, members, findings and notes.
 */
export function jsonReport(
  view: ClusterView,
  findings: readonly Finding[],
  notes: readonly Note[],
): string {
  const members = membersOf(view.members).map(({ label, endpoint, member, status, clock }) => ({
    name: label,
    endpoint,
    id: idToHex(member?.ID ?? status?.header?.memberId ?? 0n),
    answers: status !== undefined,
    leader: status !== undefined && status.leader === status.header?.memberId,
    version: status?.version,
    clockOffsetMs: clock === undefined ? undefined : Math.round((clock.lowMs + clock.highMs) / 2),
  }));
  return `${goJson({
    healthy: findings.length === 0,
    members,
    findings: findings.map((one) => ({ ...one })),
    notes: notes.map((one) => ({ ...one })),
  })}\n`;
}
