/**
 * One run from one seed: a cluster with clients under faults, while safety is checked; then everything is healed and progress is demanded;
 * then the members are compared, and what the clients saw is judged.
 */
import { SeededRandom } from "@quorate/host";
import { loadConfig, type Member, type ServerConfig } from "@quorate/server";
import { Archivist } from "./archivist.ts";
import type { AlarmBook } from "./check/alarms.ts";
import { ArchiveCheck } from "./check/archives.ts";
import { CorruptionCheck } from "./check/corruption.ts";
import { HashCheck } from "./check/hashes.ts";
import { type Judgement, judgeHistory, type RecordedHistory } from "./check/judge.ts";
import { LeaseCheck } from "./check/lease-lives.ts";
import { RaftCheck } from "./check/raft.ts";
import { Safety, violate } from "./check/safety.ts";
import { WatchCheck } from "./check/watches.ts";
import { ClientNetwork } from "./client-network.ts";
import { Clients } from "./clients.ts";
import { LeaseClients } from "./lease-clients.ts";
import { Nemesis } from "./nemesis.ts";
import { Network } from "./network.ts";
import { Node } from "./node.ts";
import { Operator } from "./operator.ts";
import type { FaultKind, SimOptions } from "./options.ts";
import { Registrar, urlOf } from "./registrar.ts";
import { STORY_LINES, Story } from "./report/story.ts";
import { Restoration } from "./restoration.ts";
import { Saboteur } from "./saboteur.ts";
import { Scheduler } from "./scheduler.ts";
import { goOnAlone } from "./survivor.ts";
import { WatchClients } from "./watch-clients.ts";

/** Within this simulated time a healed cluster must serve through each of its members. */
const PROGRESS_MS = 120_000;
/** Revisions that are read one by one at the end, from the newest back: they show the places of writes whose outcome nobody knows. */
const MAX_SWEPT_REVISIONS = 3000;

export interface RunResult {
  readonly seed: number;
  /** What is wrong; undefined if all is well. */
  readonly violation: string | undefined;
  readonly hash: string;
  readonly simulatedMs: number;
  readonly events: number;
  readonly operations: number;
  readonly answered: number;
  readonly entries: number;
  readonly elections: number;
  readonly messages: number;
  readonly snapshots: number;
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  readonly refusedToStart: number;
  /** How often members passed each fault point, and how often one crashed there. */
  readonly points: Readonly<Record<string, { passed: number; crashed: number }>>;
  readonly alarms: AlarmBook["counts"];
  readonly operator: Operator["counts"];
  readonly corruption: CorruptionCheck["counts"] & Saboteur["counts"];
  readonly archives: ArchiveCheck["counts"];
  /** Whether one member went on alone when the others were lost. */
  readonly survived: boolean;
  /** Looked at by the checks of the log and of the stores. */
  readonly checked: { readonly entriesWritten: number; readonly leaders: number; readonly hashesCompared: number };
  readonly cluster: Registrar["counts"];
  readonly watches: WatchCheck["counts"];
  readonly leases: LeaseCheck["counts"];
  readonly verdict: Judgement | undefined;
  readonly history: RecordedHistory;
  readonly story: Story;
}

function pointsOf(nodes: readonly Node[]): Record<string, { passed: number; crashed: number }> {
  const points: Record<string, { passed: number; crashed: number }> = {};
  for (const { passes } of nodes) {
    for (const [point, { passed, crashed }] of passes) {
      const sum = points[point];
      points[point] = { passed: (sum?.passed ?? 0) + passed, crashed: (sum?.crashed ?? 0) + crashed };
    }
  }
  return points;
}

