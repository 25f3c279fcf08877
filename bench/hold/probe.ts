/**
 * Loaded into a member (node --import): measures each turn of its event loop, and reports the
 * longest since the last request to each client of the socket QUORATE_BENCH_HOLD_SOCKET:
 *
 *     wall-clock ms of the longest turn
 *     ms of processor time of the member's main thread in the turn that took most of it
 *     the same without the time in which the thread collected garbage
 *     ms of the longest pause for garbage; what was collected in it
 *     in the next lines, with QUORATE_BENCH_HOLD_PROFILE: what the longest turns did
 *
 * The processor time is measured with QUORATE_BENCH_HOLD_SPIN. Other programs on the machine do not
 * change it. For that the loop never sleeps, so the member takes a whole processor.
 */
import { rmSync } from "node:fs";
import { Session } from "node:inspector";
import { createServer } from "node:net";
import { constants, monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";
import { type CpuProfile, type Frame, frames } from "../cpu-profile.ts";
import { threadClock } from "./thread-clock.ts";

/** Turns and pauses below it are not kept. */
const LONG_TURN_MS = 3;
const LONG_PAUSE_MS = 0.2;
/** Of each kind; more belong to a call that runs for minutes, and the longest are kept. */
const MAX_KEPT = 20_000;

/** A part of the wall clock, of performance.now(). */
interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

interface Pause extends Span {
  readonly kind: string;
}

/** Kinds of garbage collection, by the numbers of perf_hooks. */
const KINDS = new Map([
  [constants.NODE_PERFORMANCE_GC_MINOR, "young"],
  [constants.NODE_PERFORMANCE_GC_MAJOR, "all"],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, "marking"],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, "callbacks"],
]);

interface Turn extends Span {
  readonly cpuMs: number;
}

/** Long turns and pauses since the last report. */
class Record {
  #turns: Turn[] = [];
  #pauses: Pause[] = [];

  turn(turn: Turn): void {
    if (turn.cpuMs >= LONG_TURN_MS && this.#turns.length < MAX_KEPT) this.#turns.push(turn);
  }

  pause(pause: Pause): void {
    if (pause.toMs - pause.fromMs >= LONG_PAUSE_MS && this.#pauses.length < MAX_KEPT)
      this.#pauses.push(pause);
  }

  /** The longest turn, the longest without its pauses, and the longest pause, in milliseconds. */
  take(): { cpuMs: number; ownMs: number; pauseMs: number; pauseOf: string; turns: Turn[] } {
    let cpuMs = 0;
    let ownMs = 0;
    let pauseMs = 0;
    let pauseOf = "none";
    let first = 0;
    // The observer does not report them in order.
    this.#pauses.sort((a, b) => a.fromMs - b.fromMs);
    for (const turn of this.#turns) {
      cpuMs = Math.max(cpuMs, turn.cpuMs);
      while (first < this.#pauses.length && this.#pauses[first].toMs <= turn.fromMs) first++;
      let pausedMs = 0;
      for (let i = first; i < this.#pauses.length && this.#pauses[i].fromMs < turn.toMs; i++) {
        const { fromMs, toMs } = this.#pauses[i];
        pausedMs += Math.min(toMs, turn.toMs) - Math.max(fromMs, turn.fromMs);
      }
      ownMs = Math.max(ownMs, turn.cpuMs - pausedMs);
    }
    for (const { fromMs, toMs, kind } of this.#pauses) {
      if (toMs - fromMs <= pauseMs) continue;
      pauseMs = toMs - fromMs;
      pauseOf = kind;
    }
    const turns = this.#turns;
    this.#turns = [];
    this.#pauses = [];
    return { cpuMs, ownMs, pauseMs, pauseOf, turns };
  }
}

const path = process.env["QUORATE_BENCH_HOLD_SOCKET"];
if (path !== undefined && isMainThread) {
  const spins = process.env["QUORATE_BENCH_HOLD_SPIN"] !== undefined;
  const turns = monitorEventLoopDelay({ samplePerIteration: true, resolution: 100 });
  turns.enable();
  const record = new Record();
  const isProfiled = process.env["QUORATE_BENCH_HOLD_PROFILE"] !== undefined;
  // Begins with the first request: the launcher, which this is loaded into as well, replaces its
  // process, and a signal of the profiler would end the new one.
  let profile: TurnProfile | undefined;
  /** From performance.now() to the monotonic clock of profiles. */
  const originUs = Number(process.hrtime.bigint()) / 1000 - performance.now() * 1000;
  const pauses = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { startTime, duration } = entry;
      // Node's types have no class for entries of this type.
      const { detail } = entry as unknown as { readonly detail: { readonly kind: number } };
      const kind = KINDS.get(detail.kind) ?? "other";
      record.pause({ fromMs: startTime, toMs: startTime + duration, kind });
    }
  });
  pauses.observe({ type: "gc" });
  /** Begins a turn: what reports cost the member does not count. */
  let restart = (): void => {};
  const server = createServer((socket) => {
    socket.on("error", () => {});
    // The observer is called with the latest pauses first.
    setTimeout(() => {
      const { cpuMs, ownMs, pauseMs, pauseOf, turns: long } = record.take();
      const wallMs = turns.count === 0 ? 0 : turns.max / 1e6;
      turns.reset();
      const figures = [
        wallMs,
        spins ? cpuMs : Number.NaN,
        spins ? ownMs : Number.NaN,
        pauseMs,
        pauseOf,
      ];
      const text = profile?.take(
        long.map(({ fromMs, toMs, cpuMs }) => ({
          fromUs: fromMs * 1000 + originUs,
          toUs: toMs * 1000 + originUs,
          cpuMs,
        })),
      );
      if (isProfiled) profile ??= new TurnProfile();
      restart();
      socket.end(`${figures.join(" ")}\n${text ?? ""}`);
    }, 5);
  });
  server.on("error", () => {});
  // The launcher replaces its process by the member, and leaves a socket of its own there.
  rmSync(path, { force: true });
  server.listen(path).unref();
  if (spins) {
    const cpuNowMs = threadClock();
    let beforeMs = 0;
    let fromMs = 0;
    restart = () => {
      beforeMs = cpuNowMs();
      fromMs = performance.now();
    };
    restart();
    const turn = (): void => {
      const nowMs = cpuNowMs();
      const toMs = performance.now();
      record.turn({ fromMs, toMs, cpuMs: nowMs - beforeMs });
      beforeMs = nowMs;
      fromMs = toMs;
      setImmediate(turn).unref();
    };
    setImmediate(turn).unref();
  }
}

