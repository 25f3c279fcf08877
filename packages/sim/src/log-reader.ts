/**
 * A member's log and what reads it. A reader that stops takes nothing for a while, by a plan that
 * is a function of simulated time alone: no event, and no draw of another stream, depends on it, so
 * that a run with it goes as one without.
 *
 * SIM-13: a line is logged in a bounded number of attempts; what waits stays within its bound; and
 * lines that were written, dropped and wait are those that were logged, in order, with each gap
 * announced in its place.
 */
import { type Disk, type Logger, type Random, silentLogger } from "@quorate/host";
import { LogOutput, type LogSurroundings, type LogTarget } from "@quorate/host/node";
import { defined, fromUtf8, raftpb, toUtf8, walpb } from "@quorate/proto";
import { RecordType, readWal, validSnapshotMarks } from "@quorate/wal";
import { Violation, violate } from "./base/violation.ts";

/** Small, so that it is reached in the lines of a few seconds. */
const MAX_QUEUE_BYTES = 1000;
/** The rest of a line that says how many are missing comes on top. */
const MAX_NOTICE_BYTES = 40;
/** A reader that stops does so for as long as this, and then reads for up to as long. */
const MAX_PHASE_MS = 3000;
/** Bytes that a pipe takes at once, where it is nearly full. */
const NARROW_BYTES = 40;
/** Attempts to write at one moment; more are a member that waits for its reader. */
const MAX_ATTEMPTS = 10_000;

/** Whether the reader reads at a time, and how much it takes at once. */
class Reader {
  readonly #random: Random;
  #untilMs = 0;
  #takes = Number.POSITIVE_INFINITY;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Bytes that it takes at once at a time, which never goes back. */
  takes(nowMs: number): number {
    while (this.#untilMs <= nowMs) {
      this.#untilMs += 1 + this.#random.below(MAX_PHASE_MS);
      this.#takes = [0, 0, NARROW_BYTES, Number.POSITIVE_INFINITY][this.#random.below(4)];
    }
    return this.#takes;
  }
}

/** The log of one process. */
export class SimLog {
  readonly logger: Logger;
  readonly #output: LogOutput;
  readonly #nowMs: () => number;
  /** When a write is tried again, which happens with the next line. */
  #retry: { readonly dueMs: number; readonly task: () => void } | undefined;
  #attempts = { atMs: 0, count: 0 };
  #logged = 0;
  /** What was written of a line that is not complete. */
  #begun = "";
  #written = 0;
  /** The number of the next line that may come. */
  #next = 0;