/** @param cluster the value of --initial-cluster */
async function configOf(
  options: SimOptions,
  name: string,
  url: string,
  cluster: string,
  state: "new" | "existing",
  isForced = false,
): Promise<ServerConfig> {
  const argv = [
    ...["--name", name, "--listen-peer-urls", url, "--initial-advertise-peer-urls", url],
    ...["--initial-cluster", cluster, "--initial-cluster-state", state, "--data-dir", "/data"],
    ...["--heartbeat-interval", `${options.heartbeatMs}`, "--election-timeout", `${options.electionMs}`, `--pre-vote=${options.preVote}`],
    ...["--snapshot-count", `${options.snapshotCount}`, "--snapshot-catchup-entries", `${options.catchUpEntries}`],
    ...["--max-wals", `${options.maxWals}`, "--backend-batch-interval", `${options.batchIntervalMs}ms`],
    ...["--compaction-batch-limit", `${options.compactionBatch}`],
    ...(options.quotaBytes > 0 ? ["--quota-backend-bytes", `${options.quotaBytes}`] : []),
    ...[`--strict-reconfig-check=${options.strictReconfiguration}`, "--max-learners", `${options.maxLearners}`],
    ...[`--auto-promote=${options.autoPromote}`, `--force-new-cluster=${isForced}`],
    ...["--watch-progress-notify-interval", `${options.progressNotifyMs}ms`],
    ...[`--quota-auto-disarm=${options.quotaAutoDisarm}`, `--self-heal=${options.selfHeal}`],
    ...["--corrupt-check-time", `${options.corruptCheckMs}ms`, "--compact-hash-check-time", `${options.compactHashCheckMs || 60_000}ms`],
    ...["--feature-gates", `CompactHashCheck=${options.compactHashCheckMs > 0},InitialCorruptCheck=${options.initialCorruptCheck}`],
  ];
  const invocation = await loadConfig(argv, {}, () => "");
  if (invocation.kind !== "run") throw new Error("the flags start no member");
  return invocation.config;
}

function configsOf(options: SimOptions): Promise<ServerConfig[]> {
  const names = Array.from({ length: options.members }, (_, i) => `m${i}`);
  const cluster = names.map((name, i) => `${name}=${urlOf(i)}`).join(",");
  return Promise.all(names.map((name, i) => configOf(options, name, urlOf(i), cluster, "new")));
}

function membersOf(store: Member["store"]): string {
  const members = store.membership.members();
  return members.map((one) => `${one.id} ${one.name} ${one.peerUrls} ${one.isLearner ? "learner" : "voter"}`).join(", ");
}

class World {
  readonly options: SimOptions;
  readonly scheduler = new Scheduler();
  readonly story: Story;
  readonly raftCheck = new RaftCheck();
  readonly hashCheck: HashCheck;
  readonly leaseCheck: LeaseCheck;
  readonly corruptionCheck = new CorruptionCheck();
  readonly safety: Safety;
  readonly watchCheck: WatchCheck;
  readonly network: Network;
  readonly nodes: Node[];
  readonly clientNetwork: ClientNetwork;
  readonly clients: Clients;
  readonly watchClients: WatchClients;
  readonly leaseClients: LeaseClients;
  readonly operator: Operator;
  readonly registrar: Registrar;
  readonly nemesis: Nemesis;
  readonly saboteur: Saboteur;
  readonly archives: ArchiveCheck;
  readonly archivist: Archivist;
  #restoration: Restoration | undefined;
  readonly #random: SeededRandom;
  verdict: Judgement | undefined;
  survived = false;
  #failure: unknown;

  readonly #explains: boolean;

  constructor(options: SimOptions, configs: readonly ServerConfig[], explains: boolean) {
    this.options = options;
    this.#explains = explains;
    const { scheduler } = this;
    const story = new Story(() => scheduler.nowMs, explains ? STORY_LINES : 0);
    this.story = story;
    this.leaseCheck = new LeaseCheck(options, () => scheduler.nowMs);
    this.safety = new Safety(this.leaseCheck, this.corruptionCheck);
    this.hashCheck = new HashCheck(this.safety);
    this.watchCheck = new WatchCheck(this.safety);
    const { safety, leaseCheck, corruptionCheck } = this;
    const random = new SeededRandom(BigInt(options.seed));
    this.#random = random;
    const network = new Network(options, { scheduler, random: random.fork("network"), safety, story });
    this.network = network;
    const nodeRandom = random.fork("nodes");
    const { raftCheck, hashCheck } = this;
    const fail = (error: unknown) => this.fail(error);
    const makeNode = (config: ServerConfig) =>
      new Node(config.name, {
        options,
        scheduler,
        random: nodeRandom,
        network,
        safety,
        raftCheck,
        hashCheck,
        corruptionCheck,
        story,
        config,
        fail,
      });
    this.nodes = configs.map(makeNode);
    this.clientNetwork = new ClientNetwork(options, { scheduler, random: random.fork("client network") });
    const shared = { nodes: this.nodes, scheduler, story, network: this.clientNetwork, safety, fail };
    this.clients = new Clients(options, { ...shared, random: random.fork("clients"), leaseCheck, corruptionCheck });
    this.watchClients = new WatchClients(options, { ...shared, random: random.fork("watch clients"), check: this.watchCheck });
    const leases = { ...shared, random: random.fork("lease clients"), clients: this.clients, check: leaseCheck };
    this.leaseClients = new LeaseClients(options, leases);
    this.operator = new Operator(options, { ...shared, random: random.fork("operator"), clients: this.clients });
    this.registrar = new Registrar(options, {
      ...shared,
      random: random.fork("registrar"),
      makeNode: async (name, url, cluster) => makeNode(await configOf(options, name, url, cluster, "existing")),
      reconfigure: async (node, url, cluster) => {
        const state = node.isFounder ? "new" : "existing";
        node.reconfigure(await configOf(options, node.name, url, cluster, state));
      },
      more: random.fork("registrar more"),
    });
    const mayDamage = () => this.registrar.mayDamage();
    this.nemesis = new Nemesis(options, { nodes: this.nodes, network, scheduler, story, random: random.fork("nemesis"), mayDamage });
    this.saboteur = new Saboteur(options, { ...shared, random: random.fork("saboteur"), check: corruptionCheck, mayDamage });
    this.archives = new ArchiveCheck(safety, leaseCheck);
    this.archivist = new Archivist(options, { ...shared, random: random.fork("archivist"), archives: this.archives });
  }

