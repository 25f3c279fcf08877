/**
 * One run from one seed: a cluster with clients under faults, while safety is checked; then
 * everything is healed and progress is demanded; then the members are compared, and what the
 * clients saw is judged.
 */
import { SeededRandom } from "@quorate/host";
import type { ServerConfig } from "@quorate/server";
import { makeClients } from "./all-clients.ts";
import { Archivist } from "./archivist.ts";
import type { SimOptions } from "./base/options.ts";
import { Scheduler } from "./base/scheduler.ts";
import { ArchiveCheck } from "./check/archives.ts";
import { EtcdRules } from "./check/etcd-rules.ts";
import { type Explains, type Judgement, judgeHistory } from "./check/judge.ts";
import { checkRefusedWrites } from "./check/refused.ts";
import { violate } from "./check/safety.ts";
import { WatchCheck } from "./check/watches.ts";
import { ClientNetwork } from "./client-network.ts";
import type { Clients } from "./clients.ts";
import { Cluster } from "./cluster.ts";
import { EtcdEntries } from "./etcd/etcd-entries.ts";
import type { GuestFactory, Guests } from "./guests.ts";
import type { HostileClients } from "./hostile-clients.ts";
import type { LeaseClients } from "./lease-clients.ts";
import { configOf } from "./member-config.ts";
import { Nemesis } from "./nemesis.ts";
import type { Node } from "./node.ts";
import { Operator } from "./operator.ts";
import { RecoveryChecks } from "./recovery-checks.ts";
import { Registrar } from "./registrar.ts";
import { STORY_LINES, Story } from "./report/story.ts";
import { Restoration } from "./restoration.ts";
import { Saboteur } from "./saboteur.ts";
import type { StreamClients } from "./stream-clients.ts";
import { continueAlone } from "./survivor.ts";
import { Users } from "./users/users.ts";
import type { WatchClients } from "./watch-clients.ts";

/** Within this simulated time a healed cluster must serve through each of its members. */
const PROGRESS_MS = 120_000;

/** Whether clients use what the general judge does not know: open ends, limits, counts. */
function usesWholeApi({ wholeApi, users, streamEveryMs }: SimOptions): boolean {
  return wholeApi || users || streamEveryMs > 0;
}

/** What takes part in a run, and how it goes. */
export class World {
  readonly options: SimOptions;
  readonly scheduler = new Scheduler();
  readonly story: Story;
  readonly cluster: Cluster;
  readonly watchCheck: WatchCheck;
  readonly nodes: Node[];
  readonly clientNetwork: ClientNetwork;
  readonly clients: Clients;
  readonly watchClients: WatchClients;
  readonly leaseClients: LeaseClients;
  readonly hostileClients: HostileClients;
  readonly etcdEntries: EtcdEntries;
  readonly operator: Operator;
  readonly registrar: Registrar;
  readonly nemesis: Nemesis;
  readonly saboteur: Saboteur;
  readonly archives: ArchiveCheck;
  readonly archivist: Archivist;
  readonly recovery: RecoveryChecks;
  readonly users: Users | undefined;
  readonly streamClients: StreamClients;
  /** Their writes are not in the clients' history, which is then not judged. */
  readonly guests: Guests | undefined;
  #restoration: Restoration | undefined;
  readonly #random: SeededRandom;
  verdict: Judgement | undefined;
  survived = false;
  #failure: unknown;

  readonly #explains: Explains;

  constructor(
    options: SimOptions,
    configs: readonly ServerConfig[],
    explains: Explains,
    guests: GuestFactory | undefined,
  ) {
    this.options = options;
    this.#explains = explains;
    const { scheduler } = this;
    const story = new Story(() => scheduler.nowMs, explains === false ? 0 : STORY_LINES);
    this.story = story;
    const random = new SeededRandom(BigInt(options.seed));
    this.#random = random;
    const fail = (error: unknown) => this.fail(error);
    const etcd = options.etcdMembers > 0 ? new EtcdRules(options) : undefined;
    this.cluster = new Cluster(options, { scheduler, story, random, fail }, etcd);
    const { safety, leaseCheck, corruptionCheck, network } = this.cluster;
    this.watchCheck = new WatchCheck(safety);
    const makeNode = (config: ServerConfig) => this.cluster.node(config.name, config);
    this.nodes = configs.map(makeNode);
    this.clientNetwork = new ClientNetwork(options, {
      scheduler,
      random: random.fork("client network"),
      fail,
    });
    const common = { nodes: this.nodes, scheduler, story, safety, fail };
    const withUsers = { ...common, network: this.clientNetwork, random: random.fork("users") };
    this.users = options.users ? new Users(options, withUsers) : undefined;
    const { users } = this;
    const shared = { ...common, network: users?.trusted ?? this.clientNetwork };
    const all = makeClients(options, {
      ...shared,
      random,
      users,
      leaseCheck,
      corruptionCheck,
      watchCheck: this.watchCheck,
      clientNetwork: this.clientNetwork,
    });
    this.clients = all.clients;
    this.watchClients = all.watchClients;
    this.leaseClients = all.leaseClients;
    this.hostileClients = all.hostileClients;
    this.streamClients = all.streamClients;
    this.etcdEntries = new EtcdEntries(options, { ...shared, random: random.fork("etcd entries") });
    this.operator = new Operator(options, {
      ...shared,
      random: random.fork("operator"),
      clients: this.clients,
    });
    this.registrar = new Registrar(options, {
      ...shared,
      random: random.fork("registrar"),
      links: network.links,
      makeNode: async (name, url, cluster) =>
        makeNode(await configOf(options, name, url, cluster, "existing")),
      reconfigure: async (node, url, cluster) => {
        const state = node.isFounder ? "new" : "existing";
        node.reconfigure(await configOf(options, node.name, url, cluster, state));
      },
      more: random.fork("registrar more"),
    });
    const mayDamage = () => this.registrar.mayDamage();
    this.nemesis = new Nemesis(options, {
      nodes: this.nodes,
      links: network.links,
      scheduler,
      story,
      random: random.fork("nemesis"),
      mayDamage,
      checkpoints: () => safety.checkpoints,
      leaseClients: this.leaseClients,
    });
    this.saboteur = new Saboteur(options, {
      ...shared,
      random: random.fork("saboteur"),
      check: corruptionCheck,
      mayDamage,
    });
    this.archives = new ArchiveCheck(safety, leaseCheck);
    this.archivist = new Archivist(options, {
      ...shared,
      random: random.fork("archivist"),
      archives: this.archives,
    });
    this.guests = guests?.({ ...shared, random: random.fork("guests") });
    const { clients, watchClients, leaseClients, operator } = this;
    this.recovery = new RecoveryChecks({
      ...shared,
      network,
      leaseCheck,
      clients,
      watchClients,
      leaseClients,
      operator,
    });
  }