  /**
   * @param random of the reader's plan
   * @param fail is given what is wrong
   */
  constructor(random: Random, nowMs: () => number, fail: (error: unknown) => void) {
    this.#nowMs = nowMs;
    const reader = new Reader(random);
    const target: LogTarget = {
      write: (bytes) => {
        try {
          this.#attempt();
          const count = Math.min(bytes.length, reader.takes(nowMs()));
          if (count === 0) throw Object.assign(new Error("full"), { code: "EAGAIN" });
          this.#read(toUtf8(bytes.subarray(0, count)));
          return count;
        } catch (error) {
          if (error instanceof Violation) fail(error);
          throw error;
        }
      },
      reopen() {},
      close() {},
    };
    const surroundings: LogSurroundings = {
      monotonicMs: nowMs,
      later: (delayMs, task) => {
        const retry = { dueMs: nowMs() + delayMs, task };
        this.#retry = retry;
        return {
          cancel: () => {
            if (this.#retry === retry) this.#retry = undefined;
          },
        };
      },
      pause() {},
      encode: fromUtf8,
    };
    this.#output = new LogOutput(target, (lines) => `missing ${lines}\n`, surroundings, {
      maxQueueBytes: MAX_QUEUE_BYTES,
    });
    const log = (msg: string): void => {
      try {
        this.#log(msg);
      } catch (error) {
        fail(error);
      }
    };
    this.logger = { ...silentLogger, info: log, warn: log, error: log, child: () => this.logger };
  }

  /** Lines that were dropped. */
  get dropped(): number {
    return this.#output.droppedLines;
  }

  #log(msg: string): void {
    const retry = this.#retry;
    if (retry !== undefined && retry.dueMs <= this.#nowMs()) {
      this.#retry = undefined;
      retry.task();
    }
    const line = `${this.#logged++} ${msg}\n`;
    this.#output.write(line);
    const { queueBytes, droppedLines } = this.#output;
    const isNotice = this.#begun.startsWith("missing");
    const queuedLines = this.#output.queuedLines - (isNotice ? 1 : 0);
    if (queueBytes > MAX_QUEUE_BYTES + MAX_NOTICE_BYTES && queuedLines > 1)
      violate("SIM-13", `${queueBytes} bytes of the log wait`);
    if (this.#written + queuedLines + droppedLines !== this.#logged)
      violate(
        "SIM-13",
        `of ${this.#logged} lines ${this.#written} were written, ${queuedLines} wait, ${droppedLines} were dropped`,
      );
  }

  #attempt(): void {
    const atMs = this.#nowMs();
    this.#attempts = { atMs, count: this.#attempts.atMs === atMs ? this.#attempts.count + 1 : 1 };
    if (this.#attempts.count > MAX_ATTEMPTS)
      violate("SIM-13", "a member waits for what reads its log");
  }

  #read(text: string): void {
    const lines = (this.#begun + text).split("\n");
    this.#begun = defined(lines.pop(), "the last line");
    for (const line of lines) {
      const missing = /^missing (\d+)$/.exec(line);
      if (missing !== null) this.#next += Number(missing[1]);
      else {
        this.#written++;
        const number = Number(/^\d+/.exec(line)?.[0]);
        if (number !== this.#next)
          violate("SIM-13", `the log has ${JSON.stringify(line)} where line ${this.#next} is due`);
        this.#next++;
      }
    }
  }
}

export interface LogEnd {
  readonly lastIndex: number;
  /**
   * The term of an entry; undefined for one that the log does not reach, or that its beginning
   * stands for.
   */
  termOf(index: number): number | undefined;
  /** Entries up to here are behind the log's beginning, and were committed. */
  readonly beginsAt: number;
  /** Whether an entry takes this member out of the cluster. */
  removes(memberId: bigint): boolean;
}

/**
 * What a member's log holds on its disk, while no process uses it: which entries, and whether the
 * member is to be removed by one.
 *
 * Reads the log; undefined if there is none that can be read. A snapshot mark beyond the commit
 * index of the last state does not count: the member had not accepted that snapshot when it
 * stopped, and starts from what it had before.
 */
export function logEndOf(disk: Disk, dir: string): LogEnd | undefined {
  const entries = new Map<number, raftpb.Entry>();
  let lastIndex = 0;
  let beginsAt = 0;
  try {
    const accepted = new Set(validSnapshotMarks(disk, dir).map(({ index }) => index));
    for (const { type, data } of readWal(disk, dir)) {
      if (type === RecordType.Snapshot) {
        const { index } = walpb.Snapshot.decode(data);
        if (!accepted.has(index)) continue;
        beginsAt = Math.max(beginsAt, index);
        lastIndex = Math.max(lastIndex, index);
      } else if (type === RecordType.Entry) {
        const entry = raftpb.Entry.decode(data);
        entries.set(entry.index, entry);
        // What it replaces ends with it.
        lastIndex = entry.index;
      }
    }
  } catch {
    return undefined;
  }
  const removes = (memberId: bigint) =>
    [...entries.values()].some(({ index, type, data }) => {
      if (index > lastIndex || type !== raftpb.EntryType.EntryConfChange) return false;
      const change = raftpb.ConfChange.decode(data);
      return (
        change.type === raftpb.ConfChangeType.ConfChangeRemoveNode && change.nodeId === memberId
      );
    });
  return {
    lastIndex,
    beginsAt,
    termOf: (index) => (index > lastIndex ? undefined : entries.get(index)?.term),
    removes,
  };
}