  fail(error: unknown): void {
    this.#failure ??= error;
  }

  #run(done: () => boolean): Promise<void> {
    return this.scheduler.run(done, () => {
      if (this.#failure !== undefined) throw this.#failure;
      this.raftCheck.look();
      this.#restoration?.raftCheck.look();
    });
  }

  #runFor(ms: number): Promise<void> {
    let over = false;
    this.scheduler.after(ms, () => {
      over = true;
    });
    return this.#run(() => over);
  }

  /** Runs until `promise` has settled; `what` is said if that takes more than `limitMs`. */
  async #settled<T>(promise: Promise<T>, limitMs: number, what: () => string): Promise<T> {
    let settled = false;
    const mark = () => {
      settled = true;
    };
    promise.then(mark, mark);
    let late = false;
    const timer = this.scheduler.after(limitMs, () => {
      late = true;
    });
    await this.#run(() => settled || late);
    timer.cancel();
    if (!settled) violate("SIM-8", `no progress in ${limitMs} ms after all was healed: ${what()}`);
    return promise;
  }

  async live(): Promise<void> {
    const { clients, watchClients, leaseClients, operator, registrar, nemesis } = this;
    nemesis.start();
    clients.start();
    watchClients.start();
    leaseClients.start();
    operator.start();
    registrar.start();
    this.saboteur.start();
    this.archivist.start();
    await this.#runFor(this.options.faultPhaseMs);
    this.story.tell("world", "all is healed");
    nemesis.stop();
    this.clientNetwork.faulty = false;
    if (this.options.losesMajority) await this.#settled(this.#loseMajority(), PROGRESS_MS, () => "the survivor does not start");
    watchClients.settle();
    operator.stop();
    registrar.settle();
    this.saboteur.settle();
    await this.#settled(this.#membersAreAlike(), PROGRESS_MS, () => `${this.saboteur.unsettled}: ${this.#standing()}`);
    await this.#settled(this.#membershipSettles(), PROGRESS_MS, () => `the membership is not settled: ${this.#standing()}`);
    registrar.stop();
    await this.#settled(this.#progress(), PROGRESS_MS, () => this.#standing());
    // Until here: a check that was under way when a member was given up raises its alarm once more.
    this.saboteur.stop();
    clients.stop();
    leaseClients.stop();
    const leaseLimitMs = PROGRESS_MS + 2000 * this.options.leaseTtlSeconds;
    await this.#settled(this.#leasesEnd(), leaseLimitMs, () => `LEASE-5: not ended: ${this.leaseCheck.existing.join(" ")}`);
    await this.#settled(this.#converge(), PROGRESS_MS, () => this.#standing());
    await this.#settled(this.#watchersHear(), PROGRESS_MS, () => watchClients.behind().join("; "));
    watchClients.stop();
    this.archivist.stop();
    await this.#settled(this.#compare(), PROGRESS_MS, () => "comparing");
    await this.#settled(this.#sweep(), 10 * PROGRESS_MS, () => "reading all revisions");
    await this.#settled(this.#restore(), PROGRESS_MS, () => "ARCHIVE-2: a restored cluster does not serve");
    const hint = (revision: number) => this.safety.requestAt(revision);
    this.verdict = judgeHistory(clients, { title: `seed ${this.options.seed}`, hint, explains: this.#explains });
    if (this.verdict.violation !== undefined) throw new Error(this.verdict.violation);
  }

  #standing(): string {
    return this.nodes
      .map((node) => {
        const { member } = node;
        if (member === undefined) return `${node.name} ${node.refused ? "refused" : node.down ? "is down" : "is starting"}`;
        const { term, commitIndex, appliedIndex, isLeader } = member;
        return `${node.name} term ${term} commit ${commitIndex} applied ${appliedIndex}${isLeader ? " leads" : ""}`;
      })
      .join("; ");
  }

  /** All but one are gone; the one that is left has what was acknowledged, and keeps it. */
  async #loseMajority(): Promise<void> {
    const { nodes, scheduler, story, network, safety, raftCheck, options } = this;
    const random = this.#random.fork("survivor");
    const forced = (node: Node, isForced: boolean) =>
      configOf(options, node.name, node.url, `${node.name}=${node.url}`, node.isFounder ? "new" : "existing", isForced);
    this.survived = await goOnAlone({ nodes, scheduler, story, random, network, safety, raftCheck, configOf: forced });
  }

  /** ARCHIVE-2. */
  async #restore(): Promise<void> {
    const { options, scheduler, story, archivist } = this;
    if (!options.restores || archivist.last === undefined) return;
    this.#restoration = new Restoration(options, archivist.last, {
      ...{ scheduler, story, network: this.clientNetwork, random: this.#random.fork("restoration") },
      configOf: (name, url, cluster) => configOf(options, name, url, cluster, "new"),
      fail: (error) => this.fail(error),
    });
    await this.#restoration.run();
    this.archives.counts.restored++;
  }

  /** CORRUPT-2 and CORRUPT-4. */
  async #membersAreAlike(): Promise<void> {
    while (this.saboteur.unsettled !== undefined) await this.scheduler.delay(100);
  }

  async #membershipSettles(): Promise<void> {
    while (!this.registrar.isSettled) await this.scheduler.delay(100);
  }

  /** A write and a linearizable read through each member that is not damaged. */
  async #progress(): Promise<void> {
    for (const node of this.nodes) {
      for (let i = 0; ; i++) {
        const put = { kind: "put", key: "progress", value: `${node.name}.${i}` } as const;
        // A learner serves neither.
        if (node.refused || node.member?.isLearner === true) break;
        const mode = { serializable: false, atRevision: 0 };
        const written = await this.clients.call("healer", node, put, mode, 10_000);
        if (written.outcome?.kind === "refused") {
          await this.operator.endAlarms(node);
          // At once: the clients, who go on, may fill a tight quota again within milliseconds.
          await this.scheduler.delay(1);
          continue;
        }
        if (written.outcome?.kind === "answered") {
          const read = await this.clients.call("healer", node, { kind: "range", key: "progress", end: "" }, mode, 10_000);
          if (read.outcome?.kind === "answered") break;
        }
        await this.scheduler.delay(100);
      }
    }
  }

  #members(): Member[] {
    return this.nodes.flatMap((node) => node.member ?? []);
  }

  /** Nobody renews any more: all leases must end by themselves. */
  async #leasesEnd(): Promise<void> {
    const isSo = () => this.clients.idle && this.leaseClients.idle && this.leaseCheck.existing.length === 0;
    while (!isSo()) await this.scheduler.delay(100);
  }

  /** Every watcher has to be told of everything. */
  async #watchersHear(): Promise<void> {
    while (this.watchClients.behind().length > 0) await this.scheduler.delay(50);
  }

  /** Waits until all clients are done and all members have applied the same. */
  async #converge(): Promise<void> {
    const isSo = () => {
      const members = this.#members();
      return (
        this.clients.idle &&
        members.length === this.nodes.filter((node) => !node.refused).length &&
        members.every((member) => member.appliedIndex === this.safety.lastIndex && member.leader !== 0n)
      );
    };
    while (!isSo()) await this.scheduler.delay(50);
  }

  /** SIM-7. What comes in meanwhile (a member that tells its name again, an alarm) makes it begin anew. */
  async #compare(): Promise<void> {
    for (;;) {
      await this.#converge();
      const index = this.safety.lastIndex;
      const found: { readonly member: Member; readonly text: string }[] = [];
      for (const member of this.#members()) {
        await member.space.compacted();
        const { hash, revision, compactRevision } = await member.store.mvcc.hashKV(0);
        found.push({ member, text: `hash ${hash} at revision ${revision}, compacted ${compactRevision}` });
      }
      if (found.some(({ member }) => member.appliedIndex !== index) || this.safety.lastIndex !== index) continue;
      for (const { member, text } of found) {
        this.story.tell(member.config.name, text);
        this.#compareWith(member, text, found[0]);
      }
      return;
    }
  }

  /** SIM-11: a member dials the others where the membership says that they are. */
  #compareDialled({ config, id, store }: Member): void {
    const others = store.membership.members().filter((one) => one.id !== id);
    const expected = others.map((one) => `${one.id} ${one.peerUrls}`).sort();
    const found = this.network.dialledBy(id).map((peer) => `${peer.id} ${peer.urls}`);
    // A member that was removed a moment ago is said farewell to.
    const missing = expected.filter((one) => !found.includes(one));
    if (missing.length > 0) violate("SIM-11", `${config.name} dials ${found.join(", ")}, and the membership has ${expected.join(", ")}`);
  }

  #compareWith(member: Member, text: string, first: { readonly member: Member; readonly text: string }): void {
    const { config, store } = member;
    const { name } = config;
    const other = first.member.config.name;
    if (text !== first.text) violate("SIM-7", `${name} has ${text}, ${other} ${first.text}`);
    const wrong = this.safety.contentDiffers(store);
    if (wrong !== undefined) violate("SIM-7", `${name}: ${wrong}`);
    const list = membersOf(store);
    if (list !== membersOf(first.member.store))
      violate("SIM-7", `${name} has the members ${list}, ${other} ${membersOf(first.member.store)}`);
    this.#compareDialled(member);
    const leases = [...store.lessor.all()].map(({ id }) => `${id}`).sort();
    if (leases.join(" ") !== this.leaseCheck.existing.join(" ")) {
      violate("SIM-7", `${name} has the leases ${leases.join(" ")}, not ${this.leaseCheck.existing.join(" ")}`);
    }
  }

  /** Reads the newest revision, and all that are left of those that no answered write has. */
  async #sweep(): Promise<void> {
    const node = this.nodes.find((one) => one.member !== undefined && !one.isAltered);
    if (node?.member === undefined) return;
    const last = node.member.store.mvcc.currentRevision;
    const first = Math.max(1, node.member.store.mvcc.compactRevision, last - MAX_SWEPT_REVISIONS);
    const known = new Set<number>();
    for (const { outcome, request } of this.clients.operations) {
      if (outcome?.kind === "answered" && request.kind !== "range") known.add(outcome.answer.revision);
    }
    const everything = { kind: "range", key: "\0", end: "\xff" } as const;
    for (let revision = last; revision >= first; revision--) {
      if (known.has(revision) && revision !== last) continue;
      await this.clients.call("sweeper", node, everything, { serializable: true, atRevision: revision }, 10_000);
    }
  }
}

