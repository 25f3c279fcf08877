/**
 * The types of the pure code (tsconfig.pure.json): no name of Node's, and no element of an array or
 * a record taken for one that is there (noUncheckedIndexedAccess).
 *
 * tsc has that option for all files or none. So it is on, and in files that are not held to it only
 * errors of other kinds count: those about names. The errors of all kinds that do not depend on the
 * option are found in the whole tree by tsconfig.json.
 */
import { spawnSync } from "node:child_process";

/**
 * Files and folders whose elements are not checked: they read bytes, tables and sorted arrays by
 * computed places, in loops that run for each byte, entry, key or event, which a check of each
 * element would slow down. The Kubernetes packages are not held to it yet.
 */
const NOT_HELD = [
  "bolt/src/reader.ts",
  "bolt/src/writer.ts",
  "kube-apiserver/",
  "kube-storage/",
  "member/src/lease/deadlines.ts",
  "member/src/watch/event.ts",
  "member/src/watch/key-intervals.ts",
  "member/src/watch/recent-events.ts",
  "proto/src/chunk-queue.ts",
  "proto/src/crc32c.ts",
  "proto/src/gen/",
  "proto/src/json/",
  "proto/src/wire/",
  "raft/src/log.ts",
  "raft/src/tracker.ts",
  "rpc/src/client/client-connection.ts",
  "rpc/src/grpc/calls.ts",
  "rpc/src/grpc/responses.ts",
  "rpc/src/hpack/",
  "rpc/src/http1/",
  "rpc/src/http2/",
  "server/src/audit/line-bytes.ts",
  "store/src/auth/intervals.ts",
  "store/src/backend/revision-records.ts",
  "store/src/backend/revision.ts",
  "store/src/level-files/",
  "store/src/mvcc/",
  "store/src/requests/check.ts",
  "store/src/requests/range.ts",
  "store/src/requests/rows.ts",
  "wal/src/frame.ts",
];

/** A name or a module that is not there. */
const OF_NAMES = /: error TS(?:2304|2307|2503|2552|2580|2582|2584|2591|2867|2868|7016): /;
const ERROR = /^packages\/(?<path>[^(]+)\(.*: error TS\d+: /;

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
    const path = ERROR.exec(line)?.groups?.["path"];
    isExcused = NOT_HELD.some((one) => path?.startsWith(one)) && !OF_NAMES.test(line);
  }
  if (!isExcused) counted.push(line);
}
if (tsc.error !== undefined) throw tsc.error;
process.stderr.write(tsc.stderr);
for (const line of counted) console.error(line);
// Its status says only that there are errors, also excused ones.
const isBroken = tsc.status === null || (tsc.status !== 0 && tsc.stdout === "");
process.exitCode = isBroken || counted.length > 0 ? 1 : 0;
