/**
 * ./dev bench logins: how much a stream of logins delays other clients' puts. One member of ours
 * and of etcd's in turn, puts at a fixed rate with a token, and in every second round logins at
 * another, for each cost of a password's hash.
 */
import { AuthService, GrpcCode } from "@quorate/proto";
import { count, readArguments } from "../scripts/dev/command-line.ts";
import { AuthClient, enableAuth, PASSWORD } from "../test/support/auth.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import type { Executable } from "../test/support/executables.ts";
import { comparison, inTurn, programsOf } from "./comparison.ts";
import { runCount } from "./load.ts";
import { type PacedResult, runPaced } from "./paced.ts";
import { align, median } from "./report.ts";
import { ground, preparation, rows } from "./rows.ts";

const help = `./dev bench logins [OPTIONS]: what logins cost other clients' puts, ours and etcd's in turn`;

const { values: args } = readArguments(help, {
  ...comparison,
  puts: {
    type: "string",
    default: "10000",
    requiresArg: true,
    describe: "puts a second, 10000 by default",
  },
  logins: {
    type: "string",
    default: "200",
    requiresArg: true,
    describe: "logins a second, 200 by default",
  },
  costs: {
    type: "string",
    default: "4,10",
    requiresArg: true,
    describe: `costs of a password's hash, "4,10" by default`,
  },
});

const WARM_UP_MS = 1500;
const USER = "ann";
/** Logins that may be open at once; more are not sent. */
const MAX_OPEN_LOGINS = 400;
const LOGIN_CONNECTIONS = 8;

interface Logins {
  stop(): Promise<{ readonly succeeded: number; readonly failed: number }>;
}

/** Logs in so many times a second until it is stopped. */
function startLogins(cluster: TestCluster, perS: number): Logins {
  const { Authenticate } = AuthService.methods;
  const clients = Array.from(
    { length: LOGIN_CONNECTIONS },
    () => new AuthClient(cluster.members[0].clientAddress, cluster.identity),
  );
  const open = new Set<Promise<void>>();
  let [succeeded, failed, next] = [0, 0, 0];
  const startMs = performance.now();
  const timer = setInterval(() => {
    const due = ((performance.now() - startMs) * perS) / 1000;
    for (; next < due; next++) {
      if (open.size >= MAX_OPEN_LOGINS) continue;
      const client = clients[next % clients.length];
      const login = client
        .try(Authenticate, { name: USER, password: PASSWORD })
        .then(({ code }) => {
          if (code === GrpcCode.OK) succeeded++;
          else failed++;
        });
      open.add(login);
      void login.finally(() => open.delete(login));
    }
  }, 5);
  return {
    async stop() {
      clearInterval(timer);
      const sofar = { succeeded, failed };
      for (const client of clients) client.close();
      await Promise.allSettled(open);
      return sofar;
    },
  };
}

interface Figure extends PacedResult {
  readonly program: string;
  readonly cost: string;
  readonly hasLogins: boolean;
  readonly loginsPerS: number;
}

async function measure(program: Executable, cost: string, figures: Figure[]): Promise<void> {
  const flags = [`--bcrypt-cost=${cost}`];
  const cluster = await startCluster({ executable: program, size: 1, flags });
  const client = new AuthClient(cluster.members[0].clientAddress, cluster.identity);
  const durationMs = count("seconds", args.seconds) * 1000;
  try {
    await enableAuth(client, { [USER]: [["\0", "\0", "readwrite"]] });
    const target = { urls: cluster.endpoints, identity: cluster.identity };
    const withToken = { ...target, token: await client.login(USER) };
    const ready = ground(withToken, cluster.endpoints[0], 10_000, 256, 1);
    const { load, count: calls } = preparation(ready);
    await runCount(load, calls);
    const row = rows.find((one) => one.name.startsWith("put random, 1000"))!;
    for (const hasLogins of [false, true]) {
      const startMs = performance.now();
      const logins = hasLogins ? startLogins(cluster, count("logins", args.logins)) : undefined;
      const ratePerS = count("puts", args.puts);
      const result = await runPaced(row.load(ready), {
        ratePerS,
        warmUpMs: WARM_UP_MS,
        durationMs,
      });
      const seconds = (performance.now() - startMs) / 1000;
      const done = await logins?.stop();
      const loginsPerS = (done?.succeeded ?? 0) / seconds;
      figures.push({ ...result, program: program.name, cost, hasLogins, loginsPerS });
      console.error(
        `${program.name}, cost ${cost}, ${hasLogins ? `${loginsPerS.toFixed(0)} logins/s (${done!.failed} failed)` : "no logins"}: ` +
          `p50 ${result.p50Ms.toFixed(1)}, p99 ${result.p99Ms.toFixed(1)}, p99.9 ${result.p999Ms.toFixed(1)} ms, ` +
          `${result.missed} missed, ${result.failed} failed`,
      );
    }
  } catch (error) {
    console.error(cluster.logTails());
    throw error;
  } finally {
    client.close();
    await cluster.destroy();
  }
}

const COLUMNS = ["p50Ms", "p99Ms", "p999Ms", "longestMs", "loginsPerS", "missed"] as const;

function table(figures: readonly Figure[]): string {
  const lines = [["program", "cost", "logins", ...COLUMNS]];
  const groups = Map.groupBy(
    figures,
    ({ program, cost, hasLogins }) => `${program}\t${cost}\t${hasLogins ? "yes" : "no"}`,
  );
  for (const [name, own] of groups) {
    const cells = COLUMNS.map((column) => median(own.map((one) => one[column])).toFixed(1));
    lines.push([...name.split("\t"), ...cells]);
  }
  return align(lines, [0, 1, 2]);
}

const figures: Figure[] = [];
const programs = programsOf(args.only);
for (let round = 0; round < count("rounds", args.rounds); round++) {
  for (const cost of args.costs.split(",")) {
    for (const program of inTurn(programs, round)) await measure(program, cost, figures);
  }
}
console.log(table(figures));
