/**
 * A cluster of real processes whose members reach each other only through proxies, with mutual TLS
 * for peers and clients. The first member's data lies on a small disk of its own, where the machine
 * allows to mount one, so that it can be filled.
 *
 * Each process is watched: one that ends when no fault explains it has broken a promise.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { tlsFlags, writeCertificates } from "../../scripts/certs.ts";
import { TestCluster } from "../support/cluster.ts";
import { MemberDied, type MemberOptions, TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { MemberDisk } from "./disks.ts";
import type { Program } from "./mixture.ts";
import { ownerOfPort } from "./owner.ts";
import { Wires } from "./proxy.ts";

/** How often a start is tried with other ports, when another process took one. */
const START_ATTEMPTS = 5;
/** How often a member whose port another process took is started again. */
const PORT_ATTEMPTS = 40;

/** Why a process may end now. */
export type Excuse = "killed" | "stopped" | "disk full";

/** One member: its process, its disk, and what is done to it. */
export class Node {
  #test: TestMember;
  #program: Program;
  readonly disk: MemberDisk;
  /** The reason for which it may end, or undefined while it must run. */
  excuse: Excuse | undefined;
  isFrozen = false;
  /** How often it ended because its disk was full, and said so. */
  fullDiskEnds = 0;
  readonly #onEnd: (node: Node, what: string) => void;
  #logStart = 0;
  #portAttempts = 0;

  /** @param program what `test` runs */
  constructor(
    test: TestMember,
    program: Program,
    disk: MemberDisk,
    onEnd: (node: Node, what: string) => void,
  ) {
    this.#test = test;
    this.#program = program;
    this.disk = disk;
    this.#onEnd = onEnd;
  }

  /** The member of this place: another one since it was replaced. */
  get test(): TestMember {
    return this.#test;
  }

  get program(): Program {
    return this.#program;
  }

  /** Another member with the same addresses and an empty disk; the one before does not run. */
  become(test: TestMember, program: Program): void {
    const { dataDir } = test.options;
    for (const name of readdirSync(dataDir)) rmSync(join(dataDir, name), { recursive: true });
    this.#test = test;
    this.#program = program;
  }

  get name(): string {
    return this.test.name;
  }

  get isUp(): boolean {
    return this.test.isRunning && !this.isFrozen;
  }

  /** What the process has logged since its last start. */
  log(): string {
    return readFileSync(this.test.options.logFile).subarray(this.#logStart).toString("utf8");
  }

  start(): void {
    this.excuse = undefined;
    this.isFrozen = false;
    this.#logStart = statSync(this.test.options.logFile, { throwIfNoEntry: false })?.size ?? 0;
    this.test.start();
    this.test.exited.then(({ code, signal }) => this.#ended(code, signal));
  }

  #ended(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.excuse === "killed") return;
    if (this.excuse === "stopped" && code === 0) return;
    const log = this.log();
    // A process that was asked to stop before it had come so far as to listen for that: its first
    // line was not logged yet. etcd sends itself the signal again once it has stopped.
    const mayEndBySignal = log.trim() === "" || this.#program.name !== "quorate";
    if (this.excuse === "stopped" && signal === "SIGTERM" && mayEndBySignal) return;
    // Its disk was full, and it said so.
    if (this.disk.wasFull && /no space left|ENOSPC/i.test(log)) {
      this.excuse = "disk full";
      this.fullDiskEnds++;
      return;
    }
    if (/address already in use|EADDRINUSE/i.test(log) && this.#portAttempts++ < PORT_ATTEMPTS) {
      this.excuse = "stopped";
      setTimeout(() => this.test.isRunning || this.start(), 500);
      return;
    }
    const lines = log.trimEnd().split("\n").slice(-25).join("\n");
    this.#onEnd(
      this,
      `${this.name} ended (code ${code}, signal ${signal}) and no fault explains it\n--- its last lines\n${lines}`,
    );
  }

  /** kill -9; resolves when it is gone. */
  async kill(): Promise<void> {
    this.excuse = "killed";
    this.isFrozen = false;
    await this.test.kill();
  }

  /** SIGTERM; resolves when it is gone. One that does not go in time is killed and reported. */
  async stop(limitMs: number): Promise<void> {
    this.excuse = "stopped";
    try {
      await this.test.terminate(limitMs);
    } catch (error) {
      this.#onEnd(
        this,
        `${(error as Error).message}\n--- its last lines\n${this.test.logTail(25)}`,
      );
      await this.kill();
    }
  }

  freeze(): void {
    if (!this.test.isRunning || this.isFrozen) return;
    this.isFrozen = true;
    this.test.signal("SIGSTOP");
  }

  thaw(): void {
    if (!this.isFrozen) return;
    this.isFrozen = false;
    if (this.test.isRunning) this.test.signal("SIGCONT");
  }
}

/** What to start. */
export interface RunningClusterOptions {
  readonly dir: string;
  /** What each member runs. */
  readonly programs: readonly Program[];
  /** Called with a member that ended and should not have. */
  readonly onEnd: (node: Node, what: string) => void;
}

