/** Sums over many runs, for people and for the record. */
import type { FaultKind } from "../base/fault-kinds.ts";
import type { Summary } from "./worker.ts";

const COUNTED = [
  "simulatedMs",
  "cpuMs",
  "operations",
  "answered",
  "entries",
  "elections",
  "messages",
  "snapshots",
  "events",
] as const;

export class Totals {
  seeds = 0;
  undecided = 0;
  refusedToStart = 0;
  liesUnnoticed = 0;
  readonly sums = Object.fromEntries(COUNTED.map((name) => [name, 0])) as Record<
    (typeof COUNTED)[number],
    number
  >;
  readonly faults = new Map<FaultKind, number>();
  readonly others = new Map<string, number>();
  /** Seeds that broke a promise, with what was said. */
  readonly failed = new Map<number, string>();

  add(summary: Summary): void {
    this.seeds++;
    for (const name of COUNTED) this.sums[name] += summary[name];
    if (summary.undecided) this.undecided++;
    this.refusedToStart += summary.refusedToStart;
    this.liesUnnoticed += summary.liesUnnoticed;
    for (const [kind, count] of Object.entries(summary.faults)) {
      this.faults.set(kind as FaultKind, (this.faults.get(kind as FaultKind) ?? 0) + count);
    }
    const others = {
      "log entries compared": summary.checked.entriesWritten,
      "hashes compared": summary.checked.hashesCompared,
      "snapshots compared": summary.archives.whole,
      "members moved": summary.cluster.readdressed,
      "members replaced": summary.cluster.replaced,
      "majorities lost": summary.survived ? 1 : 0,
      "clusters restored": summary.archives.restored,
      "stores altered": summary.corruption.altered,
      "alarms CORRUPT": summary.corruption.named + summary.corruption.unnamed,
      "watch events": summary.watches.events,
      "malformed requests": summary.hostile.malformed,
      "heavy requests": summary.hostile.heavy,
      "entries proposed unchecked": summary.hostile.poisoned,
      "ranges in parts": summary.streams.whole,
      "ranges broken off": summary.streams.broken,
      "changes of users and roles": summary.users?.changes ?? 0,
      "calls permitted": summary.users?.served ?? 0,
      "calls refused": summary.users?.refused ?? 0,
      "watches ended by revocation": summary.users?.watchesRevoked ?? 0,
      "leases granted": summary.leases.granted,
      "leases expired": summary.leases.expired,
    };
    for (const [name, count] of Object.entries(others))
      this.others.set(name, (this.others.get(name) ?? 0) + count);
    if (summary.violation !== undefined) this.failed.set(summary.seed, summary.violation);
  }

  get simulatedHours(): number {
    return this.sums.simulatedMs / 3_600_000;
  }

  /** How much faster simulated time went than one processor's. */
  get speed(): number {
    return this.sums.cpuMs === 0 ? 0 : this.sums.simulatedMs / this.sums.cpuMs;
  }

  /** Several lines for people. */
  text(): string {
    const { sums } = this;
    const by = (counts: ReadonlyMap<string, number>) =>
      [...counts]
        .sort(([, a], [, b]) => b - a)
        .map(([name, count]) => `${name} ${count}`)
        .join(", ");
    const speed = `${this.speed.toFixed(0)} times as fast as real time on one processor`;
    return [
      `${this.seeds} seeds, ${this.simulatedHours.toFixed(2)} hours simulated, ${speed}`,
      `${sums.operations} operations checked (${sums.answered} answered), ${sums.entries} entries, ${sums.elections} elections`,
      `${sums.messages} messages, ${sums.snapshots} snapshots sent, ${sums.events} events, ${by(this.others)}`,
      `faults: ${by(this.faults)}; ${this.refusedToStart} damaged members refused to start, ` +
        `${this.liesUnnoticed} whose disks had lied were given up`,
      `${this.undecided} histories undecided`,
    ].join("\n");
  }

  /** Plain data for a line of a record. */
  record(): Record<string, unknown> {
    const failed = [...this.failed.keys()].sort((a, b) => a - b);
    const { seeds, undecided, refusedToStart, liesUnnoticed, sums } = this;
    return {
      seeds,
      ...sums,
      undecided,
      refusedToStart,
      liesUnnoticed,
      faults: Object.fromEntries(this.faults),
      ...Object.fromEntries(this.others),
      failed,
    };
  }
}
