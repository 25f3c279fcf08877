/**
 * ./dev bench door: what calls of a front-end cost without sockets and without another thread. Both
 * ends of the rings (FrontTwin) and a member in memory run in this one.
 *
 *     ./dev bench door [--runs 9] [--keys 10000]
 *
 * Processor microseconds of a call, the least of the runs, with so many calls in a batch. The row
 * "nothing" is a method that returns at once: the rings and this program's own part, which is in
 * the other rows, too. Other work on the machine changes the least of many runs little, but for
 * what it takes of the processor's caches: "get of one key" finds all in them.
 */

import { FrontTwin } from "@quorate/front/testing";
import { silentLogger } from "@quorate/host";
import { KVService, PutRequest, RangeRequest } from "@quorate/proto";
import { deliver, isLate, LOCAL_CALL, type UnaryHandler } from "@quorate/rpc";
import { rpcObserver, serviceTable } from "@quorate/services";
import { align } from "../../../../bench/report.ts";
import { count, readArguments, valueOption } from "../../../../scripts/dev/command-line.ts";
import { World } from "../support/world.ts";

const { values: args } = readArguments(
  "./dev bench door [OPTIONS]: calls through the rings, without sockets and threads",
  {
    runs: valueOption("runs of each row", "9"),
    keys: valueOption("keys that are read and written", "10000"),
  },
);
const BATCHES = [16, 64, 256] as const;
const CALLS_A_RUN = 12_800;
const VALUE_BYTES = 256;
const NOTHING = "/nothing";

const keys = count("keys", args.keys);
const { Range, Put } = KVService.methods;
const value = new Uint8Array(VALUE_BYTES).fill(7);
const keyOf = (i: number): Uint8Array => Buffer.from(`key/${String(i).padStart(12, "0")}`);
const gets = Array.from({ length: keys }, (_, i) => RangeRequest.encode({ key: keyOf(i) }).slice());
const puts = Array.from({ length: keys }, (_, i) =>
  PutRequest.encode({ key: keyOf(i), value }).slice(),
);

const world = new World(1);
await world.startAll();
const member = world.leader()!.member!;
const { unary, stream } = serviceTable(member);
const response = new Uint8Array(20);
let tasks: (() => void)[] = [];
const twin = new FrontTwin({
  services: { unary: new Map([...unary, [NOTHING, () => response]]), stream },
  http: () => ({}),
  clock: member.clock,
  logger: silentLogger,
  observer: rpcObserver(member.metrics, member.clock),
  later: (task) => void tasks.push(task),
  broken: (error) => {
    throw error;
  },
});
const context = { ...LOCAL_CALL, path: "", peerAddress: "127.0.0.1:1" };

let answered = 0;
const receiver = {
  resolved: () => void answered++,
  rejected: (error: unknown) => {
    throw error;
  },
};

/** Makes calls in batches, each when the one before is answered. */
async function run(path: string, batch: number, request: () => Uint8Array): Promise<void> {
  const handler = twin.services.unary.get(path) as UnaryHandler;
  for (let left = CALLS_A_RUN; left > 0; left -= batch) {
    const goal = answered + batch;
    for (let i = 0; i < batch; i++) {
      const result = handler(request(), context);
      if (isLate(result)) deliver(result, receiver);
    }
    for (let turns = 0; answered < goal; turns++) {
      const due = tasks;
      tasks = [];
      for (const task of due) task();
      // What is durable is so a while later.
      world.clock.advance(turns > 4 ? 1 : 0);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

let random = 1;
const any = (): number => {
  random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0;
  return (random >>> 3) % keys;
};
const rows: readonly [name: string, path: string, request: () => Uint8Array][] = [
  ["nothing", NOTHING, () => gets[any()]!],
  ["put", Put.path, () => puts[any()]!],
  ["get", Range.path, () => gets[any()]!],
  ["get of one key", Range.path, () => gets[0]!],
];
let next = 0;
await run(Put.path, 256, () => puts[next++ % keys]!);
const cells: string[][] = [["call", ...BATCHES.map((batch) => `${batch} at once`)]];
for (const [name, path, request] of rows) {
  const row = [name];
  for (const batch of BATCHES) {
    let least = Number.POSITIVE_INFINITY;
    // What is compiled at first is no call's cost.
    await run(path, batch, request);
    for (let i = 0; i < count("runs", args.runs); i++) {
      const before = process.cpuUsage();
      await run(path, batch, request);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, (user + system) / CALLS_A_RUN);
    }
    row.push(least.toFixed(2));
  }
  cells.push(row);
}
console.log(align(cells, [0]));
process.exit(0);
