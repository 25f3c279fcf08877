/**
 * ./dev bench storm: what a crowd of TLS clients that connect at once costs the puts of others.
 * Members of ours without and with front-end threads, and of etcd, in turn; puts at a fixed rate,
 * and in every second row a crowd, whose handshakes another thread of this process makes. With
 * --attacks it is another thread that attacks (attacks.ts), with one row for each attack.
 */

import { connect, createSecureContext, type TLSSocket } from "node:tls";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { ClientIdentity } from "../scripts/cluster/health.ts";
import { count, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import { type Executable, etcd, quorate } from "../test/support/executables.ts";
import { attacks } from "./attacks.ts";
import { leaderUrl } from "./calls.ts";
import { runCount } from "./load.ts";
import { type PacedResult, runPaced } from "./paced.ts";
import { align } from "./report.ts";
import { ground, preparation, rows } from "./rows.ts";

const WARM_UP_MS = 2000;
/** The crowd comes a second after the measuring begins. */
const CROWD_AFTER_MS = 1000;

interface Crowd {
  readonly urls: readonly string[];
  readonly clients: number;
  readonly identity: ClientIdentity;
}

/** Connects all clients at once, and reports how many handshakes ended, and how long all took. */
async function runCrowd({ urls, clients, identity }: Crowd): Promise<void> {
  const sockets: TLSSocket[] = [];
  // One for all: the crowd is to make handshakes, and each context takes half a millisecond.
  const { ca = "", cert = "", key = "" } = identity;
  const secureContext = createSecureContext({ ca, cert, key });
  const startMs = performance.now();
  let connected = 0;
  const one = (index: number): Promise<void> =>
    new Promise((resolve) => {
      const { hostname: host, port } = new URL(urls[index % urls.length]);
      const socket = connect({
        host,
        port: Number(port),
        ALPNProtocols: ["h2"],
        secureContext,
      });
      sockets.push(socket);
      socket.once("secureConnect", () => {
        connected++;
        resolve();
      });
      socket.on("error", () => resolve());
    });
  await Promise.all(Array.from({ length: clients }, (_, index) => one(index)));
  parentPort!.postMessage({ connected, tookMs: performance.now() - startMs });
  for (const socket of sockets) socket.destroy();
}

interface Attackers {
  readonly url: string;
  readonly identity: ClientIdentity | undefined;
  readonly attack: string;
  readonly durationMs: number;
}

/** Attacks for a while, and reports how often it was done. */
async function runAttack({ url, identity, attack, durationMs }: Attackers): Promise<void> {
  const endMs = performance.now() + durationMs;
  const isOver = (): boolean => performance.now() >= endMs;
  const done = await attacks[attack].run({ url: new URL(url), identity, isOver });
  parentPort!.postMessage(done);
  process.exit();
}

interface Outcome {
  readonly connected: number;
  readonly tookMs: number;
}

function inThread<T>(data: Crowd | Attackers): Promise<T> {
  const worker = new Worker(new URL(import.meta.url), { workerData: data });
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

const HEAD = "members;crowd;put p50 ms;p99;worst;connected;in s;leader stays".split(";");

function lineOf(name: string, result: PacedResult, crowd: Outcome | undefined, isSame: boolean) {
  return [
    name,
    crowd === undefined ? "no" : "yes",
    ...[result.p50Ms, result.p99Ms, result.longestMs].map((ms) => ms.toFixed(1)),
    crowd === undefined ? "" : String(crowd.connected),
    crowd === undefined ? "" : (crowd.tookMs / 1000).toFixed(1),
    isSame ? "yes" : "no",
  ];
}

interface Subject {
  readonly name: string;
  readonly executable: Executable;
  readonly flags: readonly string[];
}

interface Settings {
  readonly size: number;
  readonly clients: number;
  readonly ratePerS: number;
  readonly durationMs: number;
}

/** Runs puts at a rate for a while, beside which others do what they do. */
type Puts = () => Promise<PacedResult>;

async function withPuts<T>(
  { executable, flags }: Subject,
  { size, ratePerS, durationMs }: Settings,
  tls: boolean,
  body: (cluster: TestCluster, puts: Puts) => Promise<T>,
): Promise<T> {
  const cluster = await startCluster({ executable, size, tls, flags });
  try {
    const ready = ground(
      { urls: cluster.endpoints, identity: cluster.identity },
      await leaderUrl(cluster),
      10_000,
      256,
      1,
    );
    const { load, count: calls } = preparation(ready);
    await runCount(load, calls);
    const row = rows.find((one) => one.name.startsWith("put random, 100 "))!;
    return await body(cluster, () =>
      runPaced(row.load(ready), { ratePerS, warmUpMs: WARM_UP_MS, durationMs }),
    );
  } finally {
    await cluster.destroy();
  }
}

function measure(subject: Subject, settings: Settings): Promise<string[][]> {
  const { clients } = settings;
  return withPuts(subject, settings, true, async (cluster, puts) => {
    const lines: string[][] = [];
    for (const hasCrowd of [false, true]) {
      const before = await leaderUrl(cluster);
      const paced = puts();
      const crowd = hasCrowd ? crowdLater(cluster, clients) : Promise.resolve(undefined);
      const [result, outcome] = await Promise.all([paced, crowd]);
      lines.push(lineOf(subject.name, result, outcome, before === (await leaderUrl(cluster))));
      console.error(lines.at(-1)!.join("  "));
    }
    return lines;
  });
}

const ATTACK_HEAD = "members;attack;done/s;put p50 ms;p99;worst;failed".split(";");

async function measureAttacks(
  subject: Subject,
  settings: Settings,
  wanted: string,
): Promise<string[][]> {
  const lines: string[][] = [];
  for (const tls of [false, true]) {
    const names = Object.keys(attacks).filter(
      (name) => (attacks[name].tls ?? false) === tls && (wanted === "all" || name.includes(wanted)),
    );
    if (names.length === 0) continue;
    await withPuts(subject, settings, tls, async ({ endpoints, identity }, puts) => {
      const durationMs = WARM_UP_MS + settings.durationMs;
      for (const attack of [undefined, ...names]) {
        const data = { url: endpoints[0], identity, attack: attack ?? "", durationMs };
        const attacker = attack === undefined ? Promise.resolve(0) : inThread<number>(data);
        const [result, done] = await Promise.all([puts(), attacker]);
        lines.push([
          subject.name,
          attack ?? (tls ? "none, TLS" : "none"),
          (done / (durationMs / 1000)).toFixed(0),
          ...[result.p50Ms, result.p99Ms, result.longestMs].map((ms) => ms.toFixed(1)),
          String(result.failed + result.missed),
        ]);
        console.error(lines.at(-1)!.join("  "));
      }
    });
  }
  return lines;
}

async function crowdLater(cluster: TestCluster, clients: number): Promise<Outcome> {
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS + CROWD_AFTER_MS));
  return inThread({ urls: cluster.endpoints, clients, identity: cluster.identity! });
}

