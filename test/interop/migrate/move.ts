/**
 * A running cluster of etcd goes to Quorate by `quoratectl migrate`, and back, under load. etcd's
 * own checks for corruption are on all the time.
 *
 *     m0 m1 m2   etcd of the release   -->   q0 q1 q2   Quorate   -->   e0 e1 e2   the newest etcd,
 *                                                                       at the URLs of m0 m1 m2
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { type ClientOptions, connect } from "@quorate/client";
import { AuthClient, CHEAP_LOGINS, enableAuth, PASSWORD } from "../../support/auth.ts";
import { bundledProgram } from "../../support/bundled.ts";
import { endsWithUs } from "../../support/children.ts";
import { type TestCluster, withCluster } from "../../support/cluster.ts";
import { etcdNewest, etcdOf, memberUnderTest } from "../../support/executables.ts";
import type { TestMember } from "../../support/member.ts";

const QUORATECTL = [process.execPath, join(import.meta.dirname, "../../../bin/quoratectl.js")];
const USER = "app";
/** A move that takes as long has failed. */
const WAIT_LIMIT = "20m";

export type Release = "3.5" | "3.6" | "3.7";

export interface MoveOptions {
  readonly release: Release;
  /** Mutual TLS for clients and peers. */
  readonly tls: boolean;
  /** Whether users are on: the load is one that may do little, the move is root's. */
  readonly users: boolean;
  /** Whether each move is planned first, and begun while nobody starts members. */
  readonly rehearsed: boolean;
  /** Seconds between the end of a move and what follows. */
  readonly restSeconds: number;
  /** What is to be seen of the move. */
  readonly log: (line: string) => void;
}

/** Prints lines with the seconds since this call. */
export function timedLines(): (line: string) => void {
  const beginMs = performance.now();
  return (line) => {
    const seconds = ((performance.now() - beginMs) / 1000).toFixed(1);
    console.log(`${seconds.padStart(6)} s  ${line}`);
  };
}

/** What runs while members are replaced. */
export interface Load {
  /** Rejects where something was lost. Resolves with the figures. */
  judge(): Promise<string>;
  close(): Promise<void>;
}

/** What a load is made from. */
export interface Surroundings {
  readonly cluster: TestCluster;
  /** How to connect as the user of the load. */
  readonly client: ClientOptions & { readonly endpoints: readonly string[] };
  readonly administrator: ClientOptions["auth"];
}

/** Flags that turn etcd's checks for corruption on, all of them. */
export function corruptionChecks(release: Release): string[] {
  if (release === "3.5")
    return [
      "--experimental-initial-corrupt-check",
      "--experimental-corrupt-check-time=10s",
      "--experimental-compact-hash-check-enabled",
      "--experimental-compact-hash-check-time=5s",
    ];
  return [
    "--feature-gates=InitialCorruptCheck=true,CompactHashCheck=true",
    "--corrupt-check-time=10s",
    "--compact-hash-check-time=5s",
  ];
}

/** Starts members when their variables appear in the directory, until it is stopped. */
function starter(dir: string, members: readonly TestMember[]) {
  let isStopped = false;
  const done = (async () => {
    for (const member of members) {
      const file = join(dir, member.name);
      while (!isStopped && !existsSync(file)) await delay(20);
      if (isStopped) return;
      const initial = readFileSync(file, "utf8").trim();
      member.start([`--initial-cluster=${initial}`, "--initial-cluster-state=existing"]);
    }
  })();
  return {
    stop(): Promise<void> {
      isStopped = true;
      return done;
    },
  };
}

/** What quoratectl printed and how it ended. */
interface Printed {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Move {
  readonly #cluster: TestCluster;
  readonly #options: MoveOptions;
  readonly #connection: readonly string[];

  constructor(cluster: TestCluster, options: MoveOptions) {
    this.#cluster = cluster;
    this.#options = options;
    const { certs } = cluster;
    this.#connection = [
      ...(certs === undefined
        ? []
        : [`--cacert=${certs.ca}`, `--cert=${certs.client}`, `--key=${certs.clientKey}`]),
      ...(options.users ? [`--user=root:${PASSWORD}`] : []),
    ];
  }

