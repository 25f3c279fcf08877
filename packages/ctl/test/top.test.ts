/** Frames of top, made from samples; and the live view on a terminal that is made up. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ResponseHeader, StatusResponse } from "@quorate/proto";
import { runProgram } from "../index.ts";
import type { StopSignal, Terminal } from "../src/io.ts";
import { MetricsText } from "../src/observe/metrics-text.ts";
import { quoratectl } from "../src/quoratectl.ts";
import { painted, plain } from "../src/terminal.ts";
import { frame } from "../src/top/frame.ts";
import type { MemberSample, Sample } from "../src/top/sample.ts";
import { FakeIo } from "./fake-io.ts";

const WALL_MS = Date.UTC(2026, 10, 22, 10);

function member(id: number, atMs: number, metrics: string | undefined, status: Partial<StatusResponse> = {}): MemberSample {
  const header = ResponseHeader.create({ memberId: BigInt(id), clusterId: 9n, revision: 1204 });
  return {
    label: `m${id}`,
    atMs,
    status: StatusResponse.create({
      header,
      version: "3.7.0",
      leader: 1n,
      raftTerm: 4,
      raftIndex: 30_500,
      raftAppliedIndex: 30_500,
      dbSize: 25_000_000,
      dbSizeInUse: 5_000_000,
      dbSizeQuota: 100_000_000,
      ...status,
    }),
    failure: undefined,
    metrics: metrics === undefined ? undefined : new MetricsText(metrics),
  };
}

const FSYNC_BUCKET = "etcd_disk_wal_fsync_duration_seconds_bucket";
const fsync = (count: number): string => `${FSYNC_BUCKET}{le="0.002"} ${count}\n${FSYNC_BUCKET}{le="+Inf"} ${count}\n`;

function metricsOf(puts: number, ranges: number, fast: number): string {
  return `etcd_mvcc_put_total ${puts}
etcd_mvcc_range_total ${ranges}
etcd_mvcc_txn_total 3
quorate_server_quota_used_ratio 0.42
etcd_debugging_mvcc_watcher_total 7
quorate_server_leases 12345
process_resident_memory_bytes 190000000
process_cpu_seconds_total ${puts / 1000}
nodejs_heap_size_used_bytes 60000000
nodejs_eventloop_lag_p99_seconds 0.0123
quorate_rpc_connections 3
${fsync(fast)}`;
}

const before: Sample = {
  wallMs: WALL_MS - 2000,
  members: [member(1, 1000, metricsOf(1000, 100, 50)), member(2, 1000, metricsOf(1000, 300, 50))],
};
const down: MemberSample = { label: "m3", atMs: 3000, status: undefined, failure: "connect ECONNREFUSED", metrics: undefined };
const now: Sample = {
  wallMs: WALL_MS,
  members: [
    member(1, 3000, metricsOf(2000, 200, 150)),
    member(2, 3000, metricsOf(1990, 303, 60), { raftAppliedIndex: 29_000, errors: ["memberID:2 alarm:NOSPACE"] }),
    down,
  ],
};

const expected = `quoratectl top   2 of 3 members answer   m1 leads in term 4   revision 1,204   2026-11-22 10:00:00Z
500 puts/s   52 ranges/s   0 txns/s   - deletes/s

MEMBER  ROLE       VERSION   INDEX    LAG  DB SIZE  IN USE  QUOTA
m1      leader     3.7.0    30,500      0    25 MB  5.0 MB    42%
m2      follower   3.7.0    29,000  1,500    25 MB  5.0 MB    42%
m3      no answer  -             -      -        -       -      -

MEMBER  RANGES/S  REQUEST P99  APPLY P99  FSYNC P99  COMMIT P99  PEER P99
m1            50            -          -    1.98 ms           -         -
m2           1.5            -          -    1.98 ms           -         -
m3             -            -          -          -           -         -

MEMBER  WATCHERS  LEASES  CONNECTIONS  CPU  MEMORY   HEAP  LOOP P99
m1             7  12,345            3  50%  190 MB  60 MB     12 ms
m2             7  12,345            3  50%  190 MB  60 MB     12 ms
m3             -       -            -    -       -      -         -

memberID:2 alarm:NOSPACE
m3: connect ECONNREFUSED`;

test("a frame has rates and latencies of the time between two samples", () => {
  assert.equal(frame(now, before, undefined, plain).join("\n"), expected);
});

test("without a sample before, or after a restart, rates are not known", () => {
  assert.match(frame(now, undefined, undefined, plain)[1]!, /^- puts\/s {3}- ranges\/s {3}- txns\/s {3}- deletes\/s$/);
  const restarted: Sample = { ...now, members: [member(1, 3000, metricsOf(10, 10, 5))] };
  assert.match(frame(restarted, before, undefined, plain)[1]!, /^- puts\/s/);
});

test("colours change no character; lines and frames are cut to the terminal", () => {
  const wide = { columns: 200, rows: 100 };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of colours begin with one
  const uncoloured = (text: string): string => text.replace(/\u001b\[[\d;]*m/g, "");
  const coloured = frame(now, before, wide, painted).join("\n");
  assert.notEqual(coloured, expected);
  assert.equal(uncoloured(coloured), expected);
  for (const size of [
    { columns: 40, rows: 10 },
    { columns: 8, rows: 3 },
    { columns: 1, rows: 1 },
  ]) {
    const lines = frame(now, before, size, painted).map(uncoloured);
    assert.ok(lines.length <= size.rows);
    for (const line of lines) assert.ok(line.length <= size.columns, line);
  }
  assert.equal(frame(now, before, { columns: 40, rows: 10 }, plain).at(-1), "... there is more than fits");
});

/** A terminal that keeps what it was asked for. */
class FakeTerminal implements Terminal {
  readonly happened: string[] = [];
  columns = 60;
  press: (key: string) => void = () => {};
  resize: () => void = () => {};
  size(): { columns: number; rows: number } {
    return { columns: this.columns, rows: 30 };
  }
  enter(): () => void {
    this.happened.push("enter");
    return () => this.happened.push("leave");
  }
  onResize(changed: () => void): () => void {
    this.resize = changed;
    return () => this.happened.push("resize off");
  }
  onKey(typed: (key: string) => void): () => void {
    this.press = typed;
    return () => this.happened.push("keys off");
  }
}

