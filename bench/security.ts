/**
 * ./dev bench security: what users, roles and the audit log cost. One member of ours and of
 * etcd's, put, get and txn by 1000 clients, in each of these settings:
 *
 *     open           no users and roles
 *     simple, jwt    every call has a token of a user with a role for these keys
 *     certificate    the common name of the client's certificate is the user (TLS)
 *     audit          as open, with --audit-log (ours alone); "audit request": --audit-level=request
 *
 * The settings take turns within a round, so that what else the machine does meets all of them.
 */

import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { count, readArguments, valueOption } from "../scripts/dev/command-line.ts";
import { AuthClient, enableAuth } from "../test/support/auth.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import type { Executable } from "../test/support/executables.ts";
import type { Target } from "./calls.ts";
import { comparison, inTurn, programsOf } from "./comparison.ts";
import { runCount, runLoad } from "./load.ts";
import { align, median } from "./report.ts";
import { type Ground, ground, preparation, rows } from "./rows.ts";
import { cpuSeconds } from "./usage.ts";

const help = `./dev bench security [OPTIONS]: what users, roles and the audit log cost, ours and etcd's in turn`;

const { values: args } = readArguments(help, {
  ...comparison,
  seconds: { ...comparison.seconds, default: "3" },
  settings: valueOption('only settings whose names hold one of these texts, parted by ";"', ""),
  loads: valueOption('only loads whose names hold one of these texts, parted by ";"', ""),
});

const WARM_UP_MS = 1500;
const KEYS = 10_000;
const VALUE_BYTES = 256;
const USER = "ann";
/** The common name of the clusters' client certificate. */
const CERTIFICATE_USER = "client";

interface Setting {
  readonly name: string;
  readonly tls: boolean;
  /** Flags for a directory of its own. */
  flags(dir: string): string[];
  /** How a client of this setting comes; undefined: no users and roles. */
  readonly proof: "token" | "certificate" | undefined;
  readonly oursAlone?: boolean;
}

function jwtFlags(dir: string): string[] {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const [priv, pub] = [join(dir, "priv.pem"), join(dir, "pub.pem")];
  writeFileSync(priv, privateKey.export({ type: "pkcs8", format: "pem" }));
  writeFileSync(pub, publicKey.export({ type: "spki", format: "pem" }));
  return [`--auth-token=jwt,pub-key=${pub},priv-key=${priv},sign-method=ES256,ttl=1h`];
}

const auditFlag = (dir: string): string => `--audit-log=${join(dir, "audit.log")}`;

const settings: readonly Setting[] = [
  { name: "open", tls: false, flags: () => [], proof: undefined },
  { name: "simple", tls: false, flags: () => [], proof: "token" },
  { name: "jwt", tls: false, flags: jwtFlags, proof: "token" },
  { name: "open, TLS", tls: true, flags: () => [], proof: undefined },
  { name: "certificate, TLS", tls: true, flags: () => [], proof: "certificate" },
  {
    name: "audit",
    tls: false,
    flags: (dir) => [auditFlag(dir)],
    proof: undefined,
    oursAlone: true,
  },
  {
    name: "audit request",
    tls: false,
    flags: (dir) => [auditFlag(dir), "--audit-level=request"],
    proof: undefined,
    oursAlone: true,
  },
];

const loadNames = ["put random, 1000", "get linearizable, 1000", "txn compare and put, 1000"];

const isChosen = (text: string, name: string): boolean =>
  text === "" || text.split(";").some((one) => name.includes(one));

interface Figure {
  readonly program: string;
  readonly setting: string;
  readonly load: string;
  readonly ratePerS: number;
  readonly cpuUsPerCall: number;
}

/** Users and roles, where the setting has them, and a client's way in. */
async function prepare(cluster: TestCluster, { proof }: Setting): Promise<Target> {
  const target = { urls: cluster.endpoints, identity: cluster.identity };
  if (proof === undefined) return target;
  const client = new AuthClient(cluster.members[0].clientAddress, cluster.identity);
  try {
    const user = proof === "token" ? USER : CERTIFICATE_USER;
    await enableAuth(client, { [user]: [["\0", "\0", "readwrite"]] });
    if (proof === "token") return { ...target, token: await client.login(user) };
    return target;
  } finally {
    client.close();
  }
}

async function measure(program: Executable, setting: Setting, figures: Figure[]): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-bench-"));
  const flags = [...setting.flags(dir), "--bcrypt-cost=4"];
  const cluster = await startCluster({ executable: program, size: 1, tls: setting.tls, flags });
  try {
    const target = await prepare(cluster, setting);
    const ready: Ground = ground(target, cluster.endpoints[0], KEYS, VALUE_BYTES, 1);
    const { load, count: calls } = preparation(ready);
    await runCount(load, calls);
    const pids = cluster.members.map(({ pid }) => pid!);
    for (const name of loadNames.filter((one) => isChosen(args.loads, one))) {
      const row = rows.find((one) => one.name.startsWith(name))!;
      let [from, to] = [0, 0];
      const result = await runLoad(row.load(ready), {
        warmUpMs: WARM_UP_MS,
        durationMs: count("seconds", args.seconds) * 1000,
        onPhase: (phase) => {
          if (phase === "measure") from = cpuSeconds(pids);
          else to = cpuSeconds(pids);
        },
      });
      if (result.failed > 0) throw new Error(`${setting.name}, ${name}: ${result.failed} failed`);
      const figure: Figure = {
        program: program.name,
        setting: setting.name,
        load: name,
        ratePerS: (result.answered * 1000) / result.elapsedMs,
        cpuUsPerCall: ((to - from) * 1e6) / result.answered,
      };
      figures.push(figure);
      console.error(
        `${figure.program}, ${figure.setting}, ${figure.load}: ${Math.round(figure.ratePerS)} per s, ` +
          `${figure.cpuUsPerCall.toFixed(1)} us`,
      );
    }
  } catch (error) {
    console.error(cluster.logTails());
    throw error;
  } finally {
    await cluster.destroy();
    rmSync(dir, { recursive: true });
  }
}

function table(figures: readonly Figure[]): string {
  const programs = [...new Set(figures.map(({ program }) => program))];
  const lines = [["load", "setting", ...programs.flatMap((one) => [`${one}, per s`, "us CPU"])]];
  for (const load of loadNames) {
    for (const { name: setting } of settings) {
      const cells = programs.flatMap((program) => {
        const own = figures.filter(
          (one) => one.program === program && one.load === load && one.setting === setting,
        );
        if (own.length === 0) return ["", ""];
        return [
          String(Math.round(median(own.map(({ ratePerS }) => ratePerS)))),
          median(own.map(({ cpuUsPerCall }) => cpuUsPerCall)).toFixed(1),
        ];
      });
      if (cells.some((cell) => cell !== "")) lines.push([load, setting, ...cells]);
    }
  }
  return align(lines, [0, 1]);
}

const figures: Figure[] = [];
const programs = programsOf(args.only);
const rounds = count("rounds", args.rounds);
for (let round = 0; round < rounds; round++) {
  for (const setting of settings.filter(({ name }) => isChosen(args.settings, name))) {
    for (const program of inTurn(programs, round)) {
      if (program.name === "etcd" && setting.oursAlone === true) continue;
      await measure(program, setting, figures);
    }
  }
}
console.log(table(figures));
