/**
 * Frames of top, from fake members; keys; and the live view on a fake terminal.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { painted, paintFor, plain, runProgram } from "@quorate/cli";
import { FakeIo } from "@quorate/cli/testing";
import { quoratectl } from "../src/quoratectl.ts";
import { views } from "../src/top/columns.ts";
import { frame, plainFrame } from "../src/top/frame.ts";
import { afterKey, firstState } from "../src/top/keys.ts";
import { MAX_ROWS, Observer } from "../src/top/observer.ts";
import { HISTORY_SAMPLES, History } from "../src/top/row.ts";
import { helpFrame, live } from "../src/top/run.ts";
import { graph, sparkline } from "../src/top/spark.ts";
import {
  endpointOf,
  FakeProber,
  FakeTerminal,
  fakeMember,
  LiveIo,
  pictureAfter,
} from "./top-support.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of colours begin with one
const uncoloured = (text: string): string => text.replace(/\u001b\[[\d;]*m/g, "");

/** Compares with a file of fixtures/top; UPDATE_FRAMES=1 writes it. */
function assertFrame(name: string, lines: readonly string[]): void {
  const path = join(import.meta.dirname, "fixtures/top", `${name}.txt`);
  const text = `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
  if (process.env["UPDATE_FRAMES"] === "1") writeFileSync(path, text);
  assert.equal(text, readFileSync(path, "utf8"));
}

/** Three members under load; m2 lags and has an alarm, m3 went silent after a while. */
async function troubled(): Promise<FakeProber> {
  const [m1, m2, m3] = [fakeMember(1), fakeMember(2), fakeMember(3)];
  m2.status = { raftAppliedIndex: 29_000, errors: ["memberID:2 alarm:NOSPACE"] };
  return new FakeProber([m1, m2, m3]);
}

async function troubledPicture() {
  const prober = await troubled();
  return pictureAfter(prober, 30, (round) => {
    if (round === 20) prober.roster[2].failure = "paused";
    return 100 * (round % 8);
  });
}

for (const [columns, rows] of [
  [60, 20],
  [80, 24],
  [200, 50],
] as const) {
  test(`a frame of ${columns} columns and ${rows} rows`, async () => {
    const lines = frame(await troubledPicture(), firstState, { columns, rows }, plain);
    assert.equal(lines.length, rows);
    for (const line of lines) assert.ok([...line].length <= columns, line);
    assertFrame(`${columns}x${rows}`, lines);
  });
}

test("members that want a login are no silent ones", async () => {
  const prober = new FakeProber([fakeMember(1), fakeMember(2)]);
  for (const member of prober.roster) member.failure = "etcdserver: user name is empty";
  const text = plainFrame(await pictureAfter(prober, 2)).join("\n");
  assert.match(text, /2 of 2 members need a login/);
  assert.equal(text.match(/needs login/g)?.length, 2);
  assert.doesNotMatch(text, /respond|no response/);
});

test("a healthy cluster, the other tables, and the help", async () => {
  const picture = await pictureAfter(
    new FakeProber([fakeMember(1), fakeMember(2), fakeMember(3)]),
    12,
  );
  const size = { columns: 80, rows: 24 };
  assertFrame("healthy", frame(picture, firstState, size, plain));
  for (const [view, { name }] of views.entries()) {
    const first = frame(picture, { ...firstState, view }, size, plain)[2];
    assert.ok(first.startsWith(`╭─ ${name} ─ key ${view + 1} `), first);
    const help = helpFrame({ ...firstState, view }, { columns: 80, rows: 40 }, plain).join("\n");
    for (const { title, doc } of views[view].columns)
      assert.ok(help.includes(title) && help.includes(doc), title);
  }
});

test("in a pipe: all tables with all columns, plain", async () => {
  assertFrame("pipe", plainFrame(await troubledPicture()));
});

test("colours change no character; nothing is wider or longer than the terminal, however small that is", async () => {
  const picture = await troubledPicture();
  for (const size of [
    { columns: 200, rows: 100 },
    { columns: 100, rows: 24 },
    { columns: 60, rows: 20 },
    { columns: 40, rows: 10 },
    { columns: 8, rows: 3 },
    { columns: 1, rows: 1 },
  ]) {
    for (const isHelp of [false, true]) {
      const draw = (paint: typeof plain) =>
        isHelp ? helpFrame(firstState, size, paint) : frame(picture, firstState, size, paint);
      const lines = draw(painted).map(uncoloured);
      assert.deepEqual(lines, draw(plain));
      assert.ok(lines.length <= size.rows);
      for (const line of lines)
        assert.ok([...line].length <= size.columns, `${size.columns}: ${line}`);
    }
  }
});

test("warnings are yellow, problems red, stale figures dim and never shown as current", async () => {
  const lines = frame(await troubledPicture(), firstState, { columns: 100, rows: 24 }, painted);
  const row = (name: string): string =>
    lines.find((line) => uncoloured(line).startsWith(`│ ${name} `))!.replaceAll("\u001b", "ESC");
  assert.ok(row("m2").includes("ESC[33m1,500ESC[0m"), "m2 lags by more than 1,000");
  assert.ok(/ESC\[33m +85%/.test(row("m2")), "m2 has used 85% of its quota");
  assert.ok(row("m3").includes("ESC[1;31msilent 10s"), row("m3"));
  assert.ok(/ESC\[2m +190 MB/.test(row("m3")), "m3's memory is dimmed");
  assert.ok(!/ESC\[2m +190 MB/.test(row("m1")), "m1's is not");
});

test("NO_COLOR, TERM=dumb, --no-color and a pipe mean no colours", () => {
  const io = (env: Record<string, string>) =>
    Object.assign(new LiveIo(new FakeTerminal()), { env });
  assert.equal(paintFor(io({}))("x", "red"), "\u001b[31mx\u001b[0m");
  assert.equal(paintFor(io({}), true)("x", "red"), "x");
  assert.equal(paintFor(io({ NO_COLOR: "1" }))("x", "red"), "x");
  assert.equal(paintFor(io({ TERM: "dumb" }))("x", "red"), "x");
  assert.equal(paintFor(new FakeIo())("x", "red"), "x");
});

test("the leader is the one of the newest term; a silent leader is not shown as leading", async () => {
  const prober = new FakeProber([
    fakeMember(1, { failure: "paused" }),
    fakeMember(2),
    fakeMember(3),
  ]);
  const title = async () =>
    frame(await pictureAfter(prober, 2), firstState, { columns: 100, rows: 24 }, plain)[0];
  assert.match(await title(), / 2 of 3 members respond {2}m1 leads in term 4, but is silent /);
  prober.roster[1].status = { leader: 2n, raftTerm: 5 };
  assert.match(await title(), / m2 leads in term 5 /);
  for (const member of prober.roster) member.status = { leader: 0n };
  assert.match(await title(), / no leader /);
});

test("control characters in a member's name do not reach the terminal; a long one is cut", async () => {
  const prober = new FakeProber([
    fakeMember(1, { name: "evil\u001b[2J\u0007" }),
    fakeMember(2, { name: "x".repeat(300) }),
  ]);
  const text = frame(
    await pictureAfter(prober, 2),
    firstState,
    { columns: 100, rows: 24 },
    plain,
  ).join("\n");
  assert.ok(text.includes("evil?[2J?") && !text.includes("\u001b"), text);
  assert.ok(text.includes(`${"x".repeat(31)}…`) && !text.includes("x".repeat(33)));
});

test("a lag is that of one round, without the writes between two", async () => {
  const prober = new FakeProber([fakeMember(1), fakeMember(2)]);
  let nowMs = 0;
  const seen: string[] = [];
  const observer = new Observer(prober, {
    endpoints: [endpointOf(1), endpointOf(2)],
    nowMs: () => nowMs,
    onChange: () =>
      seen.push(
        ...observer.rows.map((row) =>
          String(
            views[0].columns[2].value(row, observer.rows, {
              silentMs: undefined,
              hasOldMetrics: false,
            }),
          ),
        ),
      ),
  });
  for (let round = 0; round < 3; round++) {
    nowMs += 1000;
    for (const member of prober.roster) member.applied += 4000;
    await observer.round();
  }
  assert.deepEqual([...new Set(seen)].sort(), ["0", "undefined"]);
});

test("sorting: by the next column and the one before, greatest numbers first, m2 before m10, the unknown last", async () => {
  const prober = new FakeProber([
    fakeMember(10),
    fakeMember(2, { applied: 100, status: { raftIndex: 100 } }),
    fakeMember(1),
    fakeMember(3, { failure: "refused" }),
  ]);
  const picture = await pictureAfter(prober, 3);
  const names = (state: typeof firstState): string[] =>
    frame(picture, state, { columns: 100, rows: 30 }, plain)
      .slice(4, 8)
      .map((line) => line.slice(2).split(" ")[0]);
  const press = (...keys: string[]) =>
    keys.reduce((state, key) => afterKey(state, key, 4).state, firstState);
  assert.deepEqual(names(press()), ["m1", "m2", "m3", "m10"]);
  assert.deepEqual(names(press("r")), ["m10", "m3", "m2", "m1"]);
  assert.equal(press("s", "s").sortBy, "LAG");
  assert.deepEqual(names(press("s", "s"))[0], "m2");
  assert.deepEqual(names(press("s", "s")).at(-1), "m3");
  assert.equal(press("s", "s", "S", "S").sortBy, "MEMBER");
});

test("keys: help and back, tables, scrolling, pause, quit", () => {
  const press = (...keys: string[]) =>
    keys.reduce((state, key) => afterKey(state, key, 5).state, firstState);
  assert.equal(press("?").isHelp, true);
  assert.deepEqual(press("?", "z"), firstState);
  assert.equal(press("3").view, 2);
  assert.equal(press("\t", "\t", "\t", "\t").view, 0);
  assert.equal(press("\u001b[B", "j", "k").scrolled, 1);
  assert.equal(press("j", "j", "j", "j", "j", "j", "j").scrolled, 4);
  assert.equal(press("k").scrolled, 0);
  assert.equal(press("p").isPaused, true);
  assert.equal(press("p", " ").isPaused, false);
  assert.deepEqual(press("x", "", "\u001b[5~", "9"), firstState);
  for (const key of ["q", "Q", "\u0003"]) assert.equal(afterKey(firstState, key, 1).action, "quit");
  assert.equal(afterKey(firstState, " ", 1).action, "ask");
});

test("members beyond the screen are reached by scrolling; members beyond the limit of rows are counted", async () => {
  const many = Array.from({ length: MAX_ROWS + 6 }, (_, i) => fakeMember(i + 1));
  const picture = await pictureAfter(new FakeProber(many), 2);
  const text = (scrolled: number) =>
    frame(picture, { ...firstState, scrolled }, { columns: 80, rows: 20 }, plain).join("\n");
  assert.ok(text(0).includes("│ m1 ") && !text(0).includes("│ m40 "));
  assert.ok(text(35).includes("│ m40 ") && !text(35).includes("│ m1 "));
  assert.ok(text(1000).includes("│ m64 "), "scrolling ends at the last");
  assert.match(text(0), /6 more members are not shown/);
  assert.match(text(0), /\d+ of 64, scroll with the arrows/);
});

test("history is bounded, and gaps in it are blanks", () => {
  const history = new History();
  for (let i = 0; i < 10 * HISTORY_SAMPLES; i++) history.push(i);
  assert.equal(history.length, HISTORY_SAMPLES);
  const all = history.last(Number.MAX_SAFE_INTEGER);
  assert.deepEqual(
    [all.length, all[0], all.at(-1)],
    [HISTORY_SAMPLES, 9 * HISTORY_SAMPLES, 10 * HISTORY_SAMPLES - 1],
  );
  assert.deepEqual(history.last(2), all.slice(-2));
  assert.equal(sparkline([0, Number.NaN, 4, 8], 6), "  ▁ ▄█");
  assert.equal(sparkline([0, 0], 2), "▁▁");
  assert.equal(sparkline([], 3), "   ");
  assert.deepEqual(graph([0, Number.NaN, 8, 16], 4, 2), ["   █", "▁ ██"]);
});

test("endpoints: a member is shown once however many endpoints it has; endpoints of others and removed members go", async () => {
  const prober = new FakeProber([fakeMember(1), fakeMember(2), fakeMember(3)]);
  const observer = new Observer(prober, {
    endpoints: [endpointOf(1), "http://nowhere:1"],
    nowMs: () => 0,
    onChange: () => {},
  });
  await observer.round();
  assert.deepEqual(
    observer.rows.map(({ label }) => label),
    ["m1", "m2", "m3", "http://nowhere:1"],
  );
  assert.equal(observer.rows[3].failure, "connection refused");
  prober.roster.splice(1, 1);
  await observer.round();
  assert.deepEqual(
    observer.rows.map(({ label }) => label),
    ["m1", "m3", "http://nowhere:1"],
  );
  assert.deepEqual(
    [...prober.kept].sort(),
    [endpointOf(1), endpointOf(3), "http://nowhere:1"].sort(),
  );
});

test("a cluster recreated from a backup, with other ids and a shorter log, replaces the old one", async () => {
  const prober = new FakeProber([fakeMember(1), fakeMember(2)]);
  const observer = new Observer(prober, {
    endpoints: [1, 2].map(endpointOf),
    nowMs: () => 0,
    onChange: () => {},
  });
  await observer.round();
  prober.generation = 100;
  for (const member of prober.roster) member.applied = 7;
  for (let round = 0; round < 3; round++) await observer.round();
  assert.deepEqual(
    observer.rows.map(({ memberId, failure }) => [memberId, failure]),
    [
      [101n, undefined],
      [102n, undefined],
    ],
  );
});

test("a paused member does not delay the rows of the others, and has one poll at a time", async () => {
  const terminal = new FakeTerminal();
  const io = new LiveIo(terminal);
  const prober = new FakeProber([
    fakeMember(1),
    fakeMember(2),
    fakeMember(3, { failure: "paused" }),
  ]);
  const endpoints = [1, 2, 3].map(endpointOf);
  const over = live(io, terminal, prober, { endpoints, intervalMs: 100, paint: plain });
  // The third member has not responded, and its deadline has not passed: the test lets it pass
  // below.
  await io.drawn(/│ m1 +leader[\s\S]*│ m2 +follower/);
  for (const member of prober.roster) member.puts += 50;
  await io.drawn(/puts\/s [1-9]/);
  const asked = prober.asked.filter((endpoint) => endpoint === endpointOf(3));
  assert.equal(asked.length, 1);
  assert.ok(prober.asked.length > 3, "the others were polled again");
  prober.timeOut();
  await io.drawn(/2 of 3 members respond[\s\S]*│ m3 +no response[\s\S]*m3: no response within 1 s/);
  // It continues.
  prober.roster[2].failure = undefined;
  prober.timeOut();
  await io.drawn(/3 members[\s\S]*│ m3 +follower/);
  terminal.press("q");
  await over;
});

const tidied = ["enter", "stop off", "resize off", "keys off", "leave"];

/** Runs the live view with responsive members, until `act` has ended it. */
async function liveTop(act: (io: LiveIo) => void | Promise<void>): Promise<LiveIo> {
  const terminal = new FakeTerminal();
  const io = new LiveIo(terminal);
  const prober = new FakeProber([fakeMember(1), fakeMember(2)]);
  const over = live(io, terminal, prober, {
    endpoints: [endpointOf(1)],
    intervalMs: 600_000,
    paint: plain,
  });
  await io.drawn(/│ m2 +follower/);
  await act(io);
  await over;
  assert.deepEqual(terminal.happened, tidied);
  return io;
}

test("q, control-C and a signal end the live view and leave the terminal as it was", async () => {
  for (const end of [
    (io: LiveIo) => io.terminal.press("q"),
    (io: LiveIo) => io.terminal.press("\u0003"),
    (io: LiveIo) => io.stop("SIGTERM"),
  ]) {
    const io = await liveTop(end);
    assert.ok(
      io.frames[0].startsWith("\u001b[H") && io.frames[0].includes("polling 1 endpoint"),
      io.frames[0],
    );
  }
});

test("a new size draws at once, and so do keys; while paused nothing new is drawn", async () => {
  await liveTop(async (io) => {
    io.terminal.columns = 40;
    io.terminal.resize();
    for (const line of io.frames.at(-1)!.split("\r\n")) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what moves the cursor begins with one
      assert.ok([...line.replace(/\u001b\[[\d;]*[A-Za-z]/g, "")].length <= 40, line);
    }
    io.terminal.columns = 100;
    io.terminal.press("?");
    assert.match(io.frames.at(-1)!, /╭─ keys /);
    io.terminal.press("?");
    io.terminal.press("2");
    assert.match(io.frames.at(-1)!, /╭─ latency ─ key 2 /);
    io.terminal.press("p");
    assert.match(io.frames.at(-1)!, / PAUSED /);
    io.terminal.press("q");
  });
});

test("a slow terminal gets no more frames until it has accepted the last", async () => {
  await liveTop(async (io) => {
    io.terminal.behind = true;
    const before = io.frames.length;
    for (let i = 0; i < 100; i++) io.terminal.press("2");
    assert.equal(io.frames.length, before);
    io.terminal.behind = false;
    await io.drawn(/╭─ latency /);
    io.terminal.press("q");
  });
});

test("a terminal that is gone ends it, and is left as it was", async () => {
  const broken = new FakeTerminal();
  const failing = new LiveIo(broken);
  failing.stdout = () => {
    throw new Error("the terminal is gone");
  };
  const prober = new FakeProber([fakeMember(1)]);
  await assert.rejects(
    live(failing, broken, prober, { endpoints: [endpointOf(1)], intervalMs: 1000, paint: plain }),
    /is gone/,
  );
  assert.deepEqual(broken.happened, tidied);
});

test("in a pipe one frame is printed; without a responding member that is an error", async () => {
  const io = new FakeIo();
  const args = ["top", "--endpoints=127.0.0.1:1", "--member-timeout=300ms", "--interval=100ms"];
  assert.deepEqual(
    [await runProgram(quoratectl, args, io), io.err],
    [1, "Error: no member responds\n"],
  );
  assert.deepEqual(io.sleeps, [100]);
  assert.match(io.out, /^quoratectl top {2}0 of 1 members respond {2}no leader/);
  for (const [flag, message] of [
    ["--interval=1ms", "--interval must be 100ms or more"],
    ["--member-timeout=0s", "--member-timeout must be more than 0"],
  ] as const) {
    const hasty = new FakeIo();
    assert.equal(await runProgram(quoratectl, ["top", flag], hasty), 128);
    assert.equal(hasty.err, `Error: ${message}\n`);
  }
});
