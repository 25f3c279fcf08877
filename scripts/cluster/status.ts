/**
 * How the members of a plan stand, as a table:
 *
 *     MEMBER  PID   ROLE      CLIENT URL              HEALTH   DB SIZE  VERSION  SINCE
 *     infra0  4711  leader    https://127.0.0.1:3379  healthy  25 kB    3.7.0    2026-01-31
 *                                                              12:00:00 (3m)
 *     infra1  -     -         https://127.0.0.1:4379  down     -        -        -
 *
 * Every member is asked for itself, all at once, so one that is down or stands still delays nothing
 * but its own line.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { certificateFiles } from "../certs.ts";
import { runningPid, type Say } from "./control.ts";
import { createHealthProbe, type HealthProbe } from "./health.ts";
import { type ClusterPlan, certsDir, clientUrl, type MemberPlan, pidFile } from "./layout.ts";
import { callOf } from "./programs.ts";
import { ctl } from "./tools.ts";

/** How long one member may take to answer each of the two questions that it is asked. */
const ASK_LIMIT_MS = 3000;
const HEADINGS = ["MEMBER", "PID", "ROLE", "CLIENT URL", "HEALTH", "DB SIZE", "VERSION", "SINCE"];
const NONE = "-";

/**
 * Prints the table. True if every member is healthy. @param nowMs the wall clock, in milliseconds
 * since 1970
 */
export async function clusterStatus(plan: ClusterPlan, say: Say, nowMs: number): Promise<boolean> {
  const probe = probeOf(plan);
  try {
    const rows = await Promise.all(plan.members.map((member) => rowOf(plan, member, probe, nowMs)));
    const cells = [HEADINGS, ...rows.map(({ cells }) => cells)];
    const widths = HEADINGS.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
    for (const row of cells)
      say(
        row
          .map((cell, column) => cell.padEnd(widths[column]))
          .join("  ")
          .trimEnd(),
      );
    for (const { name, trouble } of rows) if (trouble !== undefined) say(`${name}: ${trouble}`);
    return rows.every(({ isHealthy }) => isHealthy);
  } finally {
    await probe?.close();
  }
}

interface Row {
  readonly name: string;
  readonly cells: readonly string[];
  readonly isHealthy: boolean;
  /** What is wrong with it and what to do, if something is. */
  readonly trouble: string | undefined;
}

/** Undefined while there are no certificates: then nothing runs either. */
function probeOf(plan: ClusterPlan): HealthProbe | undefined {
  const certs = certificateFiles(certsDir(plan));
  if (![certs.ca, certs.client, certs.clientKey].every((path) => existsSync(path)))
    return undefined;
  const read = (path: string): string => readFileSync(path, "utf8");
  return createHealthProbe({
    ca: read(certs.ca),
    cert: read(certs.client),
    key: read(certs.clientKey),
  });
}

async function rowOf(
  plan: ClusterPlan,
  member: MemberPlan,
  probe: HealthProbe | undefined,
  nowMs: number,
): Promise<Row> {
  const { name } = member;
  const url = clientUrl(member);
  const pid = runningPid(plan, member);
  if (pid === undefined || probe === undefined) {
    const cells = [name, NONE, NONE, url, "down", NONE, NONE, NONE];
    return {
      name,
      cells,
      isHealthy: false,
      trouble: `it does not run; ${callOf("start")} starts it`,
    };
  }
  const [reason, { role, dbSize, version }] = await Promise.all([
    probe.trouble(url, ASK_LIMIT_MS),
    askMember(plan, member),
  ]);
  const health = reason === undefined ? "healthy" : "unhealthy";
  const cells = [name, String(pid), role, url, health, dbSize, version, since(plan, member, nowMs)];
  return { name, cells, isHealthy: reason === undefined, trouble: reason };
}

/** What the member says of itself; a dash each if it does not answer. */
export async function askMember(
  plan: ClusterPlan,
  member: MemberPlan,
): Promise<{ role: string; dbSize: string; version: string }> {
  try {
    const limit = `${ASK_LIMIT_MS}ms`;
    const line = await ctl(
      plan,
      member,
      "endpoint",
      "status",
      "-w",
      "simple",
      `--command-timeout=${limit}`,
      `--dial-timeout=${limit}`,
    );
    // endpoint, id, version, storage version, size, size in use, share not in use, quota, is
    // leader, is learner, ...
    const fields = line.split("\n")[0].split(", ");
    if (fields.length < 10) return { role: NONE, dbSize: NONE, version: NONE };
    const role = fields[8] === "true" ? "leader" : fields[9] === "true" ? "learner" : "follower";
    return { role, dbSize: fields[4], version: fields[2] };
  } catch {
    return { role: NONE, dbSize: NONE, version: NONE };
  }
}

/** When the member was started: its pid file was written then. */
function since(plan: ClusterPlan, member: MemberPlan, nowMs: number): string {
  let startedMs: number;
  try {
    startedMs = statSync(pidFile(plan, member)).mtimeMs;
  } catch {
    return NONE;
  }
  const at = new Date(startedMs).toISOString().slice(0, 19).replace("T", " ");
  return `${at} UTC (${shownDuration(Math.max(0, nowMs - startedMs))})`;
}

/** The two largest units: 45s, 3m 10s, 2h 5m, 4d 1h. */
export function shownDuration(durationMs: number): string {
  const seconds = Math.floor(durationMs / 1000);
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return `${days}d ${hours}h`;
  if (hours > 0) return `${hours}h ${minutes}m`;
  return minutes > 0 ? `${minutes}m ${seconds % 60}s` : `${seconds}s`;
}
