/**
 * A page that shows why a history is wrong: a row for each client, a bar for each operation from
 * its call to its return, the longest order found as numbers at the moments where operations may
 * have taken effect, and in red those of which one had to come next and none could. The page needs
 * nothing but itself. Time is drawn as the order of calls and returns, not to scale.
 */

import { defined, escapeHtml } from "@quorate/proto";
import type { ModelRequest } from "../base/model.ts";
import { type Operation, words } from "../base/operation.ts";

/** What to draw. */
export interface HistoryPicture {
  readonly title: string;
  /** What is wrong, in words. */
  readonly why: string;
  readonly operations: readonly Operation[];
  /** The longest order, and what is stuck after it. */
  readonly prefix: readonly Operation[];
  readonly stuck: readonly Operation[];
}

const LEFT = 110;
const STEP = 46;
const ROW = 46;
const BAR = 26;
const TOP = 14;

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2330; --soft: #66708a; --paper: #fbfbfd; --line: #d9dde7; --bar: #cfe0fb; --read: #dcefdc;
  --open: #eceef3; --bad: #f7c9c6; --badink: #a3150d; --dot: #24417a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --soft: #98a2ba; --paper: #14171d; --line: #2b3140; --bar: #24406e;
  --read: #24502c; --open: #262b36; --bad: #6b211d; --badink: #ff9d96; --dot: #a9c4ff; } }