  /** Runs `quoratectl migrate` to the members, with further flags. */
  async migrate(
    to: "quorate" | "etcd",
    members: readonly TestMember[],
    ...flags: readonly string[]
  ): Promise<Printed> {
    const { log } = this.#options;
    const command = [
      ...(bundledProgram("quoratectl") ?? QUORATECTL),
      "migrate",
      ...this.#connection,
      `--endpoints=${this.#cluster.members.map((member) => member.clientUrl).join(",")}`,
      `--to=${to}`,
      ...members.map((member) => `--member=${member.name}=${member.options.peerUrl}`),
      ...flags,
    ];
    const child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
    endsWithUs(child);
    const collect = async (stream: Readable): Promise<string> => {
      let text = "";
      for await (const line of createInterface({ input: stream })) {
        text += `${line}\n`;
        log(line);
      }
      return text;
    };
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    const [code, stdout, stderr] = await Promise.all([
      ended,
      collect(child.stdout),
      collect(child.stderr),
    ]);
    return { code, stdout, stderr };
  }

  /** The plan; then the move as far as it goes while nobody starts a member. */
  async #rehearse(to: "quorate" | "etcd", members: readonly TestMember[]): Promise<void> {
    const { certs, dir } = this.#cluster;
    const checked = certs && [
      `--peer-cert-file=${certs.peer}`,
      `--peer-key-file=${certs.peerKey}`,
      `--data-dir=${dir}`,
    ];
    const flags = ["--dry-run", ...(checked ?? [])];
    const dry = await this.migrate(to, members, ...flags);
    assert.equal(dry.code, 0, dry.stderr);
    assert.doesNotMatch(dry.stderr, /not examined/);
    const elsewhere = await this.migrate(to, [], ...flags, "--member=x=https://elsewhere:2380");
    assert.equal(elsewhere.code, 1);
    assert.match(elsewhere.stderr, /is not for the host of https:\/\/elsewhere:2380/);
    assert.match(dry.stdout, /The plan, to .*13\. remove .*14\. done/s);
    // It prints what to start, and gives up waiting; the next run goes on from there.
    const alone = await this.migrate(to, members, "--wait-timeout=6s");
    assert.equal(alone.code, 1);
    assert.match(
      alone.stdout,
      new RegExp(`Start ${members[0]!.name} with ${to} and these variables`),
    );
    assert.match(alone.stdout, /Besides, give \w+ an empty --data-dir/);
    assert.match(alone.stderr, /gave up waiting: .*run the same command again to continue/);
  }

  /** Replaces all members. Resolves with the seconds that it took. */
  async replaceAll(to: "quorate" | "etcd", members: readonly TestMember[]): Promise<number> {
    const cluster = this.#cluster;
    const dir = join(cluster.dir, `to-${to}`);
    mkdirSync(dir);
    const old = [...cluster.members];
    if (this.#options.rehearsed) await this.#rehearse(to, members);
    const beginMs = performance.now();
    const starting = starter(dir, members);
    try {
      // The file is complete or not there.
      const start = `echo "$ETCD_INITIAL_CLUSTER" > ${dir}/new && mv ${dir}/new ${dir}/$ETCD_NAME`;
      const flags = [`--start=${start}`, `--wait-timeout=${WAIT_LIMIT}`];
      const { code, stdout, stderr } = await this.migrate(to, members, ...flags);
      assert.equal(code, 0, `${stdout}\n${stderr}`);
      assert.match(stdout, /promote \w+ when it has caught up: done\. 4 members are equal at/);
      assert.match(stdout, /All members are of \w+: 3 are equal at revision \d+\./);
      assert.equal(stdout.match(/ends by itself now\. Keep it from starting again/g)?.length, 3);
      const urls = members.map((member) => member.clientUrl).sort();
      const shown = /--etcd-servers=(\S+)/.exec(stdout)?.[1]?.split(",");
      assert.deepEqual(shown?.sort(), urls);
    } finally {
      await starting.stop();
    }
    cluster.members.splice(0, old.length, ...members);
    for (const member of old) await member.exited;
    return (performance.now() - beginMs) / 1000;
  }
}

