/**
 * Changes of who belongs to the cluster, while it runs: members are added as voters or learners,
 * started, promoted and removed, and those whose disks are damaged are replaced; they move to other
 * addresses; leadership is moved. What was asked for and not answered is found out from the list of
 * members.
 */
import type { Random } from "@quorate/host";
import {
  ClusterService,
  MaintenanceService,
  type Member,
  MemberAddRequest,
  MemberListRequest,
  MemberListResponse,
  MemberPromoteRequest,
  MemberRemoveRequest,
  MemberUpdateRequest,
  MoveLeaderRequest,
  type Member as WireMember,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "./base/actor.ts";
import type { SimOptions } from "./base/options.ts";
import type { Links } from "./links.ts";
import type { Node } from "./node.ts";
import { nameAt, nextUrl, urlOf } from "./peer-urls.ts";
import { Replacer } from "./replacer.ts";

const { MemberAdd, MemberList, MemberPromote, MemberRemove, MemberUpdate } = ClusterService.methods;

const CALL_TIMEOUT_MS = 8000;
/**
 * In runs about Raft alone it does not wait for the end of a change: those that are under way at
 * one time are what such runs are about.
 */
const HURRIED_TIMEOUT_MS = 250;
/** A member may go on trying so long, and two election timeouts, after its answer was lost. */
const UNKNOWN_MS = 6000;
/** A removed member that no peer notifies is ended after this long. */
const MAX_REMOVAL_NOTICE_MS = 5000;

/** A member that is on its way to another address. */
interface Move {
  readonly id: bigint;
  readonly url: string;
  /** The cluster is notified first, and then the machine moves; or the other way round. */
  readonly announcedFirst: boolean;
}

export interface RegistrarDeps extends ActorDeps {
  /** Everybody's list of machines: changed in place. */
  readonly nodes: Node[];
  readonly links: Links;
  /**
   * Makes a machine for a member that was added; `cluster` is what its --initial-cluster is to be.
   */
  makeNode(name: string, url: string, cluster: string): Promise<Node>;
  /** Sets a machine's --initial-cluster, or another address in it, for its next start. */
  reconfigure(node: Node, url: string, cluster: string): Promise<void>;
  /** For what was thought of later, so that the draws before stay as they were. */
  readonly more: Random;
}

export class Registrar extends Actor<RegistrarDeps> {
  #next: number;
  /** The machines of those that vote, by the last list. */
  #voters: ReadonlySet<string>;
  #isFinishing = false;
  readonly #removals: Removals;
  /** Until then a change may be made whose outcome is not known. */
  #unknownUntilMs = 0;
  readonly #unknownMs: number;
  /** After `settle`: all that belong to the cluster run, and no other does. */
  isSettled = false;
  readonly counts = { added: 0, promoted: 0, removed: 0, moved: 0, readdressed: 0, replaced: 0 };
  #move: Move | undefined;
  /** Names of the members in the newest list. */
  #listed: ReadonlySet<string> = new Set();
  readonly #replacer: Replacer;

  constructor(options: SimOptions, deps: RegistrarDeps) {
    super(options, deps);
    const isSound = (member: WireMember) => this.#isSound(member);
    this.#unknownMs = UNKNOWN_MS + 2 * options.electionMs;
    this.#removals = new Removals(() => deps.scheduler.nowMs, this.#unknownMs, isSound);
    this.#next = options.members;
    this.#voters = new Set(Array.from({ length: options.members }, (_, i) => nameAt(urlOf(i))));
    this.#replacer = new Replacer({
      scheduler: deps.scheduler,
      random: deps.more.fork("replacer"),
      everyMs: options.replaceEveryMs,
      list: () => this.#list(),
      ask: (what, path, bytes) => this.#call(what, path, bytes),
      newUrl: () => urlOf(this.#next++),
      mayRemove: (member, members) => this.#removals.begin(member, members),
    });
    this.isSettled = options.membershipEveryMs === 0;
  }

  start(): void {
    const { membershipEveryMs, replaceEveryMs, churnEveryMs } = this.options;
    const fail = (error: unknown) => this.deps.fail(error);
    if (membershipEveryMs > 0) this.#work().catch(fail);
    if (membershipEveryMs > 0 && replaceEveryMs > 0) this.#replacer.work().catch(fail);
    if (churnEveryMs > 0) this.#churn().catch(fail);
  }

  /**
   * Changes that set a member's address to what it is, whatever is under way: a leader must have
   * only one at a time in its log.
   */
  async #churn(): Promise<void> {
    const random = this.deps.more.fork("churn");
    const { nodes, scheduler, network } = this.deps;
    while (!this.#isFinishing) {
      await scheduler.delay(-Math.log(1 - random.unit()) * this.options.churnEveryMs);
      const asked = nodes[random.below(nodes.length)];
      const { memberId, url } = nodes[random.below(nodes.length)];
      if (memberId === 0n) continue;
      const bytes = MemberUpdateRequest.encode({ ID: memberId, peerURLs: [url] });
      // What comes of it is no matter.
      void network.exchange(asked, MemberUpdate.path, bytes, HURRIED_TIMEOUT_MS);
    }
  }

  /** No more changes; what was begun is finished. */
  settle(): void {
    this.#isFinishing = true;
    this.#replacer.stop();
    this.counts.replaced = this.#replacer.counts.replaced;
  }

  /** Whether a quorum is left without one more member, even if a voter is being added. */
  mayDamage(): boolean {
    const isSound = ({ damaged, isAltered, machine }: Node) =>
      !damaged && !isAltered && !machine.faults.isLying;
    const sound = this.deps.nodes.filter(
      (node) => isSound(node) && this.#voters.has(node.name),
    ).length;
    const { membershipEveryMs, replaceEveryMs } = this.options;
    const voters = this.#voters.size + (membershipEveryMs === 0 ? 0 : replaceEveryMs === 0 ? 1 : 2);
    return 2 * (sound - 1) > voters;
  }

  async #work(): Promise<void> {
    while (!this.isStopped) {
      const waitMs = this.#isFinishing
        ? 300
        : 2 * this.random.unit() * this.options.membershipEveryMs;
      await this.deps.scheduler.delay(waitMs);
      const members = this.isStopped ? undefined : await this.#list();
      if (members === undefined) continue;
      this.#voters = new Set(
        members.flatMap(({ peerURLs, isLearner }) => (isLearner ? [] : peerURLs.map(nameAt))),
      );
      this.#leave(members);
      await this.#goOnMoving(members);
      await this.#join(members);
      if (this.#isFinishing) this.isSettled = this.#isEverybodyThere(members);
      else await this.#change(members);
    }
  }

  #anyNode(): Node {
    const { nodes } = this.deps;
    return nodes[this.random.below(nodes.length)];
  }

  async #call(what: string, path: string, bytes: Uint8Array): Promise<Uint8Array | undefined> {
    const node = this.#anyNode();
    this.deps.story.record("registrar", `asks ${node.name}: ${what}`);
    const timeoutMs =
      this.options.theme === "raft" && !this.#isFinishing ? HURRIED_TIMEOUT_MS : CALL_TIMEOUT_MS;
    const reply = await this.deps.network.exchange(node, path, bytes, timeoutMs);
    this.deps.story.record("registrar", `${what}: ${reply.error ?? "done"}`);
    const isUnknown =
      reply.error !== undefined && reply.unsent !== true && path !== MemberList.path;
    if (isUnknown) this.#unknownUntilMs = this.deps.scheduler.nowMs + this.#unknownMs;
    return reply.bytes;
  }

  async #list(): Promise<readonly WireMember[] | undefined> {
    const bytes = await this.#call(
      "list",
      MemberList.path,
      MemberListRequest.encode({ linearizable: true }),
    );
    return bytes === undefined ? undefined : MemberListResponse.decode(bytes).members;
  }

  #nodeOf(member: WireMember): Node | undefined {
    return this.deps.nodes.find(({ name }) => name === nameAt(member.peerURLs[0]));
  }

  /** Machines whose members do not belong to the cluster any more are let go. */
  #leave(members: readonly WireMember[]): void {
    const { nodes, scheduler } = this.deps;
    const names = new Set(members.flatMap(({ peerURLs }) => peerURLs.map(nameAt)));
    this.#listed = names;
    for (const node of [...nodes]) {
      if (names.has(node.name)) continue;
      const letGo = () => {
        // Added again meanwhile, before it had run: the machine is in use.
        if (this.#listed.has(node.name)) return;
        node.retire();
        if (nodes.includes(node)) nodes.splice(nodes.indexOf(node), 1);
      };
      // The others notify it, or it has applied it; one that is cut off from all of them would not
      // know.
      if (node.gone || this.#isFinishing) letGo();
      else scheduler.after(MAX_REMOVAL_NOTICE_MS, letGo);
    }
  }

  /**
   * Those that were added get machines; those that could not join try again with the list of now.
   */
  async #join(members: readonly WireMember[]): Promise<void> {
    const cluster = members.map(({ peerURLs: [url] }) => `${nameAt(url)}=${url}`).join(",");
    for (const member of members) {
      const [url] = member.peerURLs;
      let node = this.#nodeOf(member);
      if (node?.hasRun === true && node.memberId !== member.ID) {
        // Removed, and added again at the same place: the machine begins again, with nothing.
        const { nodes } = this.deps;
        node.retire();
        nodes.splice(nodes.indexOf(node), 1);
        node = undefined;
      }
      if (node?.hasNotJoined !== false) this.#openWay(members);
      if (node === undefined) {
        node = await this.deps.makeNode(nameAt(url), url, cluster);
        this.deps.nodes.push(node);
        node.start();
      } else if (node.down && node.hasNotJoined && !node.gone) {
        await this.deps.reconfigure(node, node.url, cluster);
        if (node.down) node.start();
      }
    }
  }

  /**
   * A member that joins dials those that are there. Where it can dial none of them, an operator
   * opens the way.
   */
  #openWay(members: readonly WireMember[]): void {
    const { links, story } = this.deps;
    const canDial = members.some((member) => {
      const node = this.#nodeOf(member);
      return node?.hasRun === true && !node.refused && links.canDial(node.name);
    });
    if (canDial) return;
    story.record("registrar", "lets members dial each other");
    links.openDials();
  }

  #isEverybodyThere(members: readonly WireMember[]): boolean {
    const { nodes } = this.deps;
    if (
      nodes.length !== members.length ||
      this.#move !== undefined ||
      this.deps.scheduler.nowMs < this.#unknownUntilMs
    )
      return false;
    if (!members.every((member) => this.#nodeOf(member)?.isSettled === true)) return false;
    // Learners that promote themselves are to have done so, unless a member is missing that this
    // would need.
    return (
      !this.options.autoPromote ||
      nodes.some(({ refused }) => refused) ||
      members.every(({ isLearner }) => !isLearner)
    );
  }

  async #change(members: readonly WireMember[]): Promise<void> {
    const learners = members.filter(({ isLearner }) => isLearner);
    const voters = members.filter(({ isLearner }) => !isLearner);
    const sound = (list: readonly WireMember[]) =>
      list.filter((member) => this.#isSound(member)).length;
    if (this.options.moves && this.deps.more.below(4) === 0) {
      this.#beginMoving(members);
      return;
    }
    const way = this.random.below(10);
    const broken = members.find((member) => this.#nodeOf(member)?.refused === true);
    if (broken !== undefined && way < 5) await this.#remove(broken, voters);
    else if (learners.length > 0 && way < 4) {
      const [learner] = learners;
      const done = await this.#call(
        `promote ${learner.ID}`,
        MemberPromote.path,
        MemberPromoteRequest.encode({ ID: learner.ID }),
      );
      if (done !== undefined) this.counts.promoted++;
    } else if (members.length < this.options.maxMembers && way < 7) {
      const isLearner = this.random.below(3) > 0;
      // A voter counts from when it is added, and may not come up for long.
      if (isLearner || 2 * sound(voters) > voters.length + 1) await this.#add(isLearner);
    } else if (way < 9) await this.#remove(members[this.random.below(members.length)], voters);
    else await this.#moveLeader(voters);
  }

  #isSound(member: WireMember): boolean {
    const node = this.#nodeOf(member);
    return node !== undefined && !node.damaged && !node.isAltered && node.hasRun;
  }

  async #add(isLearner: boolean): Promise<void> {
    const url = urlOf(this.#next++);
    const request = MemberAddRequest.encode({ peerURLs: [url], isLearner });
    const title = `add ${nameAt(url)}${isLearner ? " as learner" : ""}`;
    if ((await this.#call(title, MemberAdd.path, request)) !== undefined) this.counts.added++;
  }

  #beginMoving(members: readonly WireMember[]): void {
    const { more } = this.deps;
    const member = members[more.below(members.length)];
    const node = this.#nodeOf(member);
    if (this.#move !== undefined || node === undefined || node.refused || !node.hasRun) return;
    // One that has moved and has not announced it cannot be reached: the others must be able to say
    // where it is.
    const announcedFirst = more.below(3) > 0 || !this.#removals.isSafe(member, members);
    // A member that no peer can dial learns of a new address only by its log.
    if (this.options.oneWayDials || this.#replacer.hasAdded(node.url)) return;
    this.#move = { id: member.ID, url: nextUrl(node.url), announcedFirst };
  }

  /**
   * Takes the next step of a move, as far as the cluster can be seen to have taken those before.
   */
  async #goOnMoving(members: readonly WireMember[]): Promise<void> {
    if (this.#move === undefined) return;
    const { id, url, announcedFirst } = this.#move;
    const member = members.find(({ ID }) => ID === id);
    const node = member === undefined ? undefined : this.#nodeOf(member);
    const isListed = member?.peerURLs.includes(url) === true;
    if (
      member === undefined ||
      node === undefined ||
      node.refused ||
      (isListed && node.url === url)
    ) {
      if (isListed && node?.url === url) this.counts.readdressed++;
      this.#move = undefined;
    } else if (!isListed && (announcedFirst || node.url === url)) {
      await this.#call(
        `update ${node.name} to ${url}`,
        MemberUpdate.path,
        MemberUpdateRequest.encode({ ID: id, peerURLs: [url] }),
      );
    } else {
      const cluster = members
        .map(({ ID, peerURLs: [first] }) => `${nameAt(first)}=${ID === id ? url : first}`)
        .join(",");
      this.deps.story.record("registrar", `${node.name} moves to ${url}`);
      await this.deps.reconfigure(node, url, cluster);
      node.crash("kill");
      if (node.down) node.start();
    }
  }

  async #remove(member: WireMember, voters: readonly WireMember[]): Promise<void> {
    if (!this.#removals.begin(member, voters)) return;
    const request = MemberRemoveRequest.encode({ ID: member.ID });
    if (
      (await this.#call(`remove ${nameAt(member.peerURLs[0])}`, MemberRemove.path, request)) !==
      undefined
    )
      this.counts.removed++;
  }

  async #moveLeader(voters: readonly WireMember[]): Promise<void> {
    const leader = this.deps.nodes.find((node) => node.member?.isLeader === true);
    const { ID } = voters[this.random.below(voters.length)];
    if (leader === undefined) return;
    const { path } = MaintenanceService.methods.MoveLeader;
    this.deps.story.record("registrar", `asks ${leader.name} to move leadership to ${ID}`);
    const reply = await this.deps.network.exchange(
      leader,
      path,
      MoveLeaderRequest.encode({ targetID: ID }),
      CALL_TIMEOUT_MS,
    );
    if (reply.bytes !== undefined) this.counts.moved++;
  }
}

/**
 * Removals of members that were requested and may still take place. Two operators that request one
 * each at the same moment can remove the quorum, although each request alone leaves one.
 */
class Removals {
  readonly #nowMs: () => number;
  readonly #durationMs: number;
  readonly #isSound: (member: Member) => boolean;
  /** When a requested removal cannot take place any more, by member. */
  readonly #endsMs = new Map<bigint, number>();

  /**
   * @param durationMs how long a request may take effect
   * @param isSound whether a member can do its part
   */
  constructor(nowMs: () => number, durationMs: number, isSound: (member: Member) => boolean) {
    this.#nowMs = nowMs;
    this.#durationMs = durationMs;
    this.#isSound = isSound;
  }

  /** Whether the voters without `member`, and without pending removals, have a sound quorum. */
  isSafe(member: Member, members: readonly Member[]): boolean {
    const others = members.filter(
      ({ ID, isLearner }) =>
        ID !== member.ID && !isLearner && (this.#endsMs.get(ID) ?? 0) <= this.#nowMs(),
    );
    return 2 * others.filter(this.#isSound).length > others.length;
  }

  /** As `isSafe`; if true, the removal is pending from now on. */
  begin(member: Member, members: readonly Member[]): boolean {
    if (!this.isSafe(member, members)) return false;
    this.#endsMs.set(member.ID, this.#nowMs() + this.#durationMs);
    return true;
  }
}
