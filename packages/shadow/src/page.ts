/**
 * The page of a shadow on its metrics port: the report as a table, without a script. A browser
 * fetches it again by itself.
 *
 *     GET /             the page
 *     GET /shadow.css   its style
 *     GET /report.json  the report
 */
import { type HttpHandler, type HttpResponse, plainError } from "@quorate/host";
import { escapeHtml } from "@quorate/proto";
import type { ShadowReport } from "./report.ts";

const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cache-control": "no-store",
};
const NOT_FOUND = plainError(404, "404 page not found");
const REFRESH_SECONDS = 10;

const STYLE = `:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1.1rem; margin-top: 1.5rem; }
.verdict { border-left: .4rem solid #2a7d4f; padding: .6rem 1rem; font-weight: 600; }
.verdict.differs { border-color: #b3261e; }
.verdict.open { border-color: #8a6d00; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #8884; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
`;

/** The pages, by path. */
export function shadowPages(report: () => ShadowReport): ReadonlyMap<string, HttpHandler> {
  const read = (only: string, type: string, body: () => string): [string, HttpHandler] => [
    only,
    ({ method, path }): HttpResponse => {
      // The path "/" takes all that no other path does.
      if (path !== only) return NOT_FOUND;
      if (method !== "GET" && method !== "HEAD")
        return plainError(405, "Method Not Allowed", { allow: "GET" });
      return { status: 200, headers: { ...HEADERS, "content-type": type }, body: body() };
    },
  ];
  return new Map([
    read("/", "text/html; charset=utf-8", () => pageOf(report())),
    read("/shadow.css", "text/css; charset=utf-8", () => STYLE),
    read("/report.json", "application/json", () => `${JSON.stringify(report(), null, 2)}\n`),
  ]);
}

type Cell = string | number;

function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const cell = (one: Cell): string =>
    `<td${typeof one === "number" ? ' class="number"' : ""}>${escapeHtml(String(one))}</td>`;
  const headed = head.map((text) => `<th scope="col">${escapeHtml(text)}</th>`).join("");
  const body = rows.map((row) => `<tr>${row.map(cell).join("")}</tr>`).join("\n");
  return `<table><thead><tr>${headed}</tr></thead><tbody>\n${body}\n</tbody></table>`;
}

function pageOf(report: ShadowReport): string {
  const { revisions, comparisons, compactions, store, members, otherwise, difference } = report;
  const mood = difference !== null ? "differs" : revisions.equal === 0 ? "open" : "equal";
  const facts: [string, Cell][] = [
    ["state", report.reason === "" ? report.phase : `${report.phase}: ${report.reason}`],
    ["follows since", report.startedAt],
    ["revision", revisions.current],
    ["compacted", revisions.compacted],
    ["entries behind", store.lagEntries],
    ["comparisons that were equal", comparisons.equal],
    ["comparisons that were not", comparisons.different],
    ["comparisons that no voter answered", comparisons.none],
    ["compactions, and those compared equal", `${compactions.applied}, ${compactions.equal}`],
    ["keys", store.keys],
    ["live bytes", store.liveBytes],
    ["requests a second", Math.round(report.requestsPerSecond * 10) / 10],
  ];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="${REFRESH_SECONDS}">
<title>Shadow ${escapeHtml(report.name)}</title>
<link rel="stylesheet" href="shadow.css">
</head>
<body>
<h1>Shadow ${escapeHtml(report.name)} of cluster ${escapeHtml(report.clusterId)}</h1>
<p class="verdict ${mood}">${escapeHtml(report.verdict)}</p>
${table(["", ""], facts)}
<h2>Members</h2>
${table(
  ["name", "version", "role", "applied", "database bytes", "in use", "quota", ""],
  members.map((one) => [
    one.name,
    one.version,
    one.isLeader ? "leader" : one.isLearner ? "learner" : "voter",
    one.appliedIndex,
    one.databaseBytes,
    one.databaseInUseBytes,
    one.quotaBytes,
    one.problem,
  ]),
)}
<h2>Requests</h2>
${table(["kind", "applied"], Object.entries(report.requests))}
<h2>What Quorate would have refused or done otherwise</h2>
${
  otherwise.length === 0
    ? "<p>Nothing.</p>"
    : table(
        ["what", "times", "last index"],
        otherwise.map(({ what, count, lastIndex }) => [what, count, lastIndex]),
      )
}
<p><a href="report.json">report.json</a> <a href="metrics">metrics</a></p>
</body>
</html>
`;
}