/** The members in the order in which they come. */
export interface Moving {
  readonly move: Move;
  readonly before: readonly TestMember[];
  readonly middle: readonly TestMember[];
  readonly after: readonly TestMember[];
}

/**
 * Runs a cluster of etcd with members to come, and `body` on it.
 */
export async function withMove<T>(
  options: MoveOptions,
  body: (moving: Moving, surroundings: Surroundings) => Promise<T>,
): Promise<T> {
  const { release, tls, users } = options;
  const executable = release === "3.7" ? etcdNewest! : etcdOf(release)!;
  const flagsOf = (one: Release): string[] => [...CHEAP_LOGINS, ...corruptionChecks(one)];
  const flags = flagsOf(release);
  return withCluster({ executable, size: 3, tls, flags }, async (cluster) => {
    const before = [...cluster.members];
    const middle: TestMember[] = [];
    const after: TestMember[] = [];
    for (const [i, old] of before.entries()) {
      const ours = { executable: memberUnderTest, flags: flagsOf("3.7") };
      middle.push(await cluster.prepareMember(`q${i}`, ours));
      const newest = { executable: etcdNewest!, flags: flagsOf("3.7") };
      after.push(await cluster.prepareMember(`e${i}`, newest, old));
    }
    const endpoints = [...before, ...middle].map((member) => member.clientUrl);
    const { identity } = cluster;
    const credentials = (name: string) => (users ? { auth: { name, password: PASSWORD } } : {});
    const client = { endpoints, tls: tls ? identity : undefined, ...credentials(USER) };
    if (users) {
      const first = new AuthClient(before[0]!.clientAddress, identity);
      await enableAuth(first, { [USER]: [["a", "z", "readwrite"]] });
      first.close();
    }
    const { auth: administrator } = { auth: undefined, ...credentials("root") };
    const moving = { move: new Move(cluster, options), before, middle, after };
    return body(moving, { cluster, client, administrator });
  });
}

/** All there and back under loads; logs the figures. Rejects where something was lost. */
export async function thereAndBack(
  { release, restSeconds, log }: MoveOptions,
  { move, before, middle, after }: Moving,
  surroundings: Surroundings,
  loads: readonly Load[],
): Promise<void> {
  try {
    const id = await clusterIdOf(surroundings);
    const took: number[] = [];
    for (const [to, members] of [
      ["quorate", middle],
      ["etcd", after],
    ] as const) {
      await delay(restSeconds * 1000);
      took.push(await move.replaceAll(to, members));
    }
    await delay(restSeconds * 1000);
    const figures: string[] = [];
    for (const load of loads) figures.push(await load.judge());
    assert.equal(await clusterIdOf(surroundings), id, "the same cluster");
    const [there, back] = took.map((seconds) => `${seconds.toFixed(1)} s`);
    log(`etcd ${release} to Quorate: ${there}, to etcd 3.7: ${back}`);
    for (const line of figures) log(line);
    for (const member of [...before, ...middle, ...after]) assertSound(member);
  } finally {
    for (const load of loads) await load.close();
  }
}

async function clusterIdOf({ cluster, client, administrator }: Surroundings): Promise<bigint> {
  const auth = administrator && { auth: administrator };
  const endpoints = cluster.members.map((member) => member.clientUrl);
  await using one = connect({ ...client, endpoints, ...auth });
  return (await one.memberList()).header!.clusterId;
}

/** No check of etcd's has found anything, and no member has ended by itself. */
function assertSound(member: TestMember): void {
  const bad =
    /"level":"(?:panic|fatal)"|(?:hash|ID) mismatch|data inconsistency|different (?:hash|compact)/;
  const found = member
    .log()
    .split("\n")
    .filter((line) => bad.test(line));
  assert.deepEqual(found.slice(0, 5), [], member.name);
}