/**
 * Runs a seed's options to the end. Never rejects: what is wrong is in the result.
 * @param explains the last events of each member are kept, to be told, and a history that fails is made small and drawn, which takes longer
 * than the run.
 */
export async function runSeed(options: SimOptions, explains = true): Promise<RunResult> {
  const world = new World(options, await configsOf(options), explains);
  let violation: string | undefined;
  const onRejection = (error: unknown) => {
    // What a dead process still waited for ends as it may.
    if (!/dead|closed|stopped/.test(String(error))) world.fail(error);
  };
  process.on("unhandledRejection", onRejection);
  try {
    await world.live();
  } catch (error) {
    violation = error instanceof Error ? (error.stack ?? error.message) : String(error);
    world.story.tell("world", `violation: ${error instanceof Error ? error.message : String(error)}`);
  }
  process.off("unhandledRejection", onRejection);
  for (const node of world.nodes) node.process?.end();
  const { scheduler, safety, network, clients, nemesis, story, nodes } = world;
  return {
    seed: options.seed,
    violation,
    hash: story.hash,
    simulatedMs: scheduler.nowMs,
    events: scheduler.events,
    operations: clients.operations.length,
    answered: clients.answered,
    entries: safety.lastIndex,
    elections: safety.elections,
    messages: network.messages,
    snapshots: network.snapshots,
    faults: Object.fromEntries(nemesis.counts),
    refusedToStart: nodes.filter((node) => node.refused).length,
    points: pointsOf(nodes),
    alarms: safety.alarms.counts,
    operator: world.operator.counts,
    corruption: { ...world.corruptionCheck.counts, ...world.saboteur.counts },
    archives: world.archives.counts,
    survived: world.survived,
    cluster: world.registrar.counts,
    watches: world.watchCheck.counts,
    leases: world.leaseCheck.counts,
    checked: {
      entriesWritten: world.raftCheck.counts.entries,
      leaders: world.raftCheck.counts.leaders,
      hashesCompared: world.hashCheck.compared,
    },
    verdict: world.verdict,
    history: { operations: clients.operations, compactions: clients.compactions },
    story,
  };
}
