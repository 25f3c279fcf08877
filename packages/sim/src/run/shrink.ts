/**
 * Makes a run that fails small: it tries to do without each kind of fault and each other trouble,
 * with less of everything, and for less time, and keeps what still breaks the same promise. Another
 * run is another course of events, so each try is a run of its own.
 */
import { FAULT_KINDS } from "../base/fault-kinds.ts";
import { type Changes, optionsOf, type SimOptions } from "../base/options.ts";
import type { RunResult } from "../result.ts";
import { commandOf } from "./changes.ts";

type Run = (options: SimOptions, explains: boolean) => Promise<RunResult>;

/** The promise that a violation names, such as SIM-4; its first words where it names none. */
export function promiseOf(violation: string): string {
  return (
    violation.match(/\b[A-Z]+-\d+\b/)?.[0] ??
    violation
      .split("\n")[0]
      .replace(/[\d.]+/g, "#")
      .slice(0, 60)
  );
}

/** What to try, of options that fail: each an option and a smaller value for it. */
function smaller(options: SimOptions): [keyof SimOptions, number][] {
  const tries: [keyof SimOptions, number][] = [];
  const off = [
    "loss",
    "duplication",
    "reordering",
    "corruption",
    "slowSyncChance",
    "drift",
    "turnMs",
    "jitterMs",
    "clientBreaks",
    "watchers",
  ] as const;
  const more = [
    "leaseClients",
    "leasedShare",
    "compactions",
    "deletes",
    "txns",
    "serializableShare",
    "valueBytes",
    "syncMs",
  ] as const;
  for (const name of [...off, ...more]) if (options[name] !== 0) tries.push([name, 0]);
  for (const name of ["members", "clients", "keys"] as const) {
    if (options[name] > 1)
      tries.push([name, Math.floor(options[name] / 2)], [name, options[name] - 1]);
  }
  for (let ms = options.faultPhaseMs / 2; ms >= 500; ms /= 2)
    tries.push([`faultPhaseMs`, Math.round(ms)]);
  return tries;
}

/**
 * The smallest changes found under which the seed still breaks the promise that it broke; undefined
 * if it breaks none.
 */
export async function shrinkSeed(
  seed: number,
  bug: string | undefined,
  changes: Changes | undefined,
  run: Run,
  print: (line: string) => void,
): Promise<Changes | undefined> {
  const first = await run(optionsOf(seed, bug, changes), false);
  if (first.violation === undefined) return undefined;
  const promise = promiseOf(first.violation);
  let best: Changes = changes ?? {};
  const attempt = async (candidate: Changes): Promise<boolean> => {
    const { violation } = await run(optionsOf(seed, bug, candidate), false);
    const isSame = violation !== undefined && promiseOf(violation) === promise;
    if (isSame) best = candidate;
    return isSame;
  };
  print(`breaks ${promise}; looking for less that does`);
  const active = FAULT_KINDS.filter(
    (kind) => (first.faults[kind] ?? 0) > 0 && !(best.without ?? []).includes(kind),
  );
  // All at once first, then one by one.
  if (active.length > 0 && !(await attempt({ ...best, without: [...FAULT_KINDS] }))) {
    for (const kind of active) {
      const isLess = await attempt({ ...best, without: [...(best.without ?? []), kind] });
      print(`  without ${kind}: ${isLess ? "still" : "holds"}`);
    }
  }
  for (const [name, value] of smaller(optionsOf(seed, bug, best))) {
    const now = optionsOf(seed, bug, best)[name] as number;
    if (now <= value) continue;
    const isLess = await attempt({ ...best, set: { ...best.set, [name]: value } });
    print(`  ${name} ${now} -> ${value}: ${isLess ? "still" : "holds"}`);
  }
  print(`the least found: ${commandOf(seed, bug, best)}`);
  return best;
}