async function main(): Promise<void> {
  const help = "./dev bench storm [OPTIONS]: a crowd of TLS clients, and the puts of others";
  const { values: args } = readArguments(help, {
    size: valueOption("members of each", "3"),
    clients: valueOption("of the crowd", "2000"),
    puts: valueOption("puts a second", "1000"),
    threads: valueOption("front-end threads of our members", "0,2"),
    attacks: valueOption("in the place of the crowd the attacks whose names contain it, or all"),
    seconds: valueOption("of each row", "8"),
  });
  const subjects: Subject[] = args.threads.split(",").map((threads) => ({
    name: `quorate, ${threads} front-ends`,
    executable: quorate,
    flags: [`--frontend-threads=${threads}`],
  }));
  if (etcd !== undefined) subjects.push({ name: "etcd", executable: etcd, flags: [] });
  const settings: Settings = {
    size: count("size", args.size),
    clients: count("clients", args.clients),
    ratePerS: count("puts", args.puts),
    durationMs: 1000 * count("seconds", args.seconds),
  };
  const lines: string[][] = [];
  const wanted = args.attacks;
  for (const subject of subjects)
    lines.push(
      ...(wanted === undefined
        ? await measure(subject, settings)
        : await measureAttacks(subject, settings, wanted)),
    );
  console.log(align([wanted === undefined ? HEAD : ATTACK_HEAD, ...lines], [0, 1, 7]));
}

if (isMainThread) await main();
else if ("attack" in workerData) await runAttack(workerData as Attackers);
else await runCrowd(workerData as Crowd);