body { margin: 0 auto; padding: 24px; max-width: 1400px; background: var(--paper); color: var(--ink);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 26px 0 6px; }
pre { background: var(--open); padding: 12px; border-radius: 6px; overflow-x: auto; white-space: pre-wrap; word-break: break-word; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
svg text { fill: var(--ink); font: 12px ui-monospace, monospace; } svg .who { font-weight: 600; } svg .soft { fill: var(--soft); }
.row { stroke: var(--line); } .op rect { fill: var(--bar); stroke: var(--soft); stroke-width: 0.6; rx: 4px; }
.op.read rect { fill: var(--read); } .op.open rect { fill: var(--open); stroke-dasharray: 4 3; }
.op.stuck rect { fill: var(--bad); stroke: var(--badink); stroke-width: 1.6; } .op.stuck text { fill: var(--badink); }
.op:hover rect, .op:focus rect { stroke-width: 2.4; outline: none; } .op { cursor: pointer; outline: none; }

.late { stroke: var(--dot); stroke-dasharray: 2 3; } .dot { fill: var(--dot); }
svg .number { fill: var(--paper); font-size: 10px; font-weight: 700; text-anchor: middle; }
.key { color: var(--soft); } .key b { display: inline-block; width: 22px; height: 12px; border-radius: 3px;
  margin: 0 4px 0 14px; vertical-align: -1px; }
ol { margin: 0; padding-left: 32px; font: 12px/1.7 ui-monospace, monospace; } li.stuck { color: var(--badink); list-style: "✗  "; }
`;

const SCRIPT = `
document.querySelector(".op.stuck")?.scrollIntoView({ inline: "center", block: "nearest" });
const shown = document.getElementById("shown");
for (const op of document.querySelectorAll(".op")) {
  const show = () => { shown.textContent = op.dataset.words; };
  op.addEventListener("mouseenter", show); op.addEventListener("focus", show); op.addEventListener("click", show);
}
`;

function short(value: string): string {
  return value.length > 8 ? `${value.slice(0, 7)}…` : value;
}

/** A request in a few characters. */
function nameOf(request: ModelRequest): string {
  switch (request.kind) {
    case "put":
      return `${request.key}=${short(request.value)}`;
    case "delete":
      return `del ${request.key}${request.end === "" ? "" : "…"}`;
    case "range":
      return `get ${request.key}${request.end === "" ? "" : "…"}`;
    default:
      return request.kind;
  }
}

/** What came back, in a few characters. */
function foundOf({ outcome }: Operation): string {
  if (outcome?.kind !== "answered") return outcome?.kind === "refused" ? "refused" : "?";
  const [one] = outcome.answer.answers;
  if (one?.kind === "range") {
    const [kv] = one.kvs;
    return one.kvs.length === 0
      ? "→ none"
      : `→ ${one.kvs.length > 1 ? `${one.kvs.length} keys` : short(kv.value)}`;
  }
  return one?.kind === "delete" ? `→ ${one.deleted}` : outcome.answer.succeeded ? "" : "→ else";
}

/** The page. */
export function historyPicture({ title, why, operations, prefix, stuck }: HistoryPicture): string {
  const inOrder = new Set(prefix.map(({ calledAt }) => calledAt));
  const sorted = operations
    .filter(({ calledAt, outcome }) => outcome?.kind === "answered" || inOrder.has(calledAt))
    .sort((a, b) => a.calledAt - b.calledAt);
  const hidden = operations.length - sorted.length;
  const moments = new Set<number>();
  for (const { calledAt, returnedAt } of sorted) {
    moments.add(calledAt);
    if (returnedAt !== undefined) moments.add(returnedAt);
  }
  const columns = new Map([...moments].sort((a, b) => a - b).map((moment, i) => [moment, i]));
  const x = (moment: number) => LEFT + defined(columns.get(moment), "the column") * STEP;
  const width = LEFT + (moments.size + 1) * STEP;
  const clients = [...new Set(sorted.map(({ client }) => client))];
  const height = TOP + clients.length * ROW + 10;

  const parts: string[] = [];
  for (const [i, client] of clients.entries()) {
    const y = TOP + i * ROW + ROW / 2;
    parts.push(`<line class="row" x1="${LEFT - 8}" x2="${width}" y1="${y}" y2="${y}"/>`);
    parts.push(`<text class="who" x="8" y="${y + 4}">${escapeHtml(client)}</text>`);
  }
  // Each takes effect as soon as it can after the one before it.
  const points = new Map<number, { x: number; number: number }>();
  let last = 0;
  for (const [i, { calledAt }] of prefix.entries()) {
    last = Math.max(x(calledAt) + 9, last + 3);
    points.set(calledAt, { x: last, number: i + 1 });
  }
  const isStuck = new Set(stuck.map(({ calledAt }) => calledAt));
  for (const op of sorted) {
    const { calledAt, returnedAt, outcome, request, client } = op;
    const y = TOP + clients.indexOf(client) * ROW + (ROW - BAR) / 2;
    const from = x(calledAt);
    const isOpen = outcome?.kind !== "answered";
    const until = returnedAt === undefined ? width - 6 : x(returnedAt);
    const kind = isStuck.has(calledAt)
      ? "stuck"
      : isOpen
        ? "open"
        : request.kind === "range"
          ? "read"
          : "write";
    const text = escapeHtml(words(op));
    const label = escapeHtml(`${nameOf(request)} ${foundOf(op)}`);
    const point = points.get(calledAt);
    const mark =
      point === undefined
        ? ""
        : `<circle class="dot" cx="${point.x}" cy="${y}" r="8"/><text class="number" x="${point.x}" y="${y + 3.5}">${point.number}</text>`;
    // Where it takes effect after its client gave up.
    if (point !== undefined && point.x > until)
      parts.push(`<line class="late" x1="${until}" x2="${point.x}" y1="${y}" y2="${y}"/>`);
    parts.push(
      `<g class="op ${kind}" tabindex="0" data-words="${text}"><title>${text}</title>`,
      `<rect x="${from}" y="${y}" width="${Math.max(6, until - from)}" height="${BAR}"/>`,
      `<text x="${from + 5}" y="${y + 19}">${label}</text>${mark}</g>`,
    );
  }
  const order = prefix.map((op) => `<li>${escapeHtml(words(op))}</li>`).join("\n");
  const rest = stuck.map((op) => `<li class="stuck">${escapeHtml(words(op))}</li>`).join("\n");
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}: not linearizable</title><style>${STYLE}</style></head><body>
<h1>${escapeHtml(title)}</h1>
<p class="key">${sorted.length} operations of ${clients.length} clients.
<b style="background:var(--bar)"></b>write<b style="background:var(--read)"></b>read
<b style="background:var(--open)"></b>outcome unknown, or of no matter<b style="background:var(--bad)"></b>cannot come next.
Numbers: the longest order that explains every answer.
${hidden === 0 ? "" : `${hidden} writes of unknown outcome that help nowhere are not drawn.`}</p>
<pre>${escapeHtml(why)}</pre>
<div class="scroll"><svg width="${width}" height="${height}" role="img" aria-label="the operations of each client over time">
${parts.join("\n")}
</svg></div>
<pre id="shown">Point at an operation to see its request and its answer.</pre>
<h2>The longest order, and what cannot come next</h2>
<ol>${order}
${rest}</ol>
<script>${SCRIPT}</script></body></html>
`;
}
