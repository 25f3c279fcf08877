/**
 * The types of the pure code (tsconfig.pure.json): no name of Node's, and no element of an array or
 * a record taken for one that is there (noUncheckedIndexedAccess).
 *
 * tsc has that option for all files or none. So it is on, and in packages that are not held to it
 * only errors of other kinds count: those about names. The errors of all kinds that do not depend
 * on the option are found in the whole tree by tsconfig.json.
 */
import { spawnSync } from "node:child_process";

/**
 * Packages whose elements are not checked: most read bytes and tables by computed places, in loops
 * that a check of each would slow down. services, transport and v2 have few such places, and could
 * be held to it.
 */
const NOT_HELD = [
  "bolt",
  "kube-apiserver",
  "kube-storage",
  "member",
  "proto",
  "raft",
  "rpc",
  "server",
  "store",
  "wal",
];

/** A name or a module that is not there. */
const OF_NAMES = /: error TS(?:2304|2307|2503|2552|2580|2582|2584|2591|2867|2868|7016): /;
const ERROR = /^packages\/(?<name>[\w-]+)\/.*: error TS\d+: /;

const tsc = spawnSync(
  process.execPath,
  ["node_modules/typescript/bin/tsc", "-p", "tsconfig.pure.json", "--pretty", "false"],
  { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 },
);
let isExcused = false;
const counted: string[] = [];
for (const line of tsc.stdout.split("\n").filter((one) => one !== "")) {
  // Further lines of an error are indented.
  if (!line.startsWith(" ")) {
    const name = ERROR.exec(line)?.groups?.["name"];
    isExcused = name !== undefined && NOT_HELD.includes(name) && !OF_NAMES.test(line);
  }
  if (!isExcused) counted.push(line);
}
if (tsc.error !== undefined) throw tsc.error;
process.stderr.write(tsc.stderr);
for (const line of counted) console.error(line);
// Its status says only that there are errors, also excused ones.
const isBroken = tsc.status === null || (tsc.status !== 0 && tsc.stdout === "");
process.exitCode = isBroken || counted.length > 0 ? 1 : 0;
