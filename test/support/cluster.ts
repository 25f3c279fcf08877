/**
 * Clusters of real processes for tests: `withCluster` starts one, runs the test's body on it, and
 * cleans up whatever happens.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CertificateFiles, tlsFlags, writeCertificates } from "../../scripts/certs.ts";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";
import { type Executable, memberUnderTest } from "./executables.ts";
import { MemberDied, TestMember } from "./member.ts";
import { freePorts } from "./ports.ts";

/** What to start. */
export interface ClusterOptions {
  /** The member under test by default. */
  readonly executable?: Executable;
  /** Members, 3 by default. */
  readonly size?: number;
  /**
   * Mutual TLS for clients and peers, with certificates that are made for the cluster or with those
   * of the test; plain connections by default.
   */
  readonly tls?: boolean | OwnTls;
  /** Flags for every member, after the usual ones. */
  readonly flags?: readonly string[];
  /** Variables for every member. */
  readonly env?: Readonly<Record<string, string>>;
  /** Variables for single members, by name; they win over those for all. */
  readonly envOf?: (name: string) => Readonly<Record<string, string>>;
  /** The cluster token, "test" by default. */
  readonly token?: string;
  /** The peer URL that a member advertises, where it is not the one on which it listens. */
  readonly advertisedPeerUrlOf?: (name: string) => string | undefined;
  /** Client and peer port of each member, for tests that need fixed ones. Free ones by default. */
  readonly ports?: readonly (readonly [client: number, peer: number])[];
}

/** Certificates that a test makes, in files of its own. */
export interface OwnTls {
  /** How clients present themselves. */
  readonly identity: ClientIdentity;
  /** The flags that name the files of a member. */
  flagsOf(name: string): readonly string[];
}

const startAttempts = 5;

/** Where a member is to be found. */
interface MemberPlan {
  readonly name: string;
  readonly clientUrl: string;
  readonly peerUrl: string;
}

/** What a member runs in place of what the others do. */
export interface OtherProgram {
  readonly executable: Executable;
  readonly flags: readonly string[];
}

type Prepare = (
  plan: MemberPlan,
  clusterFlags?: readonly string[],
  other?: OtherProgram,
) => TestMember;

export class TestCluster {
  readonly dir: string;
  /**
   * Those that belong to the cluster at present; a test that adds and removes members keeps it in
   * line.
   */
  readonly members: TestMember[];
  readonly certs: CertificateFiles | undefined;
  /** How clients present themselves; empty without TLS. */
  readonly identity: ClientIdentity;
  readonly #prepare: Prepare;
  /** Every member there ever was. */
  readonly #all: TestMember[];

  constructor(
    dir: string,
    members: TestMember[],
    certs: CertificateFiles | undefined,
    identity: ClientIdentity,
    prepare: Prepare,
  ) {
    this.dir = dir;
    this.members = members;
    this.#all = [...members];
    this.certs = certs;
    this.identity = identity;
    this.#prepare = prepare;
  }

  /**
   * A member more, on free ports, that is not started and does not belong to the cluster yet: its
   * flags still lack --initial-cluster.
   * @param other the program and the flags, where they are not those of the cluster
   * @param before a member that has left, whose URLs it gets
   */
  async prepareMember(
    name: string,
    other?: OtherProgram,
    before?: TestMember,
  ): Promise<TestMember> {
    const scheme = this.identity.ca === undefined ? "http" : "https";
    const [client, peer] = before === undefined ? await freePorts(2) : [];
    const plan = {
      name,
      clientUrl: before?.clientUrl ?? `${scheme}://127.0.0.1:${client}`,
      peerUrl: before?.options.peerUrl ?? `${scheme}://127.0.0.1:${peer}`,
    };
    const member = this.#prepare(plan, [], other);
    this.#all.push(member);
    return member;
  }

  get endpoints(): string[] {
    return this.members.map((member) => member.clientUrl);
  }

  /** Resolves when every running member is ready. */
  async waitReady(limitMs?: number): Promise<void> {
    await Promise.all(
      this.members.filter((member) => member.isRunning).map((member) => member.waitReady(limitMs)),
    );
  }

