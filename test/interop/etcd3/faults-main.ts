/**
 * The command `./dev compare etcd3-faults`: ten faults, met by npm's etcd3 and by its shape over our
 * client, each in a process of its own; a row for each.
 */

import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { readArguments, valueOption } from "../../../scripts/dev/command-line.ts";
import { FAULTS, type Met, meetFault, type Verdict } from "./faults.ts";

const HELP = `./dev compare etcd3-faults [OPTIONS]

Members of Quorate, ten faults, and two clients: npm's etcd3 and @quorate/client/etcd3.`;

/** An end of the process is a verdict too: a client may throw where nobody can catch it. */
async function verdictOf(met: Met, index: number): Promise<Verdict> {
  const words = [import.meta.filename, `--run=${met},${index}`];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "pipe"] });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const line = out.trim().split("\n").at(-1) ?? "";
  if (line.startsWith("{")) return JSON.parse(line) as Verdict;
  const why = err.split("\n").find((one) => /Error/.test(one)) ?? "no word";
  return { holds: false, what: `the program ended: ${why}` };
}

const { values } = readArguments(HELP, {
  only: valueOption("faults with this in the name", ""),
  run: { type: "string", requiresArg: true, hidden: true, describe: "one, in this process" },
});
if (values.run !== undefined) {
  const [met, index] = values.run.split(",");
  console.log(JSON.stringify(await meetFault(met as Met, FAULTS[Number(index)]!)));
  process.exit(0);
}
console.log("| fault | what holds | npm's etcd3 | ours |");
console.log("|---|---|---|---|");
let failed = 0;
for (const [index, { name, promise }] of FAULTS.entries()) {
  if (!name.includes(values.only)) continue;
  const cells: string[] = [];
  for (const met of ["npm", "ours"] as const) {
    const { holds, what } = await verdictOf(met, index);
    if (met === "ours" && !holds) failed++;
    cells.push(`${holds ? "holds" : "**fails**"}: ${what.replaceAll("|", "/").split("\n")[0]}`);
  }
  console.log(`| ${name} | ${promise} | ${cells.join(" | ")} |`);
}
process.exitCode = failed === 0 ? 0 : 1;
