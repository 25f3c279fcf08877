/** Rows of what is printed in tables, and as comma-separated lists in the simple form. */
import { escapeControls } from "@quorate/host";
import {
  type HashKVResponse,
  idToHex,
  type MemberListResponse,
  type StatusResponse,
} from "@quorate/proto";
import { humanBytes } from "../go-format.ts";
import type { EndpointAnswer, EndpointHealth } from "./printer.ts";

export interface Table {
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function memberTable(response: MemberListResponse): Table {
  return {
    header: ["ID", "Status", "Name", "Peer Addrs", "Client Addrs", "Is Learner"],
    rows: response.members.map((member) => [
      idToHex(member.ID),
      member.name === "" ? "unstarted" : "started",
      member.name,
      member.peerURLs.join(","),
      member.clientURLs.join(","),
      String(member.isLearner),
    ]),
  };
}

export function healthTable(list: readonly EndpointHealth[]): Table {
  return {
    header: ["endpoint", "health", "took", "error"],
    rows: list.map((one) => [one.endpoint, String(one.health), one.took, one.error]),
  };
}

export function statusTable(list: readonly EndpointAnswer<StatusResponse>[]): Table {
  return {
    header: [
      "endpoint",
      "ID",
      "version",
      "storage version",
      "db size",
      "in use",
      "percentage not in use",
      "quota",
      "is leader",
      "is learner",
      "raft term",
      "raft index",
      "raft applied index",
      "errors",
      "downgrade target version",
      "downgrade enabled",
    ],
    rows: list.map(({ endpoint, response }) => [
      endpoint,
      idToHex(response.header?.memberId ?? 0n),
      response.version,
      response.storageVersion,
      humanBytes(response.dbSize),
      humanBytes(response.dbSizeInUse),
      `${unusedPercentage(response)}%`,
      humanBytes(response.dbSizeQuota),
      String(response.leader === (response.header?.memberId ?? 0n)),
      String(response.isLearner),
      String(response.raftTerm),
      String(response.raftIndex),
      String(response.raftAppliedIndex),
      response.errors.join(", "),
      response.downgradeInfo?.targetVersion ?? "",
      String(response.downgradeInfo?.enabled ?? false),
    ]),
  };
}

function unusedPercentage({ dbSize, dbSizeInUse }: StatusResponse): number {
  // Files are compressed: they may be smaller than what is in use.
  return dbSize === 0 ? 0 : Math.max(0, 100 - Math.trunc((dbSizeInUse * 100) / dbSize));
}

export function hashTable(list: readonly EndpointAnswer<HashKVResponse>[]): Table {
  return {
    header: ["endpoint", "hash", "hash_revision"],
    rows: list.map(({ endpoint, response }) => [
      endpoint,
      String(response.hash),
      String(response.hashRevision),
    ]),
  };
}

/**
 * Draws a table: headings in capitals and centred, cells to the right. Control characters in cells
 * are shown as \xNN or \uNNNN.
 */
export function drawTable({ header, rows: texts }: Table): string {
  const rows = texts.map((row) => row.map(escapeControls));
  const titles = header.map((title) => title.replaceAll("_", " ").toUpperCase());
  const widths = titles.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column])].map(width)),
  );
  const rule = (left: string, middle: string, right: string): string =>
    left + widths.map((size) => "─".repeat(size + 2)).join(middle) + right;
  const line = (cells: readonly string[], pad: (text: string, size: number) => string): string =>
    `│${cells.map((cell, column) => ` ${pad(cell, widths[column])} `).join("│")}│`;
  const body = rows.map((row) => line(row, padLeft));
  const lines = [
    rule("┌", "┬", "┐"),
    line(titles, centre),
    ...(rows.length > 0 ? [rule("├", "┼", "┤"), ...body] : []),
    rule("└", "┴", "┘"),
  ];
  return `${lines.join("\n")}\n`;
}

function width(text: string): number {
  return [...text].length;
}

function padLeft(text: string, size: number): string {
  return " ".repeat(size - width(text)) + text;
}

function centre(text: string, size: number): string {
  const free = size - width(text);
  const left = Math.floor(free / 2);
  return " ".repeat(left) + text + " ".repeat(free - left);
}