  /** Kills what runs and removes the files. */
  async destroy(): Promise<void> {
    await Promise.all(this.#all.map((member) => member.kill()));
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** The ends of all members' logs, for the report of a failure. */
  logTails(lines = 40): string {
    return this.#all
      .map((member) => `--- log of ${member.name} (${member.clientUrl})\n${member.logTail(lines)}`)
      .join("\n");
  }
}

/**
 * A running, ready cluster. The caller destroys it. A port that another process took meanwhile
 * makes it try again with others.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  for (let attempt = 1; ; attempt++) {
    const cluster = await prepareCluster(options);
    try {
      for (const member of cluster.members) member.start();
      await cluster.waitReady();
      return cluster;
    } catch (error) {
      const tails = cluster.logTails();
      await cluster.destroy();
      if (
        !(error instanceof MemberDied && error.portWasTaken && options.ports === undefined) ||
        attempt === startAttempts
      ) {
        const [firstLine] = (error as Error).message.split("\n");
        throw new Error(`the cluster did not start: ${firstLine}\n${tails}`, { cause: error });
      }
    }
  }
}

/** A cluster on paper: files and ports, no process yet. */
async function prepareCluster(options: ClusterOptions): Promise<TestCluster> {
  const {
    executable = memberUnderTest,
    size = 3,
    tls = false,
    flags = [],
    env = {},
    envOf = () => ({}),
    token = "test",
  } = options;
  const { advertisedPeerUrlOf = () => undefined } = options;
  const dir = mkdtempSync(join(tmpdir(), `quorate-test-${executable.name}-`));
  const certs = tls === true ? await writeCertificates(join(dir, "certs")) : undefined;
  const { identity, flagsOf }: OwnTls =
    typeof tls === "object"
      ? tls
      : {
          identity: identityOf(certs),
          flagsOf: () => (certs === undefined ? [] : tlsFlags(certs)),
        };
  const free = options.ports === undefined ? await freePorts(2 * size) : options.ports.flat();
  const scheme = tls === false ? "http" : "https";
  const plans = Array.from({ length: size }, (_, index) => ({
    name: `m${index}`,
    clientUrl: `${scheme}://127.0.0.1:${free[2 * index]}`,
    peerUrl: `${scheme}://127.0.0.1:${free[2 * index + 1]}`,
  }));
  mkdirSync(join(dir, "data"), { mode: 0o700 });
  const prepare: Prepare = (
    { name, clientUrl, peerUrl },
    clusterFlags = [],
    other = { executable, flags },
  ) => {
    const dataDir = join(dir, "data", name);
    return new TestMember({
      name,
      command: other.executable.command,
      flags: [
        `--name=${name}`,
        `--data-dir=${dataDir}`,
        `--listen-client-urls=${clientUrl}`,
        `--advertise-client-urls=${clientUrl}`,
        `--listen-peer-urls=${peerUrl}`,
        `--initial-advertise-peer-urls=${advertisedPeerUrlOf(name) ?? peerUrl}`,
        ...clusterFlags,
        ...flagsOf(name),
        ...other.flags,
      ],
      env: { ...env, ...envOf(name) },
      clientUrl,
      peerUrl,
      dataDir,
      logFile: join(dir, `${name}.log`),
      identity,
    });
  };
  const initialCluster = plans
    .map(({ name, peerUrl }) => `${name}=${advertisedPeerUrlOf(name) ?? peerUrl}`)
    .join(",");
  const clusterFlags = [
    `--initial-cluster=${initialCluster}`,
    `--initial-cluster-token=${token}`,
    "--initial-cluster-state=new",
  ];
  const members = plans.map((plan) => prepare(plan, clusterFlags));
  return new TestCluster(dir, members, certs, identity, prepare);
}

function identityOf(certs: CertificateFiles | undefined): ClientIdentity {
  if (certs === undefined) return {};
  const read = (path: string): string => readFileSync(path, "utf8");
  return { ca: read(certs.ca), cert: read(certs.client), key: read(certs.clientKey) };
}

/**
 * Starts a cluster, runs `body` on it, destroys it. When the body throws, the ends of the members'
 * logs go to standard error.
 */
export async function withCluster<T>(
  options: ClusterOptions,
  body: (cluster: TestCluster) => Promise<T>,
): Promise<T> {
  const cluster = await startCluster(options);
  try {
    return await body(cluster);
  } catch (error) {
    console.error(cluster.logTails());
    throw error;
  } finally {
    await cluster.destroy();
  }
}
