/**
 * The command `./dev attack linear`: texts that cost more than their length, at every port
 * (attack.ts). It leaves with 1 if a request cost more than --limit-ms a KiB.
 */
import { setPriority } from "node:os";
import { orRefuse } from "../../../scripts/dev/command-line.ts";
import { Attack, rowOf } from "./attack.ts";
import { readOptions } from "./options.ts";
import { allShapes, Servers } from "./servers.ts";
import { slotsOf } from "./slots.ts";

const TABLE_ROWS = 100;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Returns the exit code: 0 clean, 1 something was found, 2 a wrong command line. */
async function main(): Promise<number> {
  const options = orRefuse(() => readOptions(process.argv.slice(2)));
  setPriority(process.pid, 10);
  const attack = new Attack(options, allShapes().flatMap(slotsOf), () => Servers.start(), print);
  print(`seed ${options.seed}; ${attack.slotCount} slots; ${JSON.stringify(options)}`);
  await attack.run();
  const rows = [...attack.worst.values()].sort((a, b) => b.msPerKib - a.msPerKib);
  print(`the most expensive texts:\n${rows.slice(0, TABLE_ROWS).map(rowOf).join("\n")}`);
  print(`${attack.cases} cases; go on with --seed ${options.seed} --from ${attack.next}`);
  if (attack.found.size === 0) {
    print("clean: nothing above the limit");
    return 0;
  }
  print(`FOUND ${attack.found.size} fields above ${options.limitMsPerKib} ms/KiB`);
  return 1;
}

process.exitCode = await main();
process.exit();