const ROOT = new URL("../../", import.meta.url).pathname;
const SAMPLE_US = 100;
/** Turns that are shown, and the least part of one that a line stands for. */
const MAX_TURNS = 3;
const MIN_LINE_MS = 0.2;

/** A turn: its times by the monotonic clock in microseconds. */
interface ProfiledTurn {
  readonly fromUs: number;
  readonly toUs: number;
  readonly cpuMs: number;
}

/**
 * What the longest turns of a member's loop did: V8's profiler runs while calls are measured, and
 * its samples within the longest turns are printed as a tree. The samples cost the member time, so
 * figures of such a run are not to be compared with others.
 *
 * A running profiler.
 */
class TurnProfile {
  readonly #session = new Session();

  constructor() {
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.setSamplingInterval", { interval: SAMPLE_US });
    this.#session.post("Profiler.start");
  }

  /** The text for the longest of `turns`; the profile begins again. */
  take(turns: readonly ProfiledTurn[]): string {
    let profile: CpuProfile | undefined;
    // The session is one of this thread: its results come at once.
    this.#session.post("Profiler.stop", (_error, result) => {
      profile = result?.profile as CpuProfile | undefined;
    });
    this.#session.post("Profiler.start");
    if (profile === undefined) return "";
    const longest = [...turns].sort((a, b) => b.cpuMs - a.cpuMs).slice(0, MAX_TURNS);
    const lines: string[] = [];
    for (const { fromUs, toUs, cpuMs } of longest) {
      lines.push(
        `turn of ${cpuMs.toFixed(1)} ms, ${((toUs - fromUs) / 1000).toFixed(1)} by the clock`,
      );
      write(frames(profile, fromUs, toUs, ROOT).tree, 1, lines);
    }
    return lines.join("\n");
  }
}

function write({ name, selfMs, totalMs, children }: Frame, depth: number, lines: string[]): void {
  if (totalMs < MIN_LINE_MS) return;
  lines.push(`${"  ".repeat(depth)}${totalMs.toFixed(1)} (${selfMs.toFixed(1)}) ${name}`);
  for (const child of [...children].sort((a, b) => b.totalMs - a.totalMs))
    write(child, depth + 1, lines);
}
