import { optionsOf } from "../src/base/options.ts";
import { runPool } from "../src/run/pool.ts";
import { commandOf } from "../src/run/changes.ts";
import { Totals } from "../src/run/totals.ts";
const totals = new Totals();
const SHORT = { set: { faultPhaseMs: 2000 } };
const [from, to] = process.argv.slice(2).map(Number) as [number, number];
const list: number[] = []; for (let s = from; s <= to; s++) { const o = optionsOf(s); if (o.smallSteps || o.theme === "slow") list.push(s); }
const start = Date.now();
await runPool({ workers: 2, next: () => { const s = list.shift(); return s === undefined || Date.now() - start > 420_000 ? undefined : s % 8 === 0 ? { seed: s } : { seed: s, changes: SHORT }; }, done: (summary) => { const before = totals.failed.size; totals.add(summary); if (totals.failed.size > before) console.log("FAILED", [...totals.failed].at(-1)!.join(" ").slice(0, 600)); } });
console.log("left", list[0], "seeds", totals.seeds, "failed", totals.failed.size); void commandOf;
