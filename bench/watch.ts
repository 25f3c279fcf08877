/**
 * 10,000 watchers on one member, ours and etcd in turn: what a watcher costs in memory, and how many events a second reach the clients when
 * all watch one key, each its own, or 100 each of 100 prefixes.
 *
 *     node bench/watch.ts [--watchers 10000] [--streams 20] [--events 200000] [--rounds 1]
 */
import { parseArgs } from "node:util";
import { fromUtf8, KVService, type WatchCreateRequest } from "@quorate/proto";
import { TestClient } from "../test/support/client.ts";
import { startCluster } from "../test/support/cluster.ts";
import { type Executable, etcd, quorate } from "../test/support/executables.ts";
import { WatchClient } from "../test/support/watch.ts";
import { cpuSeconds, residentBytes } from "./usage.ts";

const { values: args } = parseArgs({
  options: {
    watchers: { type: "string", default: "10000" },
    streams: { type: "string", default: "20" },
    events: { type: "string", default: "200000" },
    rounds: { type: "string", default: "1" },
  },
});
const watchers = Number(args.watchers);
const streams = Number(args.streams);
const events = Number(args.events);
const writers = 32;
const value = Buffer.alloc(100, "v");

interface Case {
  readonly name: string;
  /** Watchers that one put reaches. */
  readonly reach: number;
  watch(index: number): Partial<WatchCreateRequest>;
  /** The key of the put with this number. */
  key(index: number): string;
}

const prefixes = 100;
const cases: readonly Case[] = [
  { name: "all on one key", reach: watchers, watch: () => ({ key: fromUtf8("key") }), key: () => "key" },
  { name: "each on its own key", reach: 1, watch: (i) => ({ key: fromUtf8(`key/${i}`) }), key: (i) => `key/${i % watchers}` },
  {
    name: `${watchers / prefixes} on each of ${prefixes} prefixes`,
    reach: watchers / prefixes,
    watch: (i) => ({ key: fromUtf8(`${100 + (i % prefixes)}/`), rangeEnd: fromUtf8(`${100 + (i % prefixes)}0`) }),
    key: (i) => `${100 + (i % prefixes)}/${i}`,
  },
];

async function measure(executable: Executable, one: Case): Promise<void> {
  const cluster = await startCluster({ executable, size: 1 });
  const clients: WatchClient[] = [];
  const kv = new TestClient(cluster.members[0]!.clientAddress);
  try {
    const pids = [cluster.members[0]!.pid!];
    let counted = 0;
    let done: () => void = () => {};
    const puts = Math.min(Math.ceil(events / one.reach), 20_000);
    const due = puts * one.reach;
    for (let i = 0; i < streams; i++) clients.push(new WatchClient(cluster.members[0]!.clientAddress));
    // The streams stand before the memory is looked at: their watchers are what is asked.
    for (const client of clients) {
      client.create({ key: fromUtf8("first") });
      await client.take(1);
    }
    const before = residentBytes(pids);
    for (let i = 0; i < watchers; i++) clients[i % streams]!.create(one.watch(i));
    for (const [i, client] of clients.entries()) await client.take(Math.ceil((watchers - i) / streams));
    const bytes = (residentBytes(pids) - before) / watchers;
    for (const client of clients) {
      client.onResponse = (response) => {
        counted += response.events.length;
        if (counted >= due) done();
      };
    }
    const all = new Promise<void>((resolve) => {
      done = resolve;
    });
    const cpuBefore = cpuSeconds(pids);
    const startMs = performance.now();
    let next = 0;
    const write = async (): Promise<void> => {
      while (next < puts) await kv.call(KVService.methods.Put, { key: fromUtf8(one.key(next++)), value }, 60_000);
    };
    await Promise.all(Array.from({ length: writers }, write));
    const writtenMs = performance.now() - startMs;
    await all;
    const tookS = (performance.now() - startMs) / 1000;
    const cpuS = cpuSeconds(pids) - cpuBefore;
    console.log(
      `${executable.name}, ${one.name}: ${bytes.toFixed(0)} bytes a watcher, ${due} events of ${puts} puts in ${tookS.toFixed(2)} s ` +
        `(written after ${(writtenMs / 1000).toFixed(2)} s): ${(due / tookS).toFixed(0)} a second, ` +
        `${((cpuS / due) * 1e6).toFixed(2)} CPU microseconds an event, ${(residentBytes(pids) / 2 ** 20).toFixed(0)} MiB at the end`,
    );
  } finally {
    for (const client of clients) client.close();
    kv.close();
    await cluster.destroy();
  }
}

for (let round = 0; round < Number(args.rounds); round++) {
  for (const one of cases) {
    for (const executable of [quorate, etcd]) if (executable !== undefined) await measure(executable, one);
  }
}
