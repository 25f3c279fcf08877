/**
 * Two minutes of the robustness run on every build (./dev robustness --help describes longer
 * ones), and whether its judges are awake: the history that it recorded is spoilt in one place
 * after the other, and each must be named.
 * @slow
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { seedOf } from "../support/random.ts";
import { judge } from "./judge.ts";
import { canFindOwners } from "./owner.ts";
import { type Line, type OpLine, readHistory } from "./recorder.ts";

const skip = canFindOwners()
  ? false
  : "the robustness run needs Linux: /proc shows which member opened a connection";
const minutes = "1.1";
const load = [
  "--clients=6",
  "--lease-owners=2",
  "--watchers=4",
  "--think-ms=50",
  "--round-seconds=22",
  "--max-pause-seconds=6",
];

/** Runs the command; returns its exit code and what it printed. */
function command(...args: string[]): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts"), ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (bytes) => {
      text += bytes;
    });
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, text }));
  });
}

const figure = (text: string, name: string): number =>
  Number(new RegExp(`^${name} +(\\d+)`, "m").exec(text)?.[1] ?? 0);

test("two minutes of faults: all promises hold, and a spoilt history does not pass", {
  skip,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-robustness-test-"));
  try {
    const seed = seedOf(20261);
    const { code, text } = await command(
      `--minutes=${minutes}`,
      `--seed=${seed}`,
      `--dir=${dir}`,
      "--keep",
      "--heal-limit-seconds=180",
      "--fault-every-ms=2000",
      ...load,
    );
    t.diagnostic(text.slice(text.indexOf("\nseconds")).trim().replaceAll("\n", "; "));
    assert.equal(code, 0, text);
    assert.ok(
      figure(text, "rounds") >= 1 &&
        figure(text, "operations judged") > 100 &&
        figure(text, "faults") >= 5,
      text,
    );

    const lines = readHistory(join(dir, "history-1.jsonl"));
    assert.equal(judge(lines).violation, undefined);
    for (const [what, spoil, expected] of spoilers) {
      await t.test(`spoilt: ${what}`, () =>
        assert.match(
          judge(spoil(structuredClone(lines))).violation ?? "nothing is wrong",
          expected,
        ),
      );
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends object ? Mutable<T[K]> : T[K] };

/** The first line in the middle of the history or later that is like that. */
function find<T extends Line>(lines: readonly Line[], fits: (line: Line) => line is T): Mutable<T> {
  const found = lines.slice(Math.floor(lines.length / 2)).find(fits) ?? lines.find(fits);
  assert.ok(found !== undefined, "the run has recorded nothing of that kind");
  return found as Mutable<T>;
}

const isOp = (kind: string, fits: (line: OpLine) => boolean = () => true) => {
  return (line: Line): line is OpLine =>
    line.t === "op" &&
    line.request.kind === kind &&
    line.outcome.kind === "answered" &&
    line.atRevision === 0 &&
    fits(line);
};
const revisionOf = ({ outcome }: OpLine): number =>
  outcome.kind === "answered" ? outcome.answer.revision : 0;
const isWrite = (line: Line): line is OpLine => isOp("put")(line) && revisionOf(line as OpLine) > 0;

type Shown = Mutable<{ readonly key: string; readonly value: string; readonly mod: number }>;
/** What the answers of a read show. */
function shownBy({ outcome }: OpLine): Shown[][] {
  return outcome.kind === "answered"
    ? outcome.answer.answers.map((one) =>
        one.kind === "range" ? (one.kvs as readonly Shown[] as Shown[]) : [],
      )
    : [];
}

/**
 * The first read that stands behind a put that was answered and shows one: what it must show does
 * not depend on where writes of unknown outcome are placed, and few of them come before it.
 */
function readOfAnsweredWrites(lines: readonly Line[]): OpLine {
  const puts = new Set(lines.filter(isWrite).map(revisionOf));
  const isRead = isOp(
    "range",
    (line) => puts.has(revisionOf(line)) && puts.has(shownBy(line)[0]?.[0]?.mod ?? 0),
  );
  return lines.find(isRead) ?? assert.fail("the run has recorded no read behind an answered put");
}

type BatchLine = Extract<Line, { t: "batch" }>;
type LeaseLine = Extract<Line, { t: "lease" }>;
/** A batch of a stream that sees all keys. */
const isBatch = (line: Line): line is BatchLine =>
  line.t === "batch" && line.events.length > 0 && line.events[0].key < "l";
/** A batch between two others of its stream: without it the stream has a gap. */
const isInnerBatch =
  (lines: readonly Line[]) =>
  (line: Line): line is BatchLine => {
    if (!isBatch(line)) return false;
    const revisions = lines.flatMap((other) =>
      other.t === "batch" && other.id === line.id ? [other.revision] : [],
    );
    return Math.min(...revisions) < line.revision && line.revision < Math.max(...revisions);
  };
const isLease = (line: Line): line is LeaseLine =>
  line.t === "lease" && line.wasPut && line.revokeCalledMs === undefined;

const spoilers: readonly [
  what: string,
  spoil: (lines: Line[]) => readonly Line[],
  expected: RegExp,
][] = [
  [
    "a write that was answered is gone",
    (lines) => lines.toSpliced(lines.indexOf(find(lines, isOp("put")) as Line), 1),
    /HIST-/,
  ],
  [
    "an answered write was refused",
    (lines) => {
      // One that a watch has shown: no write of unknown outcome can stand in its place.
      const shown = new Set(lines.flatMap((line) => (isBatch(line) ? [line.revision] : [])));
      const put = find(
        lines,
        isOp("put", (line) => shown.has(revisionOf(line))),
      );
      Object.assign(put, { outcome: { kind: "refused", error: "no" } });
      return lines;
    },
    /HIST-2/,
  ],
  [
    "a read finds another value",
    (lines) => {
      const [kvs] = shownBy(readOfAnsweredWrites(lines));
      kvs[0].value = "other";
      return lines;
    },
    /HIST-3/,
  ],
  [
    "a read finds another value, and no client has a response for the write that it shows",
    (lines) => {
      const [kvs] = shownBy(readOfAnsweredWrites(lines));
      const { key, mod } = kvs[0];
      const shown = lines.flatMap((line) => (line.t === "op" ? shownBy(line).flat() : []));
      for (const kv of shown) if (kv.key === key && kv.mod === mod) kv.value = "other";
      const write = lines.find((line) => isWrite(line) && revisionOf(line) === mod);
      // It may have been made, but as it was called, and not as it is read.
      Object.assign(write!, { outcome: { kind: "unknown", error: "time is up" } });
      return lines;
    },
    /HIST-2: revision \d+ is /,
  ],
  [
    "a read was called after all that others saw",
    (lines) => {
      const read = find(
        lines,
        isOp("range", (line) => !line.serializable),
      );
      read.returnedAt += 1e12;
      read.calledAt += 1e12;
      return lines;
    },
    /HIST-1/,
  ],
  [
    "two writes have one revision",
    (lines) => {
      const write = find(lines, isOp("put"));
      return [...lines, { ...write, client: "other" } as Line];
    },
    /HIST-[12]/,
  ],
  [
    "a watch lacks a batch",
    (lines) => lines.toSpliced(lines.indexOf(find(lines, isInnerBatch(lines)) as Line), 1),
    /WATCH-4|HIST-2/,
  ],
  [
    "a watch has a batch twice",
    (lines) => {
      const at = lines.indexOf(find(lines, isBatch) as Line);
      return lines.toSpliced(at, 0, lines[at]);
    },
    /WATCH-/,
  ],
  [
    "a watch reports what was not written",
    (lines) => {
      const [event] = find(lines, isBatch).events;
      Object.assign(event, { type: "put", value: "other", create: event.mod, version: 77 });
      return lines;
    },
    /WATCH-3|HIST-2/,
  ],
  [
    "a lease ends before its time",
    (lines) => {
      find(lines, isLease).renewals[0].ttlMs += 1_000_000;
      return lines;
    },
    /HIST-[23]|LEASE-1/,
  ],
  [
    "a lease does not end",
    (lines) => {
      const { key } = find(lines, isLease);
      const spoilt = {
        t: "lease",
        name: "x",
        key: `${key}x`,
        wasPut: true,
        renewals: [{ calledMs: 0, ttlMs: 1 }],
        revokeCalledMs: undefined,
      };
      return [...lines, spoilt as Line];
    },
    /LEASE-3/,
  ],
];
