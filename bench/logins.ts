/**
 * ./dev bench logins: how much a stream of logins delays other clients' puts. One member of ours
 * and of etcd's in turn, puts at a fixed rate with a token, and in every second round logins at
 * another, for each cost of a password's hash. On one busy processor, puts left out:
 *
 *   taskset -c 0 ./dev bench logins --puts 0 --costs 10 --busy 2
 */

import { spawn } from "node:child_process";
import { fromUtf8 } from "@quorate/proto";
import { count, positive, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { AuthClient, enableAuth, PASSWORD } from "../test/support/auth.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import type { Executable } from "../test/support/executables.ts";
import { loginTemplate, type Target, UnaryLoad } from "./calls.ts";
import { comparison, inTurn, programsOf } from "./comparison.ts";
import { runCount, runLoad } from "./load.ts";
import { type PacedResult, runPaced } from "./paced.ts";
import { align, median } from "./report.ts";
import { ground, preparation, rows } from "./rows.ts";

const help = `./dev bench logins [OPTIONS]: what logins cost other clients' puts, ours and etcd's in turn`;

const { values: args } = readArguments(help, {
  ...comparison,
  puts: valueOption(
    "puts a second, 10000 by default; 0: none, and logins one after the other",
    "10000",
  ),
  logins: valueOption("logins a second, 200 by default", "200"),
  users: valueOption("users that log in in turn, 1 by default", "1"),
  costs: valueOption(`costs of a password's hash, "4,10" by default`, "4,10"),
  busy: valueOption("processes beside it that do nothing but compute, 0 by default", "0"),
});

const WARM_UP_MS = 1500;
/** The user that puts. */
const WRITER = "writer";
/** Logins that may be open at once; more are not sent. */
const MAX_OPEN_LOGINS = 400;
const LOGIN_CONNECTIONS = 8;
const putsPerS = args.puts === "0" ? 0 : count("puts", args.puts);
const userNames: readonly string[] = Array.from({ length: count("users", args.users) }, (_, i) =>
  String(i).padStart(6, "0"),
);

/** Milliseconds; of what there was none, NaN. */
interface Figure {
  readonly program: string;
  readonly cost: string;
  readonly logins: "no" | "yes";
  readonly putP50: number;
  readonly putP99: number;
  readonly putP999: number;
  readonly missed: number;
  readonly loginsPerS: number;
  readonly loginP50: number;
  readonly loginP99: number;
}

const COLUMNS = [
  "putP50",
  "putP99",
  "putP999",
  "missed",
  "loginsPerS",
  "loginP50",
  "loginP99",
] as const;

/** Logins of all users in turn. */
function loginLoad(target: Target, clients: number): UnaryLoad {
  const template = loginTemplate(userNames[0], PASSWORD);
  const steps = userNames.map((name) => ({ template, key: fromUtf8(name), revisions: 0 as const }));
  let next = 0;
  const connections = Math.min(clients, LOGIN_CONNECTIONS);
  return new UnaryLoad(target, clients, connections, () => steps[next++ % steps.length]);
}

async function addUsers(cluster: TestCluster): Promise<Target> {
  const client = new AuthClient(cluster.members[0].clientAddress, cluster.identity);
  const target = { urls: cluster.endpoints, identity: cluster.identity };
  try {
    const users = Object.fromEntries(userNames.map((name) => [name, []]));
    await enableAuth(client, { ...users, [WRITER]: [["\0", "\0", "readwrite"]] });
    return { ...target, token: await client.login(WRITER) };
  } finally {
    client.close();
  }
}

async function measure(program: Executable, cost: string, figures: Figure[]): Promise<void> {
  const flags = [`--bcrypt-cost=${cost}`];
  const cluster = await startCluster({ executable: program, size: 1, flags });
  const seconds = positive("seconds", args.seconds);
  const times = { warmUpMs: WARM_UP_MS, durationMs: seconds * 1000 };
  const note = (puts?: PacedResult, logins?: Pick<PacedResult, "answered" | "p50Ms" | "p99Ms">) => {
    const figure: Figure = {
      program: program.name,
      cost,
      logins: logins === undefined ? "no" : "yes",
      putP50: puts?.p50Ms ?? Number.NaN,
      putP99: puts?.p99Ms ?? Number.NaN,
      putP999: puts?.p999Ms ?? Number.NaN,
      missed: puts?.missed ?? Number.NaN,
      loginsPerS: (logins?.answered ?? Number.NaN) / seconds,
      loginP50: logins?.p50Ms ?? Number.NaN,
      loginP99: logins?.p99Ms ?? Number.NaN,
    };
    figures.push(figure);
    console.error(
      COLUMNS.reduce((line, name) => `${line} ${name} ${figure[name].toFixed(1)}`, figure.program),
    );
  };
  try {
    const withToken = await addUsers(cluster);
    const anonymous = { ...withToken, token: undefined };
    if (putsPerS === 0) return note(undefined, await runLoad(loginLoad(anonymous, 1), times));
    const ready = ground(withToken, cluster.endpoints[0], 10_000, 256, 1);
    const { load, count: calls } = preparation(ready);
    await runCount(load, calls);
    const row = rows.find((one) => one.name.startsWith("put random, 1000"))!;
    const puts = () => runPaced(row.load(ready), { ...times, ratePerS: putsPerS });
    note(await puts());
    const logins = { ...times, ratePerS: count("logins", args.logins) };
    note(...(await Promise.all([puts(), runPaced(loginLoad(anonymous, MAX_OPEN_LOGINS), logins)])));
  } catch (error) {
    console.error(cluster.logTails());
    throw error;
  } finally {
    await cluster.destroy();
  }
}

function table(figures: readonly Figure[]): string {
  const lines = [["program", "cost", "logins", ...COLUMNS]];
  const groups = Map.groupBy(
    figures,
    ({ program, cost, logins }) => `${program}\t${cost}\t${logins}`,
  );
  for (const [name, own] of groups) {
    const cells = COLUMNS.map((column) => median(own.map((one) => one[column])).toFixed(1));
    lines.push([...name.split("\t"), ...cells]);
  }
  return align(lines, [0, 1, 2]);
}

const figures: Figure[] = [];
const programs = programsOf(args.only);
const busy = Array.from({ length: Number(args.busy) }, () =>
  spawn(process.execPath, ["--eval", "for (;;);"]),
);
try {
  for (let round = 0; round < count("rounds", args.rounds); round++) {
    for (const cost of args.costs.split(",")) {
      for (const program of inTurn(programs, round)) await measure(program, cost, figures);
    }
  }
} finally {
  for (const process of busy) process.kill();
}
console.log(table(figures));
