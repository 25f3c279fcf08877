import { spawnSync } from "node:child_process";
import { difference } from "./support/compare.ts";
import { evaluate } from "./support/evaluate.ts";
import { historyCase } from "./support/histories.ts";
import { jsonPatchCase, mergePatchCase, strategicMergeCase } from "./support/random-patches.ts";
import { Dice } from "./support/random-values.ts";

const n = Number(process.argv[2] ?? 300),
  kind = process.argv[3],
  show = Number(process.argv[4] ?? 3);
const makers: any = {
  history: historyCase,
  json: jsonPatchCase,
  merge: mergePatchCase,
  smp: strategicMergeCase,
};
const cases: any[] = [];
for (let i = 0; i < n; i++) cases.push(makers[kind](new Dice(i * 7919 + 1)));
const r = spawnSync("/tmp/k8s-reference", {
  input: cases.map((c) => JSON.stringify(c)).join("\n"),
  maxBuffer: 1 << 30,
});
const theirs = r.stdout
  .toString()
  .trim()
  .split("\n")
  .map((l) => JSON.parse(l));
let bad = 0;
for (let i = 0; i < n; i++) {
  const c = JSON.parse(JSON.stringify(cases[i]));
  let ours: any;
  try {
    ours = await evaluate(c);
  } catch (e: any) {
    ours = { thrown: e.stack };
    if (kind === "history") ours = [ours];
  }
  const d = difference(c.type, ours, theirs[i]);
  if (d && bad++ < show) {
    console.log("CASE", i, d);
    if (kind === "history") {
      const at = Number(d.slice(5));
      console.log(
        c.history.steps
          .slice(0, at + 1)
          .map((s: any) => JSON.stringify(s))
          .join("\n"),
      );
      console.log("LIVE  ", JSON.stringify(at ? theirs[i][at - 1] : null));
      console.log("OURS  ", JSON.stringify(ours[at]));
      console.log("THEIRS", JSON.stringify(theirs[i][at]));
    } else {
      console.log(JSON.stringify(c));
      console.log("OURS  ", JSON.stringify(ours));
      console.log("THEIRS", JSON.stringify(theirs[i]));
    }
  }
}
const errs = theirs
  .flatMap((t: any) => (Array.isArray(t) ? t : [t]))
  .filter((t: any) => t.error || t.status).length;
console.log(kind, n, "different:", bad, "their errors:", errs);
