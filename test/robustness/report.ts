/** What a run shows: a line every few seconds while it goes on, and a table at its end. */
import type { RoundProgress, RoundResult } from "./round.ts";

const PROGRESS_MS = 5000;

export const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

const clock = (): string => new Date().toISOString().slice(11, 19);

/** Prints a line with the time of day. */
export const log = (text: string): void => print(`${clock()} ${text}`);

/** Prints how a round is getting on, until it is stopped. */
export class ProgressLines {
  readonly #timer: NodeJS.Timeout;
  readonly #round: number;
  #state: RoundProgress | undefined;
  #before = 0;

  constructor(round: number) {
    this.#round = round;
    this.#timer = setInterval(() => this.#show(), PROGRESS_MS);
  }

  readonly watch = (state: RoundProgress): void => {
    this.#state = state;
  };

  #show(): void {
    if (this.#state === undefined) return;
    const { phase, counts, active } = this.#state;
    const { answered, refused, unknown, events, keepAlives } = counts;
    const perSecond = Math.round(((answered - this.#before) * 1000) / PROGRESS_MS);
    this.#before = answered;
    const faults = active();
    const now = faults.length === 0 ? "no faults" : faults.join(", ");
    log(
      `round ${this.#round} ${phase}: ${perSecond} op/s, ${answered} answered, ${refused} refused, ${unknown} unknown, ` +
        `${events} events, ${keepAlives} keep-alives | ${now}`,
    );
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** All rounds of a run together. */
export class Totals {
  rounds = 0;
  operations = 0;
  unknown = 0;
  revisions = 0;
  streams = 0;
  events = 0;
  leases = 0;
  keepAlives = 0;
  locks = 0;
  userChanges = 0;
  hashes = 0;
  longestGapMs = 0;
  /** Rounds by the programs of their members. */
  readonly programs = new Map<string, number>();
  tooOld = 0;
  undecided = 0;
  readonly faults = new Map<string, number>();

  /** @param programs of the members, as text */
  add({ judgement, faults, counts, hashes, longestGapMs }: RoundResult, programs: string): void {
    this.rounds++;
    this.programs.set(programs, (this.programs.get(programs) ?? 0) + 1);
    this.locks += counts.locks;
    this.userChanges += counts.userChanges;
    this.hashes += hashes;
    this.longestGapMs = Math.max(this.longestGapMs, longestGapMs);
    this.operations += judgement.operations;
    this.unknown += judgement.unknown;
    this.revisions += judgement.revisions;
    this.streams += judgement.streams;
    this.events += judgement.events;
    this.leases += judgement.leases;
    this.tooOld += judgement.tooOld;
    this.undecided += judgement.decided ? 0 : 1;
    this.keepAlives += counts.keepAlives;
    for (const [kind, count] of faults) this.faults.set(kind, (this.faults.get(kind) ?? 0) + count);
  }

  /** The table. */
  text(seconds: number, violations: number, fullDiskEnds: number): string {
    const faults = [...this.faults].sort(([a], [b]) => (a < b ? -1 : 1));
    const rows: [string, string | number][] = [
      ["seconds", Math.round(seconds)],
      ["rounds", this.rounds],
      ...[...this.programs]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([programs, rounds]): [string, number] => [`  ${programs}`, rounds]),
      ["operations judged", this.operations],
      ["of unknown outcome", this.unknown],
      ["revisions", this.revisions],
      ["watch streams; events", `${this.streams}; ${this.events}`],
      ["leases; keep-alives", `${this.leases}; ${this.keepAlives}`],
      ["locks", this.locks],
      ["changes of users", this.userChanges],
      ["equal hashes, compacted", this.hashes],
      ["longest time without write", `${Math.round(this.longestGapMs)} ms`],
      ["reads too old to judge", this.tooOld],
      ["histories undecided", this.undecided],
      ["faults", faults.reduce((sum, [, count]) => sum + count, 0)],
      ...faults.map(([kind, count]): [string, number] => [`  ${kind}`, count]),
      ["ended for a full disk", fullDiskEnds],
      ["violations", violations],
    ];
    return rows.map(([name, value]) => `${name.padEnd(28)} ${value}`).join("\n");
  }
}