/** Members, proxies, and the cluster as the other test helpers know it. */
export class RunningCluster {
  readonly cluster: TestCluster;
  readonly nodes: readonly Node[];
  readonly wires: Wires;
  readonly #optionsOf: (node: Node, program: Program, flags: readonly string[]) => MemberOptions;

  /** @param optionsOf how a member is started. @param flags how it comes to the cluster */
  constructor(
    cluster: TestCluster,
    nodes: readonly Node[],
    wires: Wires,
    optionsOf: (node: Node, program: Program, flags: readonly string[]) => MemberOptions,
  ) {
    this.cluster = cluster;
    this.nodes = nodes;
    this.wires = wires;
    this.#optionsOf = optionsOf;
  }

  /** The programs of the members, for people. */
  get programs(): string {
    return this.nodes
      .map(({ program: { name } }) => name)
      .sort()
      .join(" ");
  }

  /**
   * The member that will be started in this place, with no data. The one before does not run.
   * @param flags how it comes to the cluster
   */
  become(node: Node, program: Program, flags: readonly string[]): void {
    const test = new TestMember(this.#optionsOf(node, program, flags));
    this.cluster.members[this.nodes.indexOf(node)] = test;
    node.become(test, program);
  }

  node(name: string): Node {
    return this.nodes.find((node) => node.name === name)!;
  }

  /** Ends all; the files of `dir` stay. */
  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.kill()));
    this.wires.close();
    for (const node of this.nodes) node.disk.close();
  }
}

/** A running, ready cluster. */
export async function startRunningCluster(options: RunningClusterOptions): Promise<RunningCluster> {
  for (let attempt = 1; ; attempt++) {
    const running = await prepare(
      options,
      join(options.dir, attempt === 1 ? "cluster" : `cluster${attempt}`),
    );
    try {
      for (const node of running.nodes) node.start();
      await running.cluster.waitReady(120_000);
      return running;
    } catch (error) {
      await running.close();
      if (!(error instanceof MemberDied && error.portWasTaken) || attempt === START_ATTEMPTS)
        throw error;
    }
  }
}

async function prepare(
  { programs, onEnd }: RunningClusterOptions,
  dir: string,
): Promise<RunningCluster> {
  mkdirSync(join(dir, "data"), { recursive: true, mode: 0o700 });
  const certs = await writeCertificates(join(dir, "certs"));
  const read = (path: string): string => readFileSync(path, "utf8");
  const identity = { ca: read(certs.ca), cert: read(certs.client), key: read(certs.clientKey) };
  const ports = await freePorts(3 * programs.length);
  const plans = programs.map((program, index) => ({
    program,
    name: `m${index}`,
    clientUrl: `https://127.0.0.1:${ports[3 * index]}`,
    listenPeerUrl: `https://127.0.0.1:${ports[3 * index + 1]}`,
    peerUrl: `https://127.0.0.1:${ports[3 * index + 2]}`,
  }));
  const initialCluster = plans.map(({ name, peerUrl }) => `${name}=${peerUrl}`).join(",");
  const founding = [
    `--initial-cluster=${initialCluster}`,
    "--initial-cluster-token=robustness",
    "--initial-cluster-state=new",
  ];
  const optionsOf = (
    { name, clientUrl, listenPeerUrl, peerUrl }: (typeof plans)[number],
    program: Program,
    flags: readonly string[],
    disk: MemberDisk,
  ): MemberOptions => ({
    name,
    command: program.executable.command,
    flags: [
      `--name=${name}`,
      `--data-dir=${join(dir, "data", name)}`,
      `--listen-client-urls=${clientUrl}`,
      `--advertise-client-urls=${clientUrl}`,
      `--listen-peer-urls=${listenPeerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      ...tlsFlags(certs),
      ...program.flags,
      ...flags,
    ],
    env: program.name === "quorate" ? disk.env : {},
    clientUrl,
    peerUrl,
    dataDir: join(dir, "data", name),
    logFile: join(dir, `${name}.log`),
    hasLogReader: true,
    identity,
  });
  const nodes = plans.map((plan, index) => {
    const { name, program } = plan;
    const disk = new MemberDisk(
      join(dir, "data", name),
      join(dir, `${name}.disk.json`),
      index === 0,
    );
    const test = new TestMember(optionsOf(plan, program, founding, disk));
    return new Node(test, program, disk, onEnd);
  });
  const cluster = new TestCluster(
    dir,
    nodes.map(({ test }) => test),
    certs,
    identity,
    () => {
      throw new Error("members of this cluster are made on disks of their own");
    },
  );
  const wires = new Wires(
    plans.map(({ name }) => name),
    (port) => {
      const pids = new Map(
        nodes.flatMap(({ test }) =>
          test.pid === undefined ? [] : [[test.pid, test.name] as const],
        ),
      );
      const pid = ownerOfPort(port, pids.keys());
      return pid === undefined ? undefined : pids.get(pid);
    },
  );
  const portOf = (url: string): number => Number(new URL(url).port);
  for (const { name, listenPeerUrl, peerUrl } of plans)
    await wires.open(name, portOf(peerUrl), portOf(listenPeerUrl));
  return new RunningCluster(cluster, nodes, wires, (node, program, flags) =>
    optionsOf(plans[nodes.indexOf(node)], program, flags, node.disk),
  );
}