/** Runs top live where no member is, until `end` has ended it. Gives what was drawn. */
async function liveTop(end: (terminal: FakeTerminal, io: LiveIo) => void): Promise<{ code: number; io: LiveIo; terminal: FakeTerminal }> {
  const terminal = new FakeTerminal();
  const io = new LiveIo(terminal, () => end(terminal, io));
  const code = await runProgram(quoratectl, ["top", "--endpoints=127.0.0.1:1", "--command-timeout=300ms", "--interval=10m"], io);
  return { code, io, terminal };
}

class LiveIo extends FakeIo {
  readonly terminal: FakeTerminal;
  readonly #drawn: () => void;
  stop = (_signal: StopSignal): void => {};
  frames = 0;

  constructor(terminal: FakeTerminal, drawn: () => void) {
    super();
    this.terminal = terminal;
    this.#drawn = drawn;
  }

  override stdout(content: string | Uint8Array): void {
    super.stdout(content);
    this.frames++;
    setImmediate(this.#drawn);
  }

  override onStop(stop?: (signal: StopSignal) => void): () => void {
    if (stop !== undefined) this.stop = stop;
    return () => this.terminal.happened.push("stop off");
  }
}

const tidied = ["enter", "stop off", "resize off", "keys off", "leave"];

test("q, control-C and a signal end the live view and leave the terminal as it was", async () => {
  for (const end of [
    (terminal: FakeTerminal) => terminal.press("q"),
    (terminal: FakeTerminal) => terminal.press("\u0003"),
    (_terminal: FakeTerminal, io: LiveIo) => io.stop("SIGTERM"),
  ]) {
    const { code, io, terminal } = await liveTop(end);
    assert.equal(code, 0);
    assert.deepEqual(terminal.happened, tidied);
    assert.ok(io.out.startsWith("\u001b[H") && io.out.includes("quoratectl top"), io.out);
  }
});

test("a new size draws the same frame anew, the space bar another one; an error leaves the terminal as it was", async () => {
  let asked = false;
  const { io, terminal } = await liveTop((one, out) => {
    if (out.frames === 1) {
      one.columns = 20;
      one.resize();
    } else if (!asked) {
      asked = true;
      one.press(" ");
    } else one.press("q");
  });
  assert.equal(io.frames, 3);
  assert.deepEqual(terminal.happened, tidied);

  const broken = new FakeTerminal();
  const failing = new LiveIo(broken, () => {});
  failing.stdout = () => {
    throw new Error("the terminal is gone");
  };
  await assert.rejects(runProgram(quoratectl, ["top", "--endpoints=127.0.0.1:1", "--command-timeout=300ms"], failing), /is gone/);
  assert.deepEqual(broken.happened, tidied);
});

test("in a pipe one frame is printed; where nobody answers, that is an error", async () => {
  const io = new FakeIo();
  const args = ["top", "--endpoints=127.0.0.1:1", "--command-timeout=300ms", "--interval=100ms"];
  assert.deepEqual([await runProgram(quoratectl, args, io), io.err], [1, "Error: no member answers\n"]);
  assert.deepEqual(io.sleeps, [100]);
  assert.match(io.out, /^quoratectl top {3}0 of 1 members answer {3}nobody leads/);
  const hasty = new FakeIo();
  assert.equal(await runProgram(quoratectl, ["top", "--interval=1ms"], hasty), 128);
  assert.equal(hasty.err, "Error: --interval must be 100ms or more\n");
});
