/**
 * Writes down what clients did and saw, as it happens: one JSON object a line, so that a history
 * can be judged anywhere and again later.
 *
 *     {"t":"base","revision":1}                              the round's keys were all gone at this
 *                                                            revision
 *     {"t":"op","client":"c0","member":"m1","request":{"kind":"put",...},"calledAt":1200,
 *      "returnedAt":3400,"outcome":{...}}
 *     {"t":"compaction","revision":40,"calledAt":...,"answeredAt":...}
 *     {"t":"stream","id":3,"name":"w1@m2","key":"k","end":"n","from":17}
 *     {"t":"batch","id":3,"at":5600,"revision":21,"events":[...]}
 *     {"t":"through","id":3,"revision":90}                   that stream must have sent all up to
 *                                                            there
 *     {"t":"lease","name":"8123","key":"m/l0.4","wasPut":true,"renewals":[...],
 *      "revokeCalledMs":...}
 *     {"t":"leases-gone","atMs":...}                         by then all leases without keep-alives
 *                                                            must be gone
 *     {"t":"lock","name":"m/lock-a","owner":"m/lock-a/8123","fromMs":...,"untilMs":...}
 *     {"t":"fault","at":...,"text":"pause m1"}
 *
 * Times are microseconds of one clock that never goes back and returns no time twice; those of
 * leases are milliseconds of the same one.
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import type { LeaseRecord, ModelRequest, Outcome, WatchBatch, WatchStream } from "@quorate/sim";
import type { HeldLock } from "./held-locks.ts";

/** A request that has ended. */
export interface OpLine {
  readonly t: "op";
  readonly client: string;
  readonly member: string;
  readonly request: ModelRequest;
  readonly serializable: boolean;
  readonly atRevision: number;
  readonly calledAt: number;
  readonly returnedAt: number;
  readonly outcome: Outcome;
}

export type Line =
  | { readonly t: "base"; readonly revision: number }
  | OpLine
  | {
      readonly t: "compaction";
      readonly revision: number;
      readonly calledAt: number;
      readonly answeredAt: number | undefined;
    }
  | ({ readonly t: "stream"; readonly id: number } & Pick<
      WatchStream,
      "name" | "key" | "end" | "from"
    >)
  | ({ readonly t: "batch"; readonly id: number; readonly at: number } & WatchBatch)
  | { readonly t: "through"; readonly id: number; readonly revision: number }
  | ({ readonly t: "lease"; readonly key: string; readonly wasPut: boolean } & Pick<
      LeaseRecord,
      "name" | "renewals" | "revokeCalledMs"
    >)
  | { readonly t: "leases-gone"; readonly atMs: number }
  | ({ readonly t: "lock" } & HeldLock)
  | { readonly t: "fault"; readonly at: number; readonly text: string };

const BUFFERED_BYTES = 64 * 1024;

/** What the progress lines show. */
export interface Counts {
  answered: number;
  refused: number;
  unknown: number;
  events: number;
  keepAlives: number;
  /** Locks that were had. */
  locks: number;
  /** Changes of users and roles that were taken. */
  userChanges: number;
}

export class Recorder {
  readonly path: string;
  readonly counts: Counts = {
    answered: 0,
    refused: 0,
    unknown: 0,
    events: 0,
    keepAlives: 0,
    locks: 0,
    userChanges: 0,
  };
  /** The longest time in which no write was answered, in milliseconds. */
  longestGapMs = 0;
  #lastWriteAt: number | undefined;
  readonly #fd: number;
  #text = "";
  #lastAt = 0;
  #streams = 0;
  #closed = false;

  /** A new history in `path`, of keys that were all gone at `baseRevision`. */
  constructor(path: string, baseRevision: number) {
    this.path = path;
    this.#fd = openSync(path, "wx");
    this.write({ t: "base", revision: baseRevision });
  }

  /** Now, in microseconds: later than any answer of this function before. */
  now(): number {
    this.#lastAt = Math.max(this.#lastAt + 1, Math.floor(performance.now() * 1000));
    return this.#lastAt;
  }

  write(line: Line): void {
    if (this.#closed) return;
    if (line.t === "op") {
      this.counts[line.outcome.kind]++;
      if (line.outcome.kind === "answered" && line.request.kind !== "range")
        this.#noteWrite(line.returnedAt);
    }
    if (line.t === "batch") this.counts.events += line.events.length;
    this.#text += `${JSON.stringify(line)}\n`;
    if (this.#text.length >= BUFFERED_BYTES) this.#flush();
  }

  #noteWrite(at: number): void {
    const gapMs = (at - (this.#lastWriteAt ?? at)) / 1000;
    this.longestGapMs = Math.max(this.longestGapMs, gapMs);
    this.#lastWriteAt = Math.max(at, this.#lastWriteAt ?? at);
  }

  /** Notes that a watch begins; returns the number for its batches. */
  stream(watch: Pick<WatchStream, "name" | "key" | "end" | "from">): number {
    const id = this.#streams++;
    this.write({ t: "stream", id, ...watch });
    return id;
  }

  #flush(): void {
    const bytes = Buffer.from(this.#text, "utf8");
    this.#text = "";
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at);
  }

  /** Writes what is left. What comes later is dropped. */
  close(): void {
    if (this.#closed) return;
    this.#flush();
    this.#closed = true;
    closeSync(this.#fd);
  }
}

/**
 * The lines of a history. Throws for one that cannot be read, with its number; a torn last line is
 * left out.
 */
export function readHistory(path: string): Line[] {
  const texts = readFileSync(path, "utf8").split("\n");
  const lines: Line[] = [];
  texts.forEach((text, index) => {
    if (text === "") return;
    try {
      lines.push(JSON.parse(text) as Line);
    } catch (error) {
      if (index < texts.length - 1)
        throw new Error(`${path}:${index + 1}: ${(error as Error).message}`);
    }
  });
  return lines;
}