  fail(error: unknown): void {
    this.#failure ??= error;
  }

  #run(done: () => boolean): Promise<void> {
    return this.scheduler.run(done, () => {
      if (this.#failure !== undefined) throw this.#failure;
      this.cluster.raftCheck.look();
      this.#restoration?.cluster.raftCheck.look();
      this.guests?.look();
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

  #startAll(): void {
    this.nemesis.start();
    this.clients.start();
    this.watchClients.start();
    this.leaseClients.start();
    this.hostileClients.start();
    this.streamClients.start();
    this.etcdEntries.start();
    this.operator.start();
    this.registrar.start();
    this.saboteur.start();
    this.archivist.start();
    this.users?.start(this.clients, this.cluster.leaseCheck);
  }

  async live(): Promise<void> {
    const { clients, watchClients, leaseClients, operator, registrar, nemesis, recovery } = this;
    this.#startAll();
    await this.#runFor(this.options.faultPhaseMs);
    this.story.record("world", "all is healed");
    nemesis.stop();
    this.clientNetwork.faulty = false;
    if (this.options.losesMajority)
      await this.#settled(this.#loseMajority(), PROGRESS_MS, () => "the survivor does not start");
    watchClients.settle();
    operator.stop();
    registrar.settle();
    this.saboteur.settle();
    await this.#settled(
      this.#membersAreAlike(),
      PROGRESS_MS,
      () => `${this.saboteur.unsettled}: ${recovery.standing()}`,
    );
    await this.#settled(
      this.#membershipSettles(),
      PROGRESS_MS,
      () => `the membership is not settled: ${recovery.standing()}`,
    );
    registrar.stop();
    await this.#settled(recovery.progress(), PROGRESS_MS, () => recovery.standing());
    if (this.users !== undefined)
      await this.#settled(this.users.settle(), PROGRESS_MS, () => "users and roles");
    this.users?.stop();
    clients.stop();
    this.streamClients.stop();
    this.hostileClients.stop();
    this.etcdEntries.stop();
    leaseClients.stop();
    const leaseLimitMs = PROGRESS_MS + 2000 * this.options.leaseTtlSeconds;
    await this.#settled(
      recovery.leasesEnd(),
      leaseLimitMs,
      () => `LEASE-5: not ended: ${this.cluster.leaseCheck.existing.join(" ")}`,
    );
    // Until here: a check that was under way when a member was given up raises its alarm once more,
    // and under an alarm no lease ends.
    this.saboteur.stop();
    await this.#settled(recovery.converge(), PROGRESS_MS, () => recovery.standing());
    await this.#settled(recovery.watchersHear(), PROGRESS_MS, () =>
      watchClients.behind().join("; "),
    );
    watchClients.stop();
    this.archivist.stop();
    await this.#settled(recovery.compare(), PROGRESS_MS, () => "comparing");
    await this.#settled(recovery.sweep(), 10 * PROGRESS_MS, () => "reading all revisions");
    await this.#settled(
      this.#restore(),
      PROGRESS_MS,
      () => "ARCHIVE-2: a restored cluster does not serve",
    );
    if (this.guests !== undefined) return;
    checkRefusedWrites(clients.operations, this.cluster.safety);
    const hint = (revision: number) => this.cluster.safety.requestAt(revision);
    this.verdict = judgeHistory(clients, {
      title: `seed ${this.options.seed}`,
      hint,
      explains: this.#explains,
      searches: !usesWholeApi(this.options),
    });
    if (this.verdict.violation !== undefined) throw new Error(this.verdict.violation);
  }

  /** All but one are gone; the one that is left has what was acknowledged, and keeps it. */
  async #loseMajority(): Promise<void> {
    const { nodes, scheduler, story, options } = this;
    const { network, safety, raftCheck } = this.cluster;
    const random = this.#random.fork("survivor");
    const forced = (node: Node, isForced: boolean) =>
      configOf(
        options,
        node.name,
        node.url,
        `${node.name}=${node.url}`,
        node.isFounder ? "new" : "existing",
        isForced,
      );
    this.survived = await continueAlone({
      nodes,
      scheduler,
      story,
      random,
      network,
      safety,
      raftCheck,
      configOf: forced,
    });
  }

  /** ARCHIVE-2. */
  async #restore(): Promise<void> {
    await this.guests?.finish();
    const { options, scheduler, story, archivist } = this;
    if (!options.restores || archivist.last === undefined) return;
    this.#restoration = new Restoration(options, archivist.last, {
      scheduler,
      story,
      network: this.users?.trusted ?? this.clientNetwork,
      random: this.#random.fork("restoration"),
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
}
